// SPDX-License-Identifier: Apache-2.0
#include "router/text_assembler.h"

#include <gtest/gtest.h>

#include <random>

#include "fake_tokenizer.h"

namespace baton::router {
namespace {

// One token per byte: every boundary between bytes is one between tokens.
FakeTokenizer Bytes() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  return FakeTokenizer(std::move(tokens));
}

struct Result {
  std::string text;
  std::optional<std::string> stop;
  std::vector<std::string> deltas;
  size_t tokens = 0;  // pushed until the stop
};

Result Assemble(const FakeTokenizer& tokenizer, TextAssembler::Options options, const std::vector<TokenId>& tokens) {
  TextAssembler assembler(tokenizer, std::move(options));
  Result result;
  const auto take = [&](TextAssembler::Delta delta) {
    result.text += delta.text;
    result.deltas.push_back(delta.text);
    result.stop = delta.stop;
    return delta.stop.has_value();
  };
  for (const TokenId token : tokens) {
    ++result.tokens;
    if (take(assembler.Push(token))) return result;
  }
  take(assembler.Flush());
  return result;
}

std::vector<TokenId> AsBytes(const std::string& text) {
  std::vector<TokenId> tokens;
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

TEST(TextAssemblerTest, WithoutStopStringsEveryCodePointLeavesAtOnce) {
  const FakeTokenizer tokenizer = Bytes();
  const Result result = Assemble(tokenizer, {}, AsBytes("aé€"));
  EXPECT_EQ(result.text, "aé€");
  EXPECT_EQ(result.deltas, (std::vector<std::string>{"a", "", "é", "", "", "€", ""}));
}

TEST(TextAssemblerTest, StopStringAcrossTokensIsNeverSent) {
  const FakeTokenizer tokenizer = Bytes();
  const Result result = Assemble(tokenizer, {.stop = {"END"}}, AsBytes("one EN two END three"));
  EXPECT_EQ(result.text, "one EN two ");
  EXPECT_EQ(result.stop, "END");
  EXPECT_EQ(result.tokens, std::string("one EN two END").size());
}

TEST(TextAssemblerTest, TextThatCouldBecomeAStopStringIsHeldUntilItCannot) {
  const FakeTokenizer tokenizer = Bytes();
  TextAssembler assembler(tokenizer, {.stop = {"abc"}});
  EXPECT_EQ(assembler.Push('a').text, "");
  EXPECT_EQ(assembler.Push('b').text, "");
  EXPECT_EQ(assembler.Push('a').text, "ab");
  EXPECT_EQ(assembler.Push('x').text, "ax");
}

TEST(TextAssemblerTest, ASelfOverlappingStopStringIsFound) {
  const FakeTokenizer tokenizer = Bytes();
  const Result result = Assemble(tokenizer, {.stop = {"aab"}}, AsBytes("aaab!"));
  EXPECT_EQ(result.text, "a");
  EXPECT_EQ(result.stop, "aab");
}

TEST(TextAssemblerTest, StopStringWithinOneTokenAndTheRestOfIt) {
  const FakeTokenizer tokenizer({"hello wo", "rld. And", " more"});
  const Result result = Assemble(tokenizer, {.stop = {"world"}}, {0, 1, 2});
  EXPECT_EQ(result.text, "hello ");
  EXPECT_EQ(result.tokens, 2u);
}

TEST(TextAssemblerTest, TheEarliestMatchWinsWhateverTheOrderOfTheList) {
  const FakeTokenizer tokenizer({"xx abc def yy"});
  const Result result = Assemble(tokenizer, {.stop = {"def", "bc", "abc", "ab"}}, {0});
  EXPECT_EQ(result.text, "xx ");
  EXPECT_EQ(result.stop, "ab");
}

TEST(TextAssemblerTest, MultibyteStopStringSplitBetweenTokens) {
  const FakeTokenizer tokenizer = Bytes();
  const Result result = Assemble(tokenizer, {.stop = {"é!"}}, AsBytes("è é? é!"));
  EXPECT_EQ(result.text, "è é? ");
  EXPECT_EQ(result.stop, "é!");
}

TEST(TextAssemblerTest, TheEndOfTheOutputReleasesWhatWasHeld) {
  const FakeTokenizer tokenizer = Bytes();
  EXPECT_EQ(Assemble(tokenizer, {.stop = {"END"}}, AsBytes("at the EN")).text, "at the EN");
}

TEST(TextAssemblerTest, AnUnfinishedCodePointAtTheEndBecomesAReplacementCharacter) {
  const FakeTokenizer tokenizer = Bytes();
  EXPECT_EQ(Assemble(tokenizer, {}, {'a', 0xe2, 0x82}).text, "a\ufffd");
}

TEST(TextAssemblerTest, AStopStringThatTheEndCompletesCounts) {
  const FakeTokenizer tokenizer = Bytes();
  const Result result = Assemble(tokenizer, {.stop = {"a\ufffd"}}, {'b', 'a', 0xe2});
  EXPECT_EQ(result.text, "b");
  EXPECT_EQ(result.stop, "a\ufffd");
}

TEST(TextAssemblerTest, StopStringsAreLookedForOnlyBehindMinTokens) {
  const FakeTokenizer tokenizer = Bytes();
  EXPECT_EQ(Assemble(tokenizer, {.stop = {"ab"}, .min_tokens = 2}, AsBytes("ababx")).text, "ab");
  EXPECT_EQ(Assemble(tokenizer, {.stop = {"ab"}, .min_tokens = 3}, AsBytes("ababx")).text, "ababx")
      << "the second one begins within the first three tokens";
}

TEST(TextAssemblerTest, SpecialTokensLeaveTextOnlyWhenAskedFor) {
  const FakeTokenizer tokenizer({"a", "<x>"}, /*first_special=*/1);
  EXPECT_EQ(Assemble(tokenizer, {}, {0, 1, 0}).text, "aa");
  EXPECT_EQ(Assemble(tokenizer, {.stop = {}, .skip_special_tokens = false}, {0, 1, 0}).text, "a<x>a");
}

// For any tokens, the text sent is the text before the first stop string, and no delta splits a code point.
TEST(TextAssemblerTest, RandomTextsAgreeWithASearchInTheWholeText) {
  const FakeTokenizer tokenizer = Bytes();
  std::mt19937 random(7);
  const std::vector<std::string> pieces = {"a", "b", "ab", "é", "€"};
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 12; ++i) text += pieces[random() % pieces.size()];
    std::vector<std::string> stops;
    for (int i = 0; i < 2; ++i) stops.push_back(pieces[random() % 5] + pieces[random() % 5] + pieces[random() % 5]);
    // By bytes, the match that ends first is complete first; text before it is the same as a search of that prefix.
    size_t end = std::string::npos;
    for (size_t n = 1; n <= text.size() && end == std::string::npos; ++n) {
      for (const std::string& stop : stops) {
        if (text.substr(0, n).ends_with(stop)) end = n;
      }
    }
    std::string expected = text.substr(0, end);
    if (end != std::string::npos) {
      size_t first = std::string::npos;
      for (const std::string& stop : stops) first = std::min(first, expected.find(stop));
      expected.resize(first);
    }
    const Result result = Assemble(tokenizer, {.stop = stops}, AsBytes(text));
    EXPECT_EQ(result.text, expected) << text << " with " << stops[0] << " and " << stops[1];
    for (const std::string& delta : result.deltas) {
      if (!delta.empty()) {
        EXPECT_NE(static_cast<unsigned char>(delta[0]) & 0xc0, 0x80) << "splits a code point";
      }
    }
  }
}

}  // namespace
}  // namespace baton::router
