// SPDX-License-Identifier: Apache-2.0
// Validates, repairs and decodes UTF-8. Pure functions.
//
// Repair replaces each maximal invalid part with U+FFFD, as the Unicode standard recommends; browsers and Rust's
// standard library do the same.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace baton {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

// The first unit of a byte string.
struct Utf8Unit {
  enum Kind : unsigned char {
    kCodePoint,   // a complete code point
    kInvalid,     // a maximal invalid part
    kIncomplete,  // the byte string ends within a code point
  };
  Kind kind;
  unsigned char length;  // in bytes
  char32_t code_point;   // set for kCodePoint only
};

// `bytes` must not be empty.
Utf8Unit ReadUtf8(std::string_view bytes);

// Returns the length of the longest valid prefix.
size_t ValidUtf8Prefix(std::string_view bytes);

// Returns `text` when it is valid, otherwise a repaired copy in `storage`.
std::string_view RepairUtf8(std::string_view text, std::string& storage);

// Appends `bytes` to `out`, repaired, but leaves out an incomplete code point at the end. Returns the number of bytes
// consumed.
size_t AppendRepairedUtf8(std::string_view bytes, std::string& out);

// `text` must be valid UTF-8.
size_t CountCodePoints(std::string_view text);

// The Unicode property White_Space.
bool IsWhiteSpace(char32_t code_point);

// `code_point` must be a Unicode scalar value.
void AppendUtf8(char32_t code_point, std::string& out);

}  // namespace baton
