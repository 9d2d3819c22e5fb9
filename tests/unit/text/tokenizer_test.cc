// SPDX-License-Identifier: Apache-2.0
// Tests the stages of a tokenizer separately, with a vocabulary of bytes and a few merges.
#include "text/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "test_tokenizer.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using ::testing::ElementsAre;
using testing::SmallTokenizer;

std::vector<TokenId> Ids(const nlohmann::json& json, std::string_view text, bool add_special_tokens = false,
                         std::string_view config = "") {
  const auto tokenizer = Tokenizer::Create(json.dump(), config);
  EXPECT_OK(tokenizer);
  if (!tokenizer.ok()) return {};
  const auto ids = (*tokenizer)->Encode(text, add_special_tokens);
  EXPECT_OK(ids);
  return ids.value_or(std::vector<TokenId>());
}

// Returns the pieces of `text` after a chain of pre-tokenizers. The chain must contain ByteLevel.
std::vector<std::string> PiecesOfChain(const nlohmann::json& chain, const std::string& text) {
  nlohmann::json json = SmallTokenizer();
  json["model"]["ignore_merges"] = true;
  int next = 256;
  // With ignore_merges, a piece that is in the vocabulary becomes one token.
  for (size_t begin = 0; begin < text.size(); ++begin) {
    for (size_t length = 1; begin + length <= text.size(); ++length) {
      const std::string word = AlphabetFromBytes(text.substr(begin, length));
      if (!json["model"]["vocab"].contains(word)) json["model"]["vocab"][word] = next++;
    }
  }
  json["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", chain}};
  const auto tokenizer = Tokenizer::Create(json.dump(), "");
  EXPECT_OK(tokenizer);
  std::vector<std::string> pieces;
  if (!tokenizer.ok()) return pieces;
  const std::vector<TokenId> ids = *(*tokenizer)->Encode(text, false);
  for (const TokenId id : ids) pieces.emplace_back((*tokenizer)->TokenBytes(id));
  return pieces;
}

nlohmann::json ByteLevel(bool use_regex = false) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", use_regex}};
}

std::vector<std::string> PiecesOf(const nlohmann::json& split, const std::string& text) {
  return PiecesOfChain({split, ByteLevel()}, text);
}

nlohmann::json Split(const std::string& regex, const std::string& behavior, bool invert = false) {
  return {{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", behavior}, {"invert", invert}};
}

TEST(BpeTest, AppliesTheEarliestMergeToTheLeftmostPair) {
  EXPECT_THAT(Ids(SmallTokenizer({{"b", "c"}, {"a", "b"}}), "abc"), ElementsAre('a', 256));
  EXPECT_THAT(Ids(SmallTokenizer({{"a", "a"}}), "aaa"), ElementsAre(256, 'a'));
  EXPECT_THAT(Ids(SmallTokenizer({{"a", "a"}, {"aa", "aa"}}), "aaaaaaa"), ElementsAre(257, 256, 'a'));
}

TEST(BpeTest, ShortAndLongPiecesEqualTheReferenceAlgorithm) {
  // The lengths include both sides of kShortPieceBytes.
  const std::vector<std::pair<std::string, std::string>> merges = {{"b", "a"}, {"a", "b"},   {"ab", "ab"},
                                                                   {"a", "a"}, {"ba", "aa"}, {"ba", "ba"}};
  const auto json = SmallTokenizer(merges);
  const auto tokenizer = *Tokenizer::Create(json.dump(), "");
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> words(1 + random() % 150);
    for (std::string& word : words) word = random() % 3 == 0 ? "b" : "a";
    std::string text;
    for (const std::string& word : words) text += word;
    while (true) {
      size_t best = words.size();
      size_t best_rank = merges.size();
      for (size_t i = 0; i + 1 < words.size(); ++i) {
        const size_t rank = std::find(merges.begin(), merges.end(), std::pair(words[i], words[i + 1])) - merges.begin();
        if (rank < best_rank) best = i, best_rank = rank;
      }
      if (best == words.size()) break;
      words[best] += words[best + 1];
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
    std::vector<std::string> actual;
    const std::vector<TokenId> ids = *tokenizer->Encode(text, false);
    for (const TokenId id : ids) actual.emplace_back(tokenizer->TokenBytes(id));
    ASSERT_EQ(actual, words) << text;
  }
}

TEST(BpeTest, IgnoreMergesEncodesAWholePieceWithoutMerges) {
  nlohmann::json json = SmallTokenizer({{"a", "b"}});
  json["model"]["vocab"]["xyz"] = 300;
  EXPECT_THAT(Ids(json, "xyz"), ElementsAre('x', 'y', 'z'));
  json["model"]["ignore_merges"] = true;
  EXPECT_THAT(Ids(json, "xyz"), ElementsAre(300));
}

TEST(BpeTest, MergesMayBePairs) {
  nlohmann::json json = SmallTokenizer({{"a", "b"}});
  json["model"]["merges"] = nlohmann::json::array({nlohmann::json::array({"a", "b"})});
  EXPECT_THAT(Ids(json, "ab"), ElementsAre(256));
}

TEST(SplitTest, BehaviorsFollowHuggingFace) {
  const std::string text = "a--b-";
  EXPECT_THAT(PiecesOf(Split("-", "Isolated"), text), ElementsAre("a", "-", "-", "b", "-"));
  EXPECT_THAT(PiecesOf(Split("-", "Removed"), text), ElementsAre("a", "b"));
  EXPECT_THAT(PiecesOf(Split("-", "MergedWithPrevious"), text), ElementsAre("a-", "-", "b-"));
  EXPECT_THAT(PiecesOf(Split("-", "MergedWithNext"), text), ElementsAre("a", "-", "-b", "-"));
  EXPECT_THAT(PiecesOf(Split("-", "Contiguous"), text), ElementsAre("a", "--", "b", "-"));
}

TEST(SplitTest, InvertSwapsMatchesAndTheRest) {
  EXPECT_THAT(PiecesOf(Split("[a-c]+", "Removed", true), "-ab-c"), ElementsAre("ab", "c"));
  EXPECT_THAT(PiecesOf(Split("[a-c]+", "Removed", false), "-ab-c"), ElementsAre("-", "-"));
}

TEST(SplitTest, AStringPatternIsTakenLiterally) {
  const nlohmann::json split = {{"type", "Split"}, {"pattern", {{"String", "."}}}, {"behavior", "Isolated"}};
  EXPECT_THAT(PiecesOf(split, "ab.c"), ElementsAre("ab", ".", "c"));
}

TEST(SplitTest, StepsAfterByteLevelSeeTheByteAlphabet) {
  // Falcon's chain.
  const nlohmann::json chain = {{{"type", "Punctuation"}, {"behavior", "Contiguous"}},
                                ByteLevel(true),
                                {{"type", "Digits"}, {"individual_digits", false}},
                                Split("[0-9][0-9][0-9]", "Isolated")};
  EXPECT_THAT(PiecesOfChain(chain, "a 1234567,bé"), ElementsAre("a", " ", "123", "456", "7", ",", "bé"));
  // U+00B2 is a digit. The UTF-8 bytes are C2 B2, of which only B2 is a digit in the byte alphabet (U+00B2 again).
  EXPECT_THAT(PiecesOfChain({{{"type", "Digits"}}, ByteLevel()}, "a\u00B2b"), ElementsAre("a", "\u00B2", "b"));
  EXPECT_THAT(PiecesOfChain({ByteLevel(), {{"type", "Digits"}}}, "a\u00B2b"), ElementsAre("a\xC2", "\xB2", "b"));
  // A space is U+0120 in the byte alphabet, which is not a space.
  EXPECT_THAT(PiecesOfChain({ByteLevel(), Split(" ", "Isolated")}, "a b"), ElementsAre("a b"));
  EXPECT_THAT(PiecesOfChain({ByteLevel(), Split("\u0120", "Removed")}, " aé  b "), ElementsAre("aé", "b"));
}

TEST(SplitTest, EmptyMatchesSplitWithoutAddingAPiece) {
  EXPECT_THAT(PiecesOf(Split("(?=-)", "Isolated"), "a-b"), ElementsAre("a", "-b"));
  EXPECT_THAT(PiecesOf(Split("", "Isolated"), "abc"), ElementsAre("a", "b", "c"));
}

TEST(SplitTest, WhitespaceIsTheUnicodeProperty) {
  // U+00A0 is whitespace, the Mongolian vowel separator U+180E is not.
  EXPECT_THAT(PiecesOf(Split("\\s", "Removed"), "a\u00A0b"), ElementsAre("a", "b"));
  EXPECT_THAT(PiecesOf(Split("[\\s]", "Removed"), "a\u180E"), ElementsAre("a\u180E"));
  EXPECT_THAT(PiecesOf(Split("[^\\S]", "Removed"), "a b"), ElementsAre("a", "b"));
}

TEST(SplitTest, AScriptExcludesSharedCharacters) {
  // Several scripts share U+3001.
  EXPECT_THAT(PiecesOf(Split("\\p{Han}+", "Isolated"), "中国、中"), ElementsAre("中国", "、", "中"));
  EXPECT_THAT(PiecesOf(Split("[\\p{^Han}]+", "Isolated"), "中、a中"), ElementsAre("中", "、a", "中"));
  EXPECT_THAT(PiecesOf(Split("\\P{Han}+", "Removed"), "中、a中"), ElementsAre("中", "中"));
}

TEST(SplitTest, UnboundedBacktrackingIsAnError) {
  nlohmann::json json = SmallTokenizer();
  json["pre_tokenizer"] = {{"type", "Sequence"},
                           {"pretokenizers", {Split("(?:a|a)*(?:a|a)*[bc]", "Isolated"), json["pre_tokenizer"]}}};
  const auto tokenizer = *Tokenizer::Create(json.dump(), "");
  EXPECT_TRUE(testing::Fails(tokenizer->Encode(std::string(5000, 'a'), false), absl::StatusCode::kResourceExhausted,
                             "regular expression"));
}

TEST(ByteLevelTest, AddsAPrefixSpaceUnlessTheTextHasOne) {
  nlohmann::json json = SmallTokenizer();
  json["pre_tokenizer"]["add_prefix_space"] = true;
  EXPECT_THAT(Ids(json, "a"), ElementsAre(' ', 'a'));
  EXPECT_THAT(Ids(json, " a"), ElementsAre(' ', 'a'));
  EXPECT_THAT(Ids(json, ""), ElementsAre());
}

TEST(ByteLevelTest, UseRegexSplitsWordsLikeGpt2) {
  nlohmann::json json = SmallTokenizer({{"a", "Ġ"}, {"Ġ", "b"}});
  EXPECT_THAT(Ids(json, "a b"), ElementsAre(256, 'b')) << "without the regex a merge spans words";
  json["pre_tokenizer"]["use_regex"] = true;
  EXPECT_THAT(Ids(json, "a b"), ElementsAre('a', 257));
}

nlohmann::json WithTemplate(nlohmann::json single) {
  nlohmann::json json = SmallTokenizer();
  json["added_tokens"] = nlohmann::json::array({testing::AddedToken(256, "<s>"), testing::AddedToken(257, "</s>")});
  json["post_processor"] = {{"type", "TemplateProcessing"},
                            {"single", std::move(single)},
                            {"special_tokens", {{"<s>", {{"ids", {256}}}}, {"</s>", {{"ids", {257}}}}}}};
  return json;
}

const nlohmann::json kBos = {{"SpecialToken", {{"id", "<s>"}}}};
const nlohmann::json kText = {{"Sequence", {{"id", "A"}}}};
const nlohmann::json kEos = {{"SpecialToken", {{"id", "</s>"}}}};

TEST(PostProcessorTest, TemplateProcessingAddsTokensAroundTheText) {
  EXPECT_THAT(Ids(WithTemplate({kBos, kText, kEos}), "a", true), ElementsAre(256, 'a', 257));
  EXPECT_THAT(Ids(WithTemplate({kBos, kText, kEos}), "a", false), ElementsAre('a'));
  EXPECT_THAT(Ids(WithTemplate({kBos, kText}), "<s>a", true), ElementsAre(256, 'a'));
}

TEST(PostProcessorTest, SequenceAppliesItsProcessors) {
  nlohmann::json json = WithTemplate({kBos, kText});
  json["post_processor"] = {{"type", "Sequence"}, {"processors", {{{"type", "ByteLevel"}}, json["post_processor"]}}};
  EXPECT_THAT(Ids(json, "a", true), ElementsAre(256, 'a'));
}

TEST(PostProcessorTest, TokenizerConfigOverridesBos) {
  const nlohmann::json with = WithTemplate({kBos, kText});
  const nlohmann::json without = WithTemplate(nlohmann::json::array({kText}));
  EXPECT_THAT(Ids(with, "a", true, R"({"bos_token": "<s>", "add_bos_token": false})"), ElementsAre('a'));
  EXPECT_THAT(Ids(without, "a", true, R"({"bos_token": {"content": "<s>"}, "add_bos_token": true})"),
              ElementsAre(256, 'a'));
  EXPECT_THAT(Ids(without, "a", true, R"({"bos_token": "<s>"})"), ElementsAre('a'));
  EXPECT_TRUE(testing::Fails(Tokenizer::Create(without.dump(), R"({"bos_token": "<x>", "add_bos_token": true})"),
                             absl::StatusCode::kInvalidArgument, "add_bos_token"));
}

}  // namespace
}  // namespace baton
