// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "test_tokenizer.h"
#include "tests/status_matchers.h"
#include "text/tokenizer/tokenizer.h"
#include "text/utf8.h"

namespace baton {
namespace {

TEST(DetokenizerTest, DeltasDoNotSplitACodePoint) {
  const auto tokenizer = *Tokenizer::Create(testing::SmallTokenizer().dump(), "");
  Detokenizer detokenizer(*tokenizer, false);
  EXPECT_EQ(detokenizer.Push('a'), "a");
  EXPECT_EQ(detokenizer.Push(0xF0), "");
  EXPECT_EQ(detokenizer.Push(0x9F), "");
  EXPECT_EQ(detokenizer.Push(0x8E), "");
  EXPECT_EQ(detokenizer.Push(0x89), "\xF0\x9F\x8E\x89");
  EXPECT_EQ(detokenizer.Flush(), "");
}

TEST(DetokenizerTest, FlushReplacesAnUnfinishedCodePoint) {
  const auto tokenizer = *Tokenizer::Create(testing::SmallTokenizer().dump(), "");
  Detokenizer detokenizer(*tokenizer, false);
  EXPECT_EQ(detokenizer.Push(0xE2), "");
  EXPECT_EQ(detokenizer.Push(0x82), "");
  EXPECT_EQ(detokenizer.Flush(), "\uFFFD");
  EXPECT_EQ(detokenizer.Flush(), "");
}

TEST(DetokenizerTest, DeltasOfAnyTokensConcatenateToTheDecodedText) {
  nlohmann::json json = testing::SmallTokenizer();
  nlohmann::json special = testing::AddedToken(256, "<|sp\u00E9cial|>");
  special["special"] = true;
  json["added_tokens"] = nlohmann::json::array({special, testing::AddedToken(257, "\u65E5")});
  const auto tokenizer = *Tokenizer::Create(json.dump(), "");
  std::mt19937 random(4);
  for (int round = 0; round < 5000; ++round) {
    const bool skip_special_tokens = round % 2 == 0;
    // Mostly bytes of multi-byte code points: valid, cut, overlong, surrogate.
    static constexpr TokenId kBytes[] = {0x80, 0xBF, 0xC2, 0xE0, 0xE2, 0xED, 0xA0, 0xF0,
                                         0x9F, 0xF4, 0x90, 0xFF, 'a',  256,  257};
    std::vector<TokenId> ids(random() % 12);
    for (TokenId& id : ids) id = kBytes[random() % std::size(kBytes)];
    Detokenizer detokenizer(*tokenizer, skip_special_tokens);
    std::string text;
    for (const TokenId id : ids) {
      const std::string delta = detokenizer.Push(id);
      ASSERT_EQ(ValidUtf8Prefix(delta), delta.size());
      text += delta;
    }
    text += detokenizer.Flush();
    ASSERT_OK_AND_ASSIGN(const std::string whole, tokenizer->Decode(ids, skip_special_tokens));
    ASSERT_EQ(text, whole);
  }
}

TEST(DetokenizerTest, IgnoresIdsOutsideTheVocabulary) {
  const auto tokenizer = *Tokenizer::Create(testing::SmallTokenizer().dump(), "");
  Detokenizer detokenizer(*tokenizer, false);
  EXPECT_EQ(detokenizer.Push(-5), "");
  EXPECT_EQ(detokenizer.Push(1'000'000), "");
  EXPECT_EQ(detokenizer.Push('a'), "a");
}

}  // namespace
}  // namespace baton
