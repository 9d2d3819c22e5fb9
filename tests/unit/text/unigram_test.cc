// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/unigram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "test_tokenizer.h"
#include "tests/status_matchers.h"
#include "text/tokenizer/tokenizer.h"

namespace baton::unigram {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::pair<std::string, double>>;

// Id 0 is "<unk>", ids from 1 are `words` with their scores.
Json File(const Words& words) {
  Json vocab = Json::array({Json::array({"<unk>", 0.0})});
  for (const auto& [word, score] : words) vocab.push_back(Json::array({word, score}));
  return {{"added_tokens", Json::array()},
          {"normalizer", nullptr},
          {"pre_tokenizer", nullptr},
          {"post_processor", nullptr},
          {"decoder", {{"type", "ByteFallback"}}},
          {"model", {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocab}}}};
}

std::vector<std::string> Encoded(const Json& file, const std::string& text) {
  const auto tokenizer = Tokenizer::Create(file.dump(), "");
  EXPECT_OK(tokenizer);
  if (!tokenizer.ok()) return {};
  const std::vector<TokenId> ids = (*tokenizer)->Encode(text, false).value();
  std::vector<std::string> words;
  for (const TokenId id : ids) words.push_back(file["model"]["vocab"][id][0]);
  return words;
}
using List = std::vector<std::string>;

TEST(UnigramTest, MaximizesTheSumOfScores) {
  const Json file = File({{"a", -1}, {"b", -1}, {"c", -1}, {"ab", -1.5}, {"bc", -0.4}, {"abc", -1.45}});
  EXPECT_EQ(Encoded(file, "abc"), (List{"a", "bc"})) << "-1.4";
  EXPECT_EQ(Encoded(file, "ab"), List{"ab"});
  EXPECT_EQ(Encoded(file, "abcabc"), (List{"a", "bc", "a", "bc"}));
  EXPECT_EQ(Encoded(file, ""), List{});
}

TEST(UnigramTest, AmongEqualSplitsTheLongestLastTokenWins) {
  EXPECT_EQ(Encoded(File({{"a", -1}, {"b", -1}, {"ab", -2}}), "ab"), List{"ab"});
  EXPECT_EQ(Encoded(File({{"a", -1}, {"aa", -2}}), "aaa"), (List{"a", "aa"}));
}

TEST(UnigramTest, ARunOfUnknownCharactersIsOneToken) {
  const Json file = File({{"a", -1}, {"\u00E9x", -1}});
  EXPECT_EQ(Encoded(file, "a\u6771\u4EACa!"), (List{"a", "<unk>", "a", "<unk>"}));
  EXPECT_EQ(Encoded(file, "\u00E9x\u00E9"), (List{"\u00E9x", "<unk>"}));
  Json without = file;
  without["model"].erase("unk_id");
  EXPECT_EQ(Encoded(without, "a!a"), (List{"a", "a"}));
}

TEST(UnigramTest, ByteFallbackReplacesUnknownCharactersByByteTokens) {
  Json file = File({{"a", -1}, {"<0xC3>", -5}, {"<0xA9>", -5}});
  EXPECT_EQ(Encoded(file, "a\u00E9"), (List{"a", "<unk>"}));
  file["model"]["byte_fallback"] = true;
  EXPECT_EQ(Encoded(file, "a\u00E9"), (List{"a", "<0xC3>", "<0xA9>"}));
  EXPECT_EQ(Encoded(file, "\u00E9\u6771"), List{"<unk>"}) << "a byte without a token makes the run unknown";
  const auto tokenizer = Tokenizer::Create(file.dump(), "");
  ASSERT_OK(tokenizer);
  EXPECT_EQ((*tokenizer)->Decode((*tokenizer)->Encode("a\u00E9a", false).value(), false).value(), "a\u00E9a");
}

// Compares with an exhaustive search, which sums scores from left to right like Unigram.
TEST(UnigramTest, FindsTheBestOfAllSplits) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    Words words;
    for (const char* word : {"a", "b", "c", "ab", "bc", "ca", "abc", "bca", "aa", "cab"}) {
      words.emplace_back(word, -static_cast<double>(random() % 1000) / 100);
    }
    std::string text;
    for (int i = 0; i < 9; ++i) text += static_cast<char>('a' + random() % 3);
    double best = -std::numeric_limits<double>::infinity();
    const std::function<void(size_t, double)> walk = [&](size_t at, double sum) {
      if (at == text.size()) best = std::max(best, sum);
      for (const auto& [word, score] : words) {
        if (text.compare(at, word.size(), word) == 0) walk(at + word.size(), sum + score);
      }
    };
    walk(0, 0);
    double sum = 0;
    std::string joined;
    for (const std::string& word : Encoded(File(words), text)) {
      joined += word;
      sum += std::find_if(words.begin(), words.end(), [&](const auto& w) { return w.first == word; })->second;
    }
    EXPECT_EQ(joined, text);
    EXPECT_DOUBLE_EQ(sum, best);
  }
}

TEST(UnigramTest, EncodesAMegabyteOfOneLetter) {
  const auto tokenizer = Tokenizer::Create(File({{"a", -1}, {"aaaa", -1.5}}).dump(), "");
  ASSERT_OK(tokenizer);
  const std::string text(1 << 20, 'a');
  const std::vector<TokenId> ids = (*tokenizer)->Encode(text, false).value();
  EXPECT_EQ(ids.size(), text.size() / 4);
  EXPECT_EQ((*tokenizer)->Decode(ids, false).value(), text);
}

TEST(UnigramTest, ErrorsNameTheField) {
  const auto refused = [](const std::string& path, const Json& value, const std::string& why) {
    Json file = File({{"a", -1}});
    file[Json::json_pointer(path)] = value;
    EXPECT_TRUE(testing::Fails(Tokenizer::Create(file.dump(), "").status(), absl::StatusCode::kInvalidArgument, why))
        << path;
  };
  refused("/model/vocab", Json::object(), "model.vocab: expected an array");
  refused("/model/vocab", Json::array(), "at least one token");
  refused("/model/vocab/1", "a", "model.vocab[1]: expected [\"token\", score], got \"a\"");
  refused("/model/vocab/1", Json::array({"a", "b"}), "model.vocab[1]: expected [\"token\", score]");
  refused("/model/unk_id", 2, "model.unk_id: expected an integer from 0 to 1, got 2");
  refused("/model/unk_id", -1, "model.unk_id");
}

}  // namespace
}  // namespace baton::unigram
