// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/string_literal.h"

#include <charconv>
#include <cstddef>
#include <cstdint>

#include "common/status_macros.h"
#include "common/strings.h"
#include "text/utf8.h"

namespace baton::jinja {
namespace {

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
        BATON_RETURN_IF_ERROR(TakeEscape());
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

  // Takes at most `max_digits` digits of a number. Returns how many there are.
  size_t TakeNumber(int base, size_t max_digits, uint32_t& number) {
    const std::string_view digits = rest_.substr(0, max_digits);
    const char* const end = std::from_chars(digits.data(), digits.data() + digits.size(), number, base).ptr;
    const size_t taken = end - digits.data();
    rest_.remove_prefix(taken);
    return taken;
  }

  // Takes the part of an escape after the backslash.
  absl::Status TakeEscape() {
    if (uint32_t octal = 0; TakeNumber(8, 3, octal) > 0) {
      AppendUtf8(octal, out_);
      return absl::OkStatus();
    }
    const char c = Take();
    if (const char simple = SimpleEscape(c)) {
      out_.push_back(simple);
      return absl::OkStatus();
    }
    switch (c) {
      case '\n': return absl::OkStatus();
      case 'x': return TakeCodePoint(2);
      case 'u': return TakeCodePoint(4);
      case 'U': return TakeCodePoint(8);
      case 'N': return absl::InvalidArgumentError("the escape '\\N' is not supported");
      default: break;
    }
    // Python keeps the backslash of an unknown escape.
    out_.push_back('\\');
    out_.push_back(c);
    return absl::OkStatus();
  }

  absl::Status TakeCodePoint(size_t digits) {
    uint32_t value = 0;
    if (TakeNumber(16, digits, value) < digits) {
      return absl::InvalidArgumentError(Concat("expected ", digits, " hexadecimal digits in an escape"));
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
