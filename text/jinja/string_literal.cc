// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/string_literal.h"

#include <cstddef>

#include "common/status_macros.h"
#include "common/strings.h"
#include "text/utf8.h"

namespace baton::jinja {
namespace {

int DigitValue(char c, int base) {
  int value = -1;
  if (c >= '0' && c <= '9') value = c - '0';
  if (c >= 'a' && c <= 'f') value = c - 'a' + 10;
  if (c >= 'A' && c <= 'F') value = c - 'A' + 10;
  return value < base ? value : -1;
}

// Returns the value of an escape with a single letter, or 0 when `c` is no such escape.
char SimpleEscape(char c) {
  switch (c) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case 'b': return '\b';
    case 'f': return '\f';
    case 'v': return '\v';
    case 'a': return '\a';
    case '\\':
    case '\'':
    case '"': return c;
    default: return 0;
  }
}

class Unescaper {
 public:
  explicit Unescaper(std::string_view literal) : rest_(literal) {}

  absl::StatusOr<std::string> Run() {
    while (!rest_.empty()) {
      const char c = Take();
      if (c != '\\' || rest_.empty()) {
        out_.push_back(c);
      } else {
        BATON_RETURN_IF_ERROR(Escape(Take()));
      }
    }
    return std::move(out_);
  }

 private:
  char Take() {
    const char c = rest_[0];
    rest_.remove_prefix(1);
    return c;
  }

  absl::Status Escape(char c) {
    if (const char simple = SimpleEscape(c)) {
      out_.push_back(simple);
      return absl::OkStatus();
    }
    switch (c) {
      case '\n': return absl::OkStatus();
      case 'x': return CodePoint(2);
      case 'u': return CodePoint(4);
      case 'U': return CodePoint(8);
      case 'N': return absl::InvalidArgumentError("the escape '\\N' is not supported");
      default: break;
    }
    if (DigitValue(c, 8) >= 0) {
      int value = DigitValue(c, 8);
      for (int i = 0; i < 2 && !rest_.empty() && DigitValue(rest_[0], 8) >= 0; ++i) {
        value = value * 8 + DigitValue(Take(), 8);
      }
      AppendUtf8(static_cast<char32_t>(value), out_);
      return absl::OkStatus();
    }
    // Python keeps the backslash of an unknown escape.
    out_.push_back('\\');
    out_.push_back(c);
    return absl::OkStatus();
  }

  absl::Status CodePoint(size_t digits) {
    char32_t value = 0;
    for (size_t i = 0; i < digits; ++i) {
      if (rest_.empty() || DigitValue(rest_[0], 16) < 0) {
        return absl::InvalidArgumentError(Concat("expected ", digits, " hexadecimal digits in an escape"));
      }
      value = value * 16 + DigitValue(Take(), 16);
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
      return absl::InvalidArgumentError("expected a Unicode scalar value in an escape");
    }
    AppendUtf8(value, out_);
    return absl::OkStatus();
  }

  std::string_view rest_;
  std::string out_;
};

}  // namespace

absl::StatusOr<std::string> UnescapeString(std::string_view literal) { return Unescaper(literal).Run(); }

}  // namespace baton::jinja
