// SPDX-License-Identifier: Apache-2.0
// Tests BPE over characters, as in SentencePiece: prefix spaces, byte fallback, and the other stages of such
// tokenizers.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "test_tokenizer.h"
#include "tests/status_matchers.h"
#include "text/tokenizer/token_decoder.h"
#include "text/tokenizer/tokenizer.h"

namespace baton::sentencepiece {
namespace {

using Json = nlohmann::json;

constexpr char kSpace[] = "\u2581";

Json Prefix() {
  return {{"type", "Sequence"},
          {"normalizers",
           {{{"type", "Prepend"}, {"prepend", kSpace}},
            {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpace}}}}};
}

Json Decoder() {
  return {{"type", "Sequence"},
          {"decoders",
           {{{"type", "Replace"}, {"pattern", {{"String", kSpace}}}, {"content", " "}},
            {{"type", "ByteFallback"}},
            {{"type", "Fuse"}},
            {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}};
}

// Ids: 0 is "<unk>", 1 to 256 are bytes, then U+2581, letters, digits and the results of `merges`.
Json Small(const std::vector<std::pair<std::string, std::string>>& merges = {}, bool bytes = true) {
  Json vocab = {{"<unk>", 0}};
  for (int byte = 0; byte < 256 && bytes; ++byte) vocab[FallbackToken(static_cast<unsigned char>(byte))] = 1 + byte;
  int next = 257;
  vocab[kSpace] = next++;
  for (char c = 'a'; c <= 'z'; ++c) vocab[std::string(1, c)] = next++;
  for (char c = '0'; c <= '9'; ++c) vocab[std::string(1, c)] = next++;
  Json list = Json::array();
  for (const auto& [left, right] : merges) {
    vocab.emplace(left + right, next);
    ++next;
    list.push_back({left, right});
  }
  return {{"added_tokens", Json::array()},
          {"normalizer", Prefix()},
          {"pre_tokenizer", nullptr},
          {"post_processor", nullptr},
          {"decoder", Decoder()},
          {"model",
           {{"type", "BPE"}, {"byte_fallback", bytes}, {"unk_token", "<unk>"}, {"vocab", vocab}, {"merges", list}}}};
}

std::unique_ptr<Tokenizer> Load(const Json& json) {
  auto tokenizer = Tokenizer::Create(json.dump(), "");
  EXPECT_OK(tokenizer);
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

// Encodes `text`. Returns the tokens as spelled in the vocabulary.
std::vector<std::string> Words(const Json& json, const std::string& text) {
  std::map<int, std::string> words;
  for (const auto& [word, id] : json["model"]["vocab"].items()) words[id] = word;
  std::vector<std::string> found;
  const auto tokenizer = Load(json);
  if (tokenizer == nullptr) return {};
  const std::vector<TokenId> ids = tokenizer->Encode(text, false).value();
  for (const TokenId id : ids) found.push_back(words.at(id));
  return found;
}
using List = std::vector<std::string>;

std::string RoundTrip(const Tokenizer& tokenizer, const std::string& text) {
  const auto ids = tokenizer.Encode(text, false);
  EXPECT_OK(ids);
  return ids.ok() ? tokenizer.Decode(*ids, false).value_or("") : "";
}

TEST(SentencePieceTest, ReplacesSpacesAndPrependsOne) {
  const Json json = Small({{kSpace, "a"}, {"a", "b"}});
  EXPECT_EQ(Words(json, "ab a"), (List{"\u2581a", "b", "\u2581a"}));
  EXPECT_EQ(Words(json, " a"), (List{kSpace, "\u2581a"}));
  EXPECT_EQ(Words(json, ""), List{});
}

// Bpe encodes words separately unless a merge crosses the start of a word.
TEST(SentencePieceTest, MergesMayCrossSpaces) {
  EXPECT_EQ(Words(Small({{"a", kSpace}}), "b a b"), (List{kSpace, "b", kSpace, "a\u2581", "b"}));
  EXPECT_EQ(Words(Small({{kSpace, kSpace}, {"\u2581\u2581", "b"}}), "a   b b"),
            (List{kSpace, "a", "\u2581\u2581", kSpace, "b", kSpace, "b"}));
  Json json = Small({{kSpace, kSpace}}, /*bytes=*/false);
  EXPECT_EQ(Words(json, "\u00E9 a"), (List{kSpace, "<unk>", kSpace, "a"}));
  json["model"].erase("unk_token");
  EXPECT_EQ(Words(json, "\u00E9 a"), (List{"\u2581\u2581", "a"})) << "a dropped character does not separate spaces";
}

TEST(SentencePieceTest, ACharacterWithoutATokenBecomesByteTokens) {
  EXPECT_EQ(Words(Small(), "a\u00E9"), (List{kSpace, "a", "<0xC3>", "<0xA9>"}));
  EXPECT_EQ(Words(Small(), "\n"), (List{kSpace, "<0x0A>"}));
}

TEST(SentencePieceTest, WithoutByteTokensACharacterIsUnknown) {
  Json json = Small({}, /*bytes=*/false);
  EXPECT_EQ(Words(json, "a\u00E9\u00E9b"), (List{kSpace, "a", "<unk>", "<unk>", "b"}));
  json["model"]["fuse_unk"] = true;
  EXPECT_EQ(Words(json, "a\u00E9\u00E9b\u00E9"), (List{kSpace, "a", "<unk>", "b", "<unk>"}));
  json["model"].erase("unk_token");
  EXPECT_EQ(Words(json, "a\u00E9b"), (List{kSpace, "a", "b"}));
}

TEST(SentencePieceTest, AmongMergesOfEqualRankTheLeftmostPairWins) {
  Json json = Small({{"b", "c"}, {"a", "b"}});
  EXPECT_EQ(Words(json, "abc"), (List{kSpace, "a", "bc"}));
  json["model"]["merge_ranks"] = Json::array({0, 0});
  EXPECT_EQ(Words(json, "abc"), (List{kSpace, "ab", "c"}));
  // Long pieces use another implementation (EncodeLong).
  std::string text;
  List words = {kSpace};
  for (int i = 0; i < 40; ++i) {
    text += "abc";
    words.insert(words.end(), {"ab", "c"});
  }
  EXPECT_EQ(Words(json, text), words);
}

TEST(SentencePieceTest, RanksMustFitTheMerges) {
  for (const Json& ranks : {Json::array({0}), Json::array({1, 1}), Json::array({0, 2}), Json::array({0, "x"}),
                            Json::array({0, -1}), Json(5)}) {
    Json json = Small({{"b", "c"}, {"a", "b"}});
    json["model"]["merge_ranks"] = ranks;
    EXPECT_TRUE(
        testing::Fails(Tokenizer::Create(json.dump(), "").status(), absl::StatusCode::kInvalidArgument, "merge_ranks"))
        << ranks;
  }
}

TEST(SentencePieceTest, DecodeStripsThePrependedSpace) {
  const auto tokenizer = Load(Small({{kSpace, "a"}, {"a", "b"}}));
  for (const std::string text :
       {"ab a", " ab", "  a  b ", "\u00E9t\u00E9 \u6771\u4EAC", "a\n\tb", "\U0001F468\u200D\U0001F469", ""}) {
    EXPECT_EQ(RoundTrip(*tokenizer, text), text);
  }
  EXPECT_EQ(tokenizer->TokenBytes(tokenizer->Encode("a", false).value()[0]), " a")
      << "a single token keeps its space, because it may continue a text";
  EXPECT_EQ(tokenizer->Decode({1 + 0xC3}, false).value(), "\uFFFD");
  EXPECT_EQ(tokenizer->Decode({1 + 0xC3, 1 + 0xA9}, false).value(), "\u00E9");
}

TEST(SentencePieceTest, RandomTextSurvivesDecodeAndDetokenizer) {
  const auto tokenizer = Load(Small({{kSpace, "a"}, {"a", "b"}, {"e", "e"}, {kSpace, kSpace}}));
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    const std::string text = testing::RandomUnicode(random, 1 + i % 60);
    const std::vector<TokenId> ids = tokenizer->Encode(text, false).value();
    EXPECT_EQ(tokenizer->Decode(ids, false).value(), text);
    Detokenizer detokenizer(*tokenizer, false);
    std::string parts;
    for (const TokenId id : ids) parts += detokenizer.Push(id);
    EXPECT_EQ(parts + detokenizer.Flush(), " " + text);
  }
}

TEST(SentencePieceTest, EncodesAMegabyteOfOneLetter) {
  const auto tokenizer = Load(Small({{"a", "a"}, {"aa", "aa"}, {"aaaa", "aaaa"}}));
  const std::string text(1 << 20, 'a');
  EXPECT_EQ(RoundTrip(*tokenizer, text), text);
}

TEST(SentencePieceTest, MetaspaceReplacesPrependsAndSplits) {
  Json json = Small({{kSpace, "a"}, {"b", kSpace}, {kSpace, kSpace}});
  json["normalizer"] = nullptr;
  json["pre_tokenizer"] = {
      {"type", "Metaspace"}, {"replacement", kSpace}, {"prepend_scheme", "always"}, {"split", true}};
  json["decoder"] = {{"type", "Metaspace"}, {"replacement", kSpace}, {"prepend_scheme", "always"}};
  json["added_tokens"] = Json::array({testing::AddedToken(400, "<x>")});
  EXPECT_EQ(Words(json, "b a"), (List{kSpace, "b", "\u2581a"})) << "no merge across words";
  EXPECT_EQ(Words(json, "b  a"), (List{kSpace, "b", kSpace, "\u2581a"}));
  json["pre_tokenizer"]["split"] = false;
  EXPECT_EQ(Words(json, "b  a"), (List{kSpace, "b\u2581", "\u2581a"}));
  json["pre_tokenizer"]["split"] = true;

  const auto count = [&](const char* scheme, const std::string& text) {
    json["pre_tokenizer"]["prepend_scheme"] = scheme;
    return Load(json)->Encode(text, false).value().size();
  };
  EXPECT_EQ(count("always", "b<x>b"), 5u);
  EXPECT_EQ(count("first", "b<x>b"), 4u);
  EXPECT_EQ(count("first", "<x>b"), 2u);
  EXPECT_EQ(count("never", "b<x>b"), 3u);
  EXPECT_EQ(count("always", " b"), 2u) << "the text already starts with a space";
  json["pre_tokenizer"]["prepend_scheme"] = "always";
  EXPECT_EQ(RoundTrip(*Load(json), "b a"), "b a");

  for (const char* step : {"pre_tokenizer", "decoder"}) {
    json[step].erase("prepend_scheme");
    json[step]["add_prefix_space"] = false;
  }
  EXPECT_EQ(RoundTrip(*Load(json), " b"), " b") << "nothing was prepended";
}

// --- Single normalizers and pre-tokenizers ---

// Applies a normalizer to `text`.
std::string Normal(const Json& normalizer, const std::string& text) {
  Json json = testing::SmallTokenizer();
  json["normalizer"] = normalizer;
  return RoundTrip(*Load(json), text);
}

TEST(NormalizersTest, ChangeTheTextLikeHuggingFaces) {
  const Json nfkc = {{"type", "NFKC"}};
  EXPECT_EQ(Normal(nfkc, "\uFB01 \u00B2 \uFF21 cafe\u0301"), "fi 2 A caf\u00E9");
  const Json lower = {{"type", "Lowercase"}};
  EXPECT_EQ(Normal(lower, "ABC xyz \u00C0\u0391\u03A3"), "abc xyz \u00E0\u03B1\u03C3") << "no final sigma";
  EXPECT_EQ(Normal(lower, "\u0130"), "i\u0307");
  EXPECT_EQ(Normal({{"type", "Prepend"}, {"prepend", "_"}}, "a"), "_a");
  EXPECT_EQ(Normal({{"type", "Prepend"}, {"prepend", "_"}}, ""), "");
  const auto strip = [](bool left, bool right) {
    return Json{{"type", "Strip"}, {"strip_left", left}, {"strip_right", right}};
  };
  EXPECT_EQ(Normal(strip(true, true), " \n\u00A0a b\u3000 "), "a b");
  EXPECT_EQ(Normal(strip(true, false), " a "), "a ");
  EXPECT_EQ(Normal(strip(false, true), " a "), " a");
  EXPECT_EQ(Normal(strip(true, true), " \t "), "");
  const auto replace = [](const char* kind, const char* pattern, const char* content) {
    return Json{{"type", "Replace"}, {"pattern", {{kind, pattern}}}, {"content", content}};
  };
  EXPECT_EQ(Normal(replace("String", "a.", "$1"), "a.aba."), "$1ab$1")
      << "String is no regular expression, and content has no group references";
  EXPECT_EQ(Normal(replace("Regex", " {2,}", "_"), "a  b c    "), "a_b c_");
  EXPECT_EQ(Normal(replace("Regex", "x*", "-"), "ab"), "-a-b-");
  EXPECT_EQ(Normal({{"type", "Sequence"},
                    {"normalizers", Json::array({lower, replace("String", "a", "bb"), strip(true, true)})}},
                   " A "),
            "bb");
}

// Returns the pieces after `pre_tokenizer`. Merges exist for all neighbours in the test texts, so a piece of two
// characters becomes one token.
List Pieces(const Json& pre_tokenizer, const std::string& text) {
  std::vector<std::pair<std::string, std::string>> merges;
  const std::string letters = "ab12";
  for (const char left : letters) {
    for (const char right : letters) merges.push_back({std::string(1, left), std::string(1, right)});
  }
  Json json = Small(merges);
  for (const char* word : {"!", ".", "$", "!.", "a!", "!a", "\u00BD"})
    json["model"]["vocab"][word] = 2000 + word[0] + 8 * word[1];
  for (const auto& [left, right] : {std::pair("!", "."), std::pair("a", "!"), std::pair("!", "a")}) {
    json["model"]["merges"].push_back({left, right});
  }
  json["normalizer"] = nullptr;
  json["pre_tokenizer"] = pre_tokenizer;
  return Words(json, text);
}

TEST(PreTokenizersTest, SplitLikeHuggingFaces) {
  EXPECT_EQ(Pieces({{"type", "Digits"}, {"individual_digits", true}}, "ab12"), (List{"ab", "1", "2"}));
  EXPECT_EQ(Pieces({{"type", "Digits"}}, "a12b"), (List{"a", "12", "b"}));
  EXPECT_EQ(Pieces({{"type", "Punctuation"}}, "ab!.a"), (List{"ab", "!", ".", "a"}));
  EXPECT_EQ(Pieces({{"type", "Punctuation"}, {"behavior", "Contiguous"}}, "ab!.a"), (List{"ab", "!.", "a"}));
  EXPECT_EQ(Pieces({{"type", "Punctuation"}, {"behavior", "Removed"}}, "a$!a"), (List{"a", "a"}))
      << "$ counts as punctuation";
  EXPECT_EQ(Pieces({{"type", "Whitespace"}}, "a1 !.  a!"), (List{"a1", "!.", "a", "!"}));
  EXPECT_EQ(Pieces({{"type", "WhitespaceSplit"}}, " a! \n ab"), (List{"a!", "ab"}));
  EXPECT_EQ(Pieces({{"type", "Sequence"},
                    {"pretokenizers", Json::array({Json{{"type", "WhitespaceSplit"}}, Json{{"type", "Digits"}}})}},
                   "a1 2"),
            (List{"a", "1", "2"}));
}

}  // namespace
}  // namespace baton::sentencepiece
