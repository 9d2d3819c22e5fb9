// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/digit_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/status_matchers.h"
#include "text/tokenizer/regex.h"
#include "text/utf8.h"

namespace baton {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kNumbers[] = R"(\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N})))";
constexpr char kBeforeBoundaries[] = R"(\d{1,3}(?=(?:\d{3})*\b))";
constexpr char kCutsOnly[] = R"((?=(\d{3})+(?!\d)))";

std::vector<std::string> Split(const char* pattern, std::string_view text) {
  Pieces pieces;
  pieces.list.push_back({text});
  const auto groups = DigitGroups(pattern);
  EXPECT_OK(groups->Split(pieces));
  std::vector<std::string> parts;
  for (const Piece& piece : pieces.list) parts.emplace_back(piece.text);
  return parts;
}

// Splits with the regular expression itself, into matches and the parts between matches.
std::vector<std::string> SplitByRegex(const char* pattern, std::string_view text) {
  const Regex regex = *Regex::Compile(pattern, Regex::Syntax::kPattern);
  Regex::Matcher matcher(regex);
  std::vector<std::string> parts;
  size_t done = 0;
  const auto add = [&](size_t begin, size_t end) {
    if (end > begin) parts.emplace_back(text.substr(begin, end - begin));
  };
  for (size_t from = 0; from <= text.size();) {
    const auto match = *matcher.Find(text, from);
    if (!match) break;
    add(done, match->begin);
    add(match->begin, match->end);
    done = match->end;
    from = match->end;
    if (match->begin == match->end) from += from < text.size() ? ReadUtf8(text.substr(from)).length : 1;
  }
  add(done, text.size());
  return parts;
}

TEST(DigitGroupsTest, GroupsDigitsFromTheRight) {
  EXPECT_THAT(Split(kNumbers, "12345678"), ElementsAre("12", "345", "678"));
  EXPECT_THAT(Split(kNumbers, "123456"), ElementsAre("123", "456"));
  EXPECT_THAT(Split(kNumbers, "a1234b ½"), ElementsAre("a", "1", "234", "b ", "½"));
  EXPECT_THAT(Split(kNumbers, ""), IsEmpty());
}

TEST(DigitGroupsTest, WordBoundaryPatternKeepsNumbersBeforeLettersWhole) {
  EXPECT_THAT(Split(kBeforeBoundaries, "1234 1234a"), ElementsAre("1", "234", " 1234a"));
  EXPECT_THAT(Split(kBeforeBoundaries, "1234½1234\u0301"), ElementsAre("1", "234", "½1234\u0301"));
}

TEST(DigitGroupsTest, LookaheadPatternDoesNotSplitBeforeTheNumber) {
  EXPECT_THAT(Split(kCutsOnly, "a12345"), ElementsAre("a12", "345"));
  EXPECT_THAT(Split(kCutsOnly, "a123b"), ElementsAre("a", "123b"));
}

TEST(DigitGroupsTest, SplitsLikeTheRegularExpressions) {
  // For \b, Oniguruma and PCRE2 disagree whether the last three are word characters.
  constexpr const char* kCharacters[] = {"1", "2", "7", "a", " ", "_", ".", "é", "٣", "中", "½", "\u200D", "\u0301"};
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    const size_t characters = std::size(kCharacters) - (i % 2 == 0 ? 3 : 0);
    for (int n = random() % 14; n > 0; --n) text += kCharacters[random() % (random() % 2 == 0 ? 3 : characters)];
    for (const char* pattern : {kNumbers, kBeforeBoundaries, kCutsOnly}) {
      if (pattern == kBeforeBoundaries && i % 2 != 0) continue;
      ASSERT_EQ(Split(pattern, text), SplitByRegex(pattern, text)) << pattern << " on " << text;
    }
  }
}

TEST(DigitGroupsTest, RefusesOtherPatterns) { EXPECT_EQ(DigitGroups(R"(\d{1,3})"), nullptr); }

}  // namespace
}  // namespace baton
