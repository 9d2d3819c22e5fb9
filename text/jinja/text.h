// SPDX-License-Identifier: Apache-2.0
// Python's string operations on valid UTF-8. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/utf8.h"

namespace baton::jinja {

size_t CountSpaces(std::string_view text);  // number of code points with IsSpace()
// Splits `text` into its code points.
std::vector<std::string_view> CodePoints(std::string_view text);
// Returns the byte offset of code point `index`, or text.size() when `text` has fewer code points.
size_t ByteOffset(std::string_view text, size_t index);

// str.isspace() of one code point.
bool IsSpace(char32_t code_point);

// str.strip(): removes code points in `characters` from the ends. nullopt means whitespace.
std::string_view Strip(std::string_view text, std::optional<std::string_view> characters, Sides sides = {});

// str.split(), str.split(separator) and str.rsplit(). A negative `max_splits` means no limit. `separator` must not be
// empty.
std::vector<std::string_view> SplitAtWhitespace(std::string_view text, int64_t max_splits, bool from_right);
std::vector<std::string_view> SplitAt(std::string_view text, std::string_view separator, int64_t max_splits,
                                      bool from_right);
std::vector<std::string_view> SplitLines(std::string_view text, bool keep_ends);

// Unicode's full case mappings: ß becomes SS, and Σ at the end of a word becomes ς.
std::string ToUpper(std::string_view text);
std::string ToLower(std::string_view text);
std::string Capitalize(std::string_view text);
// str.title(): title case for letters that follow a code point without case, lower case for other letters.
std::string TitleMethod(std::string_view text);
// Jinja's filter `title`: upper case after whitespace and after "-([{<", lower case elsewhere.
std::string TitleFilter(std::string_view text);

// str.isalpha() etc. for one code point.
bool IsAlpha(char32_t code_point);
bool IsDigit(char32_t code_point);
bool IsNumeric(char32_t code_point);
bool IsUpper(char32_t code_point);
bool IsLower(char32_t code_point);
bool IsTitle(char32_t code_point);  // a title case letter such as ǅ
// Returns whether Python's repr() prints the code point without an escape.
bool IsPrintable(char32_t code_point);

}  // namespace baton::jinja
