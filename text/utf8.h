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

// Returns whether `byte` is in valid UTF-8 the second or a later byte of a code point.
inline bool IsContinuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// The functions below take valid UTF-8.

size_t CountCodePoints(std::string_view text);

// Return the first and the last code point of `text`, which must not be empty.
std::string_view FirstCharacter(std::string_view text);
std::string_view LastCharacter(std::string_view text);

struct Sides {
  bool left = true;
  bool right = true;
};

// Removes code points from the ends of `text` as long as `strips`, which gets a code point as text, returns true.
template <typename Strips>
std::string_view StripIf(std::string_view text, Sides sides, Strips strips) {
  while (sides.left && !text.empty() && strips(FirstCharacter(text))) text.remove_prefix(FirstCharacter(text).size());
  while (sides.right && !text.empty() && strips(LastCharacter(text))) text.remove_suffix(LastCharacter(text).size());
  return text;
}
std::string_view StripWhiteSpace(std::string_view text, Sides sides);

// The Unicode property White_Space.
bool IsWhiteSpace(char32_t code_point);

// `code_point` must be a Unicode scalar value.
void AppendUtf8(char32_t code_point, std::string& out);

}  // namespace baton
