// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "test_tokenizer.h"
#include "tests/status_matchers.h"
#include "text/tokenizer/tokenizer.h"

namespace baton {
namespace {

using testing::AddedToken;
using ::testing::ElementsAre;

// Encodes `text` with a vocabulary of bytes and the added tokens `added`. Returns the texts of the tokens.
std::vector<std::string> TokensOf(const nlohmann::json& added, const std::string& text) {
  nlohmann::json json = testing::SmallTokenizer();
  json["added_tokens"] = added;
  const auto tokenizer = Tokenizer::Create(json.dump(), "");
  EXPECT_OK(tokenizer);
  std::vector<std::string> tokens;
  if (!tokenizer.ok()) return tokens;
  const std::vector<TokenId> ids = *(*tokenizer)->Encode(text, false);
  for (const TokenId id : ids) tokens.emplace_back((*tokenizer)->TokenBytes(id));
  return tokens;
}

nlohmann::json With(nlohmann::json token, const char* property) {
  token[property] = true;
  return token;
}

TEST(AddedTokensTest, LongestTokenAtAPositionWins) {
  const nlohmann::json added =
      nlohmann::json::array({AddedToken(256, "<a"), AddedToken(257, "<a>"), AddedToken(258, "a>b")});
  EXPECT_THAT(TokensOf(added, "x<a>b"), ElementsAre("x", "<a>", "b"));
  EXPECT_THAT(TokensOf(added, "<a<a"), ElementsAre("<a", "<a"));
  EXPECT_THAT(TokensOf(added, "a>b<"), ElementsAre("a>b", "<"));
}

TEST(AddedTokensTest, TokensMayAdjoinAndFillTheText) {
  const nlohmann::json added = nlohmann::json::array({AddedToken(256, "<a>")});
  EXPECT_THAT(TokensOf(added, "<a>"), ElementsAre("<a>"));
  EXPECT_THAT(TokensOf(added, "<a><a>"), ElementsAre("<a>", "<a>"));
  EXPECT_THAT(TokensOf(added, "<a"), ElementsAre("<", "a"));
  EXPECT_THAT(TokensOf(added, ""), ElementsAre());
}

TEST(AddedTokensTest, SingleWordDoesNotMatchWithinAWord) {
  const nlohmann::json added = nlohmann::json::array({With(AddedToken(256, "cat"), "single_word")});
  EXPECT_THAT(TokensOf(added, "cat,cat"), ElementsAre("cat", ",", "cat"));
  EXPECT_THAT(TokensOf(added, "cats"), ElementsAre("c", "a", "t", "s"));
  EXPECT_THAT(TokensOf(added, "_cat"), ElementsAre("_", "c", "a", "t"));
  // Letters outside ASCII are word characters.
  EXPECT_THAT(TokensOf(added, "cat\u00E9"), ElementsAre("c", "a", "t", "\xC3", "\xA9"));
}

TEST(AddedTokensTest, LstripAndRstripIncludeAdjacentWhitespace) {
  EXPECT_THAT(TokensOf(nlohmann::json::array({With(AddedToken(256, "<a>"), "lstrip")}), "x \u00A0<a> y"),
              ElementsAre("x", "<a>", " ", "y"));
  EXPECT_THAT(TokensOf(nlohmann::json::array({With(AddedToken(256, "<a>"), "rstrip")}), "x <a>\n y"),
              ElementsAre("x", " ", "<a>", "y"));
  const nlohmann::json both = nlohmann::json::array({With(With(AddedToken(256, "<a>"), "rstrip"), "lstrip")});
  EXPECT_THAT(TokensOf(both, "<a>  <a>"), ElementsAre("<a>", "<a>"));
}

TEST(AddedTokensTest, TokensThatAreNotNormalizedAreMatchedFirst) {
  // A single pass would find the leftmost token, "ab".
  const nlohmann::json added =
      nlohmann::json::array({With(AddedToken(256, "ab"), "normalized"), AddedToken(257, "bc")});
  EXPECT_THAT(TokensOf(added, "abc"), ElementsAre("a", "bc"));
}

TEST(AddedTokensTest, MergesDoNotCrossAddedTokens) {
  nlohmann::json json = testing::SmallTokenizer({{"a", "b"}});
  json["added_tokens"] = nlohmann::json::array({AddedToken(257, "|")});
  const auto tokenizer = *Tokenizer::Create(json.dump(), "");
  EXPECT_THAT(*tokenizer->Encode("ab|a|b", false), ElementsAre(256, 257, 'a', 257, 'b'));
}

TEST(AddedTokensTest, ErrorsNameTheEntry) {
  nlohmann::json json = testing::SmallTokenizer();
  json["added_tokens"] = nlohmann::json::array({AddedToken(256, "a"), AddedToken(257, "a")});
  EXPECT_TRUE(
      testing::Fails(Tokenizer::Create(json.dump(), ""), absl::StatusCode::kInvalidArgument, "added_tokens[1]"));
  json["added_tokens"] = nlohmann::json::array({AddedToken(2'000'000'000, "a")});
  EXPECT_TRUE(testing::Fails(Tokenizer::Create(json.dump(), ""), absl::StatusCode::kInvalidArgument, "2000000000"));
  json["added_tokens"] = nlohmann::json::array({AddedToken(256, "")});
  EXPECT_TRUE(testing::Fails(Tokenizer::Create(json.dump(), ""), absl::StatusCode::kInvalidArgument, "content"));
}

}  // namespace
}  // namespace baton
