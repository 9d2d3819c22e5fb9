// SPDX-License-Identifier: Apache-2.0
// Tests loading of tokenizer.json and tokenizer_config.json, and the errors for unsupported and malformed files.
#include <gtest/gtest.h>

#include "test_tokenizer.h"
#include "tests/status_matchers.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_config.h"

namespace baton {
namespace {

using absl::StatusCode;
using testing::Fails;
using testing::SmallTokenizer;

// Loads a valid file with `value` in place of the value at `path`, a JSON pointer.
absl::Status LoadWith(const std::string& path, nlohmann::json value) {
  nlohmann::json json = SmallTokenizer({{"a", "b"}});
  json[nlohmann::json::json_pointer(path)] = std::move(value);
  return Tokenizer::Create(json.dump(), "").status();
}

nlohmann::json Type(const char* type) { return {{"type", type}}; }

TEST(TokenizerJsonTest, NamesUnsupportedFeaturesAndTheirPath) {
  const struct {
    const char* path;
    nlohmann::json value;
    const char* message;
  } cases[] = {
      {"/normalizer", Type("BertNormalizer"), "tokenizer.json: normalizer: normalizer 'BertNormalizer'"},
      {"/normalizer",
       {{"type", "Sequence"}, {"normalizers", nlohmann::json::array({Type("Precompiled")})}},
       "normalizer 'Precompiled'"},
      {"/normalizer",
       {{"type", "Sequence"}, {"normalizers", nlohmann::json::array({Type("Sequence")})}},
       "a Sequence within a Sequence"},
      {"/pre_tokenizer", Type("UnicodeScripts"), "pre_tokenizer: pre-tokenizer 'UnicodeScripts'"},
      {"/pre_tokenizer",
       {{"type", "Sequence"}, {"pretokenizers", {Type("BertPreTokenizer"), Type("ByteLevel")}}},
       "pre_tokenizer.pretokenizers[0]: pre-tokenizer 'BertPreTokenizer'"},
      {"/pre_tokenizer",
       {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "last"}},
       "prepend_scheme 'last'"},
      {"/pre_tokenizer",
       {{"type", "Sequence"}, {"pretokenizers", {Type("ByteLevel"), Type("ByteLevel")}}},
       "pre-tokenizer 'ByteLevel' after ByteLevel"},
      {"/pre_tokenizer", nullptr, "only one of ByteLevel pre-tokenizer and ByteLevel decoder"},
      {"/pre_tokenizer",
       {{"type", "Split"}, {"pattern", {{"Regex", "a"}}}, {"behavior", "Sideways"}},
       "behavior 'Sideways'"},
      {"/pre_tokenizer",
       {{"type", "Split"}, {"pattern", {{"Regex", "[a&&]"}}}, {"behavior", "Isolated"}},
       "pre_tokenizer.pattern.Regex: a regular expression with an empty class or an empty operand of &&"},
      {"/post_processor", Type("BertProcessing"), "post-processor 'BertProcessing'"},
      {"/decoder", Type("WordPiece"), "decoder: decoder 'WordPiece'"},
      {"/decoder", Type("ByteFallback"), "only one of ByteLevel pre-tokenizer and ByteLevel decoder"},
      {"/decoder",
       {{"type", "Sequence"}, {"decoders", {Type("Fuse"), Type("ByteLevel")}}},
       "a ByteLevel decoder together with other decoders"},
      {"/decoder", {{"type", "Strip"}, {"content", " "}, {"start", 0}, {"stop", 1}}, "a Strip decoder at the end"},
      {"/decoder",
       {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "last"}},
       "decoder.prepend_scheme: prepend_scheme 'last'"},
      {"/decoder", nullptr, "decoder"},
      {"/model/type", "WordPiece", "model: model 'WordPiece'"},
      {"/model/type", "Unigram", "model: a Unigram model over bytes"},
      {"/model/byte_fallback", true, "byte_fallback"},
      {"/model/dropout", 0.1, "dropout"},
      {"/model/end_of_word_suffix", "</w>", "end_of_word_suffix"},
  };
  for (const auto& c : cases) {
    EXPECT_TRUE(Fails(LoadWith(c.path, c.value), StatusCode::kUnimplemented, c.message)) << c.path;
  }
}

TEST(TokenizerJsonTest, NamesTheMalformedField) {
  const struct {
    const char* path;
    nlohmann::json value;
    const char* message;
  } cases[] = {
      {"/model", 5, "model"},
      {"/model/vocab", nlohmann::json::array(),
       "model.vocab: expected an object that maps tokens to ids, got an array"},
      {"/model/vocab/ab", "x", "tokenizer.json: model.vocab['ab']: expected an integer, got \"x\""},
      {"/model/vocab/ab", -1, "-1"},
      {"/model/vocab/ab", 97, "expected a unique id, got 97, which another token has"},
      {"/model/vocab/ab", 18446744073709551615ULL, "expected an integer"},
      {"/model/merges/0", 7, R"(tokenizer.json: model.merges[0]: expected "left right" or ["left", "right"], got 7)"},
      {"/model/merges/0", "a b c", "model.merges[0]: expected \"left right\""},
      {"/model/merges/0", "a c", "expected tokens of the vocabulary, got 'ac'"},
      {"/added_tokens", 1, "added_tokens: expected an array"},
      {"/decoder", {{"type", "Metaspace"}, {"replacement", ""}}, "decoder.replacement: expected a text, got \"\""},
      {"/pre_tokenizer/use_regex", "yes", "pre_tokenizer.use_regex: expected true or false"},
      {"/post_processor",
       {{"type", "TemplateProcessing"},
        {"single", {{{"SpecialToken", {{"id", "<s>"}}}}}},
        {"special_tokens", {{"<s>", {{"ids", {9999}}}}}}},
       "9999"},
  };
  for (const auto& c : cases) {
    EXPECT_TRUE(Fails(LoadWith(c.path, c.value), StatusCode::kInvalidArgument, c.message)) << c.path;
  }
  EXPECT_TRUE(
      Fails(Tokenizer::Create("{\"model\": ", ""), StatusCode::kInvalidArgument, "tokenizer.json: not valid JSON"));
  EXPECT_TRUE(
      Fails(LoadWith("/pre_tokenizer", {{"type", "Split"}, {"pattern", {{"Regex", "(a"}}}, {"behavior", "Isolated"}}),
            StatusCode::kInvalidArgument, "pre_tokenizer.pattern.Regex: expected a regular expression, got '(a'"));
}

TEST(TokenizerJsonTest, RefusesAByteWithoutAToken) {
  nlohmann::json json = SmallTokenizer();
  json["model"]["vocab"].erase("a");
  EXPECT_TRUE(Fails(Tokenizer::Create(json.dump(), ""), StatusCode::kUnimplemented, "'a'"));
}

TEST(TokenizerJsonTest, AcceptsAnEmptySequenceOfNormalizers) {
  EXPECT_OK(LoadWith("/normalizer", {{"type", "Sequence"}, {"normalizers", nlohmann::json::array()}}));
}

TEST(TokenizerConfigTest, TokensAreStringsOrObjects) {
  ASSERT_OK_AND_ASSIGN(const TokenizerConfig config,
                       ParseTokenizerConfig(R"({"bos_token": {"content": "<s>"}, "eos_token": "</s>",
                                                "add_bos_token": true, "unknown": [1]})"));
  EXPECT_EQ(config.bos_token, "<s>");
  EXPECT_EQ(config.eos_token, "</s>");
  EXPECT_EQ(config.add_bos_token, true);
  EXPECT_EQ(config.add_eos_token, std::nullopt);
  EXPECT_EQ(config.chat_template, std::nullopt);
}

TEST(TokenizerConfigTest, ReadsFurtherSpecialTokensByName) {
  ASSERT_OK_AND_ASSIGN(const TokenizerConfig config,
                       ParseTokenizerConfig(R"({"pad_token": "<p>", "unk_token": {"content": "<u>"}, "mask_token": null,
                                                "additional_special_tokens": ["<a>", {"content": "<b>"}],
                                                "extra_special_tokens": {"image_token": "<i>"}})"));
  const TemplateValue::Dict& tokens = config.more_special_tokens;
  ASSERT_EQ(tokens.size(), 4U);
  EXPECT_EQ(tokens[0].first, "unk_token");
  EXPECT_EQ(std::get<std::string>(tokens[0].second.data()), "<u>");
  EXPECT_EQ(tokens[1].first, "pad_token");
  EXPECT_EQ(tokens[2].first, "additional_special_tokens");
  const auto& list = std::get<TemplateValue::List>(tokens[2].second.data());
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(std::get<std::string>(list[1].data()), "<b>");
  EXPECT_EQ(tokens[3].first, "image_token");
  ASSERT_OK_AND_ASSIGN(const TokenizerConfig list_of_extra,
                       ParseTokenizerConfig(R"({"extra_special_tokens": ["<i>"]})"));
  EXPECT_TRUE(list_of_extra.more_special_tokens.empty()) << "they have no names";
}

TEST(TokenizerConfigTest, ReadsTheTemplatesDefaultAndToolUse) {
  ASSERT_OK_AND_ASSIGN(const TokenizerConfig config,
                       ParseTokenizerConfig(R"({"chat_template": [{"name": "tool_use", "template": "T"},
                                                                  {"name": "rag", "template": "R"},
                                                                  {"name": "default", "template": "D"}]})"));
  EXPECT_EQ(config.chat_template, "D");
  EXPECT_EQ(config.tool_template, "T");
}

TEST(TokenizerConfigTest, AnEmptyTextGivesAnEmptyConfig) {
  ASSERT_OK_AND_ASSIGN(const TokenizerConfig config, ParseTokenizerConfig(""));
  EXPECT_FALSE(config.bos_token || config.eos_token || config.chat_template || config.add_bos_token);
}

TEST(TokenizerConfigTest, NamesTheMalformedField) {
  EXPECT_TRUE(Fails(ParseTokenizerConfig("[]"), StatusCode::kInvalidArgument, "tokenizer_config.json"));
  EXPECT_TRUE(Fails(ParseTokenizerConfig(R"({"bos_token": 5})"), StatusCode::kInvalidArgument, "bos_token"));
  EXPECT_TRUE(Fails(ParseTokenizerConfig(R"({"additional_special_tokens": ["a", 5]})"), StatusCode::kInvalidArgument,
                    "additional_special_tokens[1]"));
  EXPECT_TRUE(Fails(ParseTokenizerConfig(R"({"extra_special_tokens": {"x": 5}})"), StatusCode::kInvalidArgument,
                    "extra_special_tokens.x"));
  EXPECT_TRUE(
      Fails(ParseTokenizerConfig(R"({"add_bos_token": "yes"})"), StatusCode::kInvalidArgument, "add_bos_token"));
  EXPECT_TRUE(Fails(ParseTokenizerConfig(R"({"chat_template": [{"name": "default"}]})"), StatusCode::kInvalidArgument,
                    "chat_template[0]"));
}

}  // namespace
}  // namespace baton
