// UTF-8: validation, repair and code points.
//
// Repair replaces each maximal invalid part with U+FFFD, as the Unicode standard recommends and as the decoders of
// browsers and of Rust's standard library do.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace baton {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

// What stands at the start of some bytes.
struct Utf8Unit {
  enum Kind : unsigned char {
    kCodePoint,   // a whole code point
    kInvalid,     // bytes that no code point starts with
    kIncomplete,  // all that is left, and the start of a code point
  };
  Kind kind;
  unsigned char length;  // in bytes; of kInvalid, the maximal part that one U+FFFD replaces
  char32_t code_point;   // of kCodePoint only
};

// `bytes` is not empty.
Utf8Unit ReadUtf8(std::string_view bytes);

// The length of the longest valid prefix.
size_t ValidUtf8Prefix(std::string_view bytes);

// `text` itself when it is valid, otherwise its repaired copy in `storage`.
std::string_view RepairUtf8(std::string_view text, std::string& storage);

// Appends `bytes` to `out`, repaired. What may be the start of a code point at the end of `bytes` is left out; returns
// how many bytes were consumed.
size_t AppendRepairedUtf8(std::string_view bytes, std::string& out);

// Of valid text.
size_t CountCodePoints(std::string_view text);

// The Unicode property White_Space.
bool IsWhiteSpace(char32_t code_point);

// Appends `code_point`, which is a Unicode scalar value.
void AppendUtf8(char32_t code_point, std::string& out);

}  // namespace baton
