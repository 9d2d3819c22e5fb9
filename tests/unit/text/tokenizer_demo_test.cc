// SPDX-License-Identifier: Apache-2.0
// Compares the demo model's tokenizer with golden tokens, which the tokenizer of the model's authors made.
#include <gtest/gtest.h>

#include <random>

#include "test_tokenizer.h"
#include "tests/files.h"
#include "tests/status_matchers.h"
#include "text/chat/chat_template.h"
#include "text/tokenizer/tokenizer_config.h"

namespace baton {
namespace {

using testing::DemoFile;
using testing::DemoTokenizer;
using testing::ReadFile;

std::string GoldenFile(const std::string& name) {
  return ReadFile(testing::SourceFolder() / "tests/golden/demo" / name);
}

TEST(DemoTokenizerTest, GoldenPromptsEncodeToTheirIds) {
  const auto tokenizer = DemoTokenizer();
  const auto golden = nlohmann::json::parse(GoldenFile("golden.json"));
  ASSERT_FALSE(golden["cases"].empty());
  for (const auto& golden_case : golden["cases"]) {
    const std::string prompt = golden_case["prompt"];
    ASSERT_OK_AND_ASSIGN(const std::vector<TokenId> ids, tokenizer->Encode(prompt, /*add_special_tokens=*/false));
    EXPECT_EQ(ids, golden_case["prompt_ids"].get<std::vector<TokenId>>()) << prompt;
  }
}

TEST(DemoTokenizerTest, GoldenContinuationsDecodeToTheirText) {
  const auto tokenizer = DemoTokenizer();
  const auto golden = nlohmann::json::parse(GoldenFile("golden.json"));
  for (const auto& golden_case : golden["cases"]) {
    for (const char* model : {"chat", "draft"}) {
      const auto& run = golden_case[model];
      ASSERT_OK_AND_ASSIGN(const std::string text, tokenizer->Decode(run["greedy_ids"].get<std::vector<TokenId>>(),
                                                                     /*skip_special_tokens=*/false));
      EXPECT_EQ(text, run["greedy_text"].get<std::string>());
    }
  }
}

TEST(DemoTokenizerTest, HeldOutTextSurvivesARoundTrip) {
  const auto tokenizer = DemoTokenizer();
  const std::string text = GoldenFile("heldout.txt");
  ASSERT_FALSE(text.empty());
  ASSERT_OK_AND_ASSIGN(const std::vector<TokenId> ids, tokenizer->Encode(text, false));
  EXPECT_LT(ids.size(), text.size() / 2) << "merges are not applied";
  ASSERT_OK_AND_ASSIGN(const std::string decoded, tokenizer->Decode(ids, false));
  EXPECT_EQ(decoded, text);
}

TEST(DemoTokenizerTest, RandomUnicodeSurvivesARoundTrip) {
  const auto tokenizer = DemoTokenizer();
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    const std::string text = testing::RandomUnicode(random, 1 + static_cast<int>(random() % 200));
    ASSERT_OK_AND_ASSIGN(const std::vector<TokenId> ids, tokenizer->Encode(text, false));
    ASSERT_OK_AND_ASSIGN(const std::string decoded, tokenizer->Decode(ids, false));
    ASSERT_EQ(decoded, text);
  }
}

TEST(DemoTokenizerTest, InvalidUtf8IsEncodedAsReplacementCharacters) {
  const auto tokenizer = DemoTokenizer();
  std::mt19937 random(2);
  for (int i = 0; i < 500; ++i) {
    std::string bytes(random() % 64, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    std::string storage;
    const std::string repaired(RepairUtf8(bytes, storage));
    ASSERT_OK_AND_ASSIGN(const std::vector<TokenId> ids, tokenizer->Encode(bytes, false));
    ASSERT_OK_AND_ASSIGN(const std::vector<TokenId> expected, tokenizer->Encode(repaired, false));
    ASSERT_EQ(ids, expected);
  }
}

TEST(DemoTokenizerTest, BosIsAddedOnce) {
  const auto tokenizer = DemoTokenizer();
  ASSERT_TRUE(tokenizer->bos().has_value());
  const TokenId bos = *tokenizer->bos();
  EXPECT_EQ(tokenizer->TokenBytes(bos), "<|begin_of_text|>");
  ASSERT_OK_AND_ASSIGN(const auto plain, tokenizer->Encode("Hello", false));
  ASSERT_OK_AND_ASSIGN(const auto with_bos, tokenizer->Encode("Hello", true));
  ASSERT_OK_AND_ASSIGN(const auto already, tokenizer->Encode("<|begin_of_text|>Hello", true));
  std::vector<TokenId> expected = plain;
  expected.insert(expected.begin(), bos);
  EXPECT_EQ(with_bos, expected);
  EXPECT_EQ(already, expected);
  ASSERT_OK_AND_ASSIGN(const auto empty, tokenizer->Encode("", true));
  EXPECT_EQ(empty, std::vector<TokenId>{bos});
}

TEST(DemoTokenizerTest, SpecialTokensAreKnownByTextAndId) {
  const auto tokenizer = DemoTokenizer();
  const std::optional<TokenId> end = tokenizer->IdOf("<|end|>");
  ASSERT_TRUE(end.has_value());
  EXPECT_TRUE(tokenizer->IsSpecial(*end));
  EXPECT_FALSE(tokenizer->IdOf("fox").has_value()) << "not an added token";
  EXPECT_FALSE(tokenizer->IsSpecial(0));
  EXPECT_EQ(tokenizer->vocab_size(), 4096);
  ASSERT_OK_AND_ASSIGN(const std::string kept, tokenizer->Decode({*end}, false));
  ASSERT_OK_AND_ASSIGN(const std::string skipped, tokenizer->Decode({*end}, true));
  EXPECT_EQ(kept, "<|end|>");
  EXPECT_EQ(skipped, "");
}

TEST(DemoTokenizerTest, IdsOutsideTheVocabularyAreErrors) {
  const auto tokenizer = DemoTokenizer();
  EXPECT_TRUE(testing::Fails(tokenizer->Decode({4096}, false), absl::StatusCode::kInvalidArgument, "4096"));
  EXPECT_TRUE(testing::Fails(tokenizer->Decode({-1}, false), absl::StatusCode::kInvalidArgument, "-1"));
  EXPECT_EQ(tokenizer->TokenBytes(4096), "");
  EXPECT_FALSE(tokenizer->IsSpecial(-1));
}

// Such texts take quadratic time in a naive tokenizer.
TEST(DemoTokenizerTest, MegabyteRunsSurviveARoundTrip) {
  const auto tokenizer = DemoTokenizer();
  constexpr int kMegabyte = 1 << 20;
  std::string mixed;
  while (mixed.size() < kMegabyte) mixed += "abcdefghij";
  for (const std::string& text :
       {std::string(kMegabyte, 'a'), std::string(kMegabyte, ' '), std::string(kMegabyte, '\n'),
        std::string(kMegabyte, '!'), std::string(kMegabyte, '<'), mixed, std::string(kMegabyte, ' ') + "x"}) {
    ASSERT_OK_AND_ASSIGN(const std::vector<TokenId> ids, tokenizer->Encode(text, false));
    ASSERT_OK_AND_ASSIGN(const std::string decoded, tokenizer->Decode(ids, false));
    EXPECT_TRUE(decoded == text) << text.substr(0, 10);
  }
}

TEST(DemoTokenizerTest, ChatTemplateRendersTheTurns) {
  ASSERT_OK_AND_ASSIGN(const TokenizerConfig config, ParseTokenizerConfig(DemoFile("tokenizer_config.json")));
  ASSERT_TRUE(config.chat_template && config.bos_token && config.eos_token);
  ASSERT_OK_AND_ASSIGN(const auto chat_template, ChatTemplate::Parse(*config.chat_template));
  const std::vector<ChatTurn> turns = {{"system", "Be kind."}, {"user", "Hi <|user|>"}};
  ASSERT_OK_AND_ASSIGN(const std::string prompt,
                       testing::RenderTurns(*chat_template, turns, *config.bos_token, *config.eos_token, true));
  EXPECT_EQ(prompt, "<|begin_of_text|><|system|>Be kind.<|end|><|user|>Hi <|user|><|end|><|assistant|>");
  ASSERT_OK_AND_ASSIGN(const std::string open_ended,
                       testing::RenderTurns(*chat_template, turns, *config.bos_token, *config.eos_token, false));
  EXPECT_EQ(open_ended + "<|assistant|>", prompt);
}

}  // namespace
}  // namespace baton
