// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/digit_groups.h"

#include <unicode/uchar.h>

#include <vector>

#include "text/tokenizer/pattern.h"
#include "text/utf8.h"

namespace baton {
namespace {

bool IsDigit(char32_t c) { return u_charType(static_cast<UChar32>(c)) == U_DECIMAL_DIGIT_NUMBER; }

bool IsNumber(char32_t c) { return (U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_N_MASK) != 0; }

struct Kind {
  std::string_view pattern;
  bool (*is_digit)(char32_t);
  bool needs_word_boundary;  // a number before a letter is not split
  bool isolates_number;      // also splits before the first and after the last digit
};

constexpr Kind kKinds[] = {
    {R"(\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N})))", IsNumber, false, true},
    {R"(\d{1,3}(?=(?:\d{3})*\b))", IsDigit, true, true},
    {R"((?=(\d{3})+(?!\d)))", IsDigit, false, false},
};

class DigitGroupsPreTokenizer final : public PreTokenizer {
 public:
  explicit DigitGroupsPreTokenizer(const Kind& kind) : kind_(kind) {}

  absl::Status Split(Pieces& pieces) const override {
    std::vector<size_t> digits;  // byte offsets of the digits of a number
    return pieces.Refine([&](std::string_view text, std::vector<Piece>& out) {
      size_t begin = 0;
      const auto cut = [&](size_t at) {
        if (at > begin) out.push_back({text.substr(begin, at - begin)});
        begin = at;
      };
      for (size_t at = 0; at < text.size();) {
        digits.clear();
        Utf8Unit unit{};
        while (at < text.size()) {
          unit = ReadUtf8(text.substr(at));
          if (!kind_.is_digit(unit.code_point)) break;
          digits.push_back(at);
          at += unit.length;
        }
        const bool at_boundary = at == text.size() || !IsWordCharacter(unit.code_point);
        if (!digits.empty() && (at_boundary || !kind_.needs_word_boundary)) {
          for (size_t i = 0; i < digits.size(); ++i) {
            if ((digits.size() - i) % 3 == 0 || (i == 0 && kind_.isolates_number)) cut(digits[i]);
          }
          if (kind_.isolates_number) cut(at);
        }
        if (at < text.size()) at += unit.length;
      }
      cut(text.size());
      return absl::OkStatus();
    });
  }

 private:
  const Kind& kind_;
};

}  // namespace

std::unique_ptr<PreTokenizer> DigitGroups(std::string_view pattern) {
  for (const Kind& kind : kKinds) {
    if (kind.pattern == pattern) return std::make_unique<DigitGroupsPreTokenizer>(kind);
  }
  return nullptr;
}

}  // namespace baton
