// SPDX-License-Identifier: Apache-2.0
// Compares our ids with SentencePiece's ids, for models that SentencePiece trained
// (tests/golden/make_sentencepiece.py). The BPE model is loaded from GGUF scores, the Unigram model from
// tokenizer.json.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "engine/formats/gguf_convert.h"
#include "tests/files.h"
#include "tests/gguf_builder.h"
#include "tests/status_matchers.h"
#include "text/tokenizer/tokenizer.h"

namespace baton {
namespace {

using Json = nlohmann::json;

const Json& Golden() {
  static const auto* const kGolden =
      new Json(Json::parse(testing::ReadFile(testing::SourceFolder() / "tests/golden/sentencepiece.json")));
  return *kGolden;
}

std::map<std::string, std::string> BpeFromGguf(const Json& model) {
  testing::GgufBuilder builder;
  builder.String("tokenizer.ggml.model", "llama");
  builder.Strings("tokenizer.ggml.tokens", model["pieces"].get<std::vector<std::string>>());
  builder.Float32s("tokenizer.ggml.scores", model["scores"].get<std::vector<float>>());
  builder.Int32s("tokenizer.ggml.token_type", model["types"].get<std::vector<int32_t>>());
  const std::string bytes = builder.File("");
  const auto file = ParseGguf(std::as_bytes(std::span(bytes)), "m.gguf");
  return *GgufTextAssets({"m.gguf", {}, file->metadata, {}});
}

void ExpectGoldenIds(const Tokenizer& tokenizer, const Json& model) {
  for (size_t i = 0; i < Golden()["texts"].size(); ++i) {
    const std::string text = Golden()["texts"][i];
    ASSERT_OK_AND_ASSIGN(const std::vector<TokenId> ids, tokenizer.Encode(text, false));
    EXPECT_EQ(Json(ids), model["ids"][i]) << Json(text);
    // U+2581 in a text decodes to a space, as in SentencePiece.
    EXPECT_EQ(*tokenizer.Decode(ids, false), absl::StrReplaceAll(text, {{"\u2581", " "}}));
  }
}

TEST(SentencePieceGoldenTest, BpeFromGgufGivesSentencePiecesIds) {
  const Json& model = Golden()["bpe"];
  const auto texts = BpeFromGguf(model);
  ASSERT_OK_AND_ASSIGN(const auto tokenizer, Tokenizer::Create(texts.at("tokenizer.json"), ""));
  ExpectGoldenIds(*tokenizer, model);
}

TEST(SentencePieceGoldenTest, UnigramGivesSentencePiecesIds) {
  const Json& model = Golden()["unigram"];
  // Both models use the same normalizer and decoder.
  Json json = Json::parse(BpeFromGguf(Golden()["bpe"]).at("tokenizer.json"));
  Json vocab = Json::array();
  for (size_t i = 0; i < model["pieces"].size(); ++i) vocab.push_back({model["pieces"][i], model["scores"][i]});
  json["model"] = {{"type", "Unigram"}, {"unk_id", 0}, {"byte_fallback", true}, {"vocab", vocab}};
  ASSERT_OK_AND_ASSIGN(const auto tokenizer, Tokenizer::Create(json.dump(), ""));
  ExpectGoldenIds(*tokenizer, model);
}

}  // namespace
}  // namespace baton
