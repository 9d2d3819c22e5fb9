// Python's string operations on UTF-8: positions count code points. All text is valid UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::jinja {

size_t CountSpaces(std::string_view text);  // code points that IsSpace()
// The code points, each as the text it is.
std::vector<std::string_view> CodePoints(std::string_view text);
// Where the code point `index` begins; the end of the text when there are fewer.
size_t ByteOffset(std::string_view text, size_t index);

// str.isspace() of one code point.
bool IsSpace(char32_t code_point);

struct Sides {
  bool left = true;
  bool right = true;
};
// Without the code points in `characters` (nullopt: whitespace) at its ends.
std::string_view Strip(std::string_view text, std::optional<std::string_view> characters, Sides sides = {});

// str.split() and str.split(separator), which is not empty, from the left or right; at most `max_splits` times unless
// negative.
std::vector<std::string_view> SplitAtWhitespace(std::string_view text, int64_t max_splits, bool from_right);
std::vector<std::string_view> SplitAt(std::string_view text, std::string_view separator, int64_t max_splits,
                                      bool from_right);
std::vector<std::string_view> SplitLines(std::string_view text, bool keep_ends);

// Unicode's full case mappings: the German sharp s becomes SS, a sigma at a word's end a final one.
std::string ToUpper(std::string_view text);
std::string ToLower(std::string_view text);
std::string Capitalize(std::string_view text);
// The first letter of each word in title case (in Jinja's filter upper case), the rest in lower: str.title() takes any
// letter after what has no case for a first one, the filter any character after whitespace or one of "-([{<".
std::string TitleMethod(std::string_view text);
std::string TitleFilter(std::string_view text);

// What str.isalpha() and so on say of one code point.
bool IsAlpha(char32_t code_point);
bool IsDigit(char32_t code_point);
bool IsNumeric(char32_t code_point);
bool IsUpper(char32_t code_point);
bool IsLower(char32_t code_point);
bool IsTitle(char32_t code_point);  // a letter that is upper and lower case in one
// Whether repr() shows it as it is.
bool IsPrintable(char32_t code_point);

}  // namespace baton::jinja
