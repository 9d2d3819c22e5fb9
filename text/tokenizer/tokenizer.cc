// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/tokenizer.h"

#include <utility>

#include "common/status_macros.h"
#include "common/strings.h"
#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/json_node.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/post_processor.h"
#include "text/tokenizer/pre_tokenizer.h"
#include "text/tokenizer/token_decoder.h"
#include "text/tokenizer/token_model.h"
#include "text/tokenizer/tokenizer_config.h"
#include "text/tokenizer/vocabulary.h"
#include "text/utf8.h"

namespace baton {
namespace {

// Bpe and Unigram use 32-bit positions. Requests have smaller limits.
constexpr size_t kMaxTextBytes = size_t{256} << 20;

// The stages of tokenizer.json. Encode runs added tokens with the normalizer, pre-tokenizers, model, post-processor.
struct Pipeline {
  Vocabulary vocabulary;
  std::unique_ptr<const Normalizer> normalizer;  // may be null
  std::optional<AddedTokens> added_tokens;
  PreTokenizers pre_tokenizers;
  TokenDecoder decoder;
  std::unique_ptr<const TokenModel> model;
  PostProcessor post_processor;
  std::optional<TokenId> bos;
};

class PipelineTokenizer : public Tokenizer {
 public:
  explicit PipelineTokenizer(std::unique_ptr<const Pipeline> pipeline) : pipeline_(std::move(pipeline)) {}

  absl::StatusOr<std::vector<TokenId>> Encode(std::string_view text, bool add_special_tokens) const override {
    if (text.size() > kMaxTextBytes) {
      return absl::ResourceExhaustedError(
          Concat("text to tokenize: expected at most ", kMaxTextBytes, " bytes, got ", text.size()));
    }
    std::string repaired;
    Pieces pieces;
    pieces.list.push_back({RepairUtf8(text, repaired)});
    BATON_RETURN_IF_ERROR(pipeline_->added_tokens->Split(pipeline_->normalizer.get(), pieces));
    for (const auto& pre_tokenizer : pipeline_->pre_tokenizers.chain)
      BATON_RETURN_IF_ERROR(pre_tokenizer->Split(pieces));
    std::vector<TokenId> ids;
    ids.reserve(pieces.list.size() + pieces.list.size() / 2);
    for (const Piece& piece : pieces.list) {
      if (piece.token != Piece::kText) {
        ids.push_back(piece.token);
      } else {
        pipeline_->model->Encode(piece.text, ids);
      }
    }
    if (add_special_tokens) pipeline_->post_processor.AddSpecialTokens(ids);
    return ids;
  }

  absl::StatusOr<std::string> Decode(const std::vector<TokenId>& ids, bool skip_special_tokens) const override {
    std::string bytes;
    for (const TokenId id : ids) {
      if (!pipeline_->vocabulary.Contains(id)) {
        return absl::InvalidArgumentError(Concat("token id ", id, " is not in the vocabulary"));
      }
      if (!skip_special_tokens || !IsSpecial(id)) bytes += TokenBytes(id);
    }
    std::string repaired;
    return std::string(RepairUtf8(pipeline_->decoder.Trimmed(bytes), repaired));
  }

  int vocab_size() const override { return pipeline_->vocabulary.size(); }
  std::string_view TokenBytes(TokenId id) const override { return pipeline_->vocabulary.Bytes(id); }
  bool IsSpecial(TokenId id) const override { return pipeline_->vocabulary.IsSpecial(id); }
  std::optional<TokenId> IdOf(std::string_view token_text) const override {
    return pipeline_->added_tokens->IdOf(token_text);
  }
  std::optional<TokenId> bos() const override { return pipeline_->bos; }

 private:
  const std::unique_ptr<const Pipeline> pipeline_;
};

absl::StatusOr<TokenDecoder> LoadDecoder(const JsonNode& root) {
  const std::optional<JsonNode> json = root.Find("decoder");
  if (!json) return root.Unsupported("a tokenizer without a decoder");
  return TokenDecoder::Load(*json);
}

// Applies add_bos_token or add_eos_token of tokenizer_config.json, which overrides the post-processor of
// tokenizer.json. `side` holds the tokens that the post-processor adds at that end of a text.
absl::Status Override(std::optional<bool> wanted, std::optional<TokenId> token, std::string_view key,
                      std::vector<TokenId>& side) {
  if (!wanted || *wanted == !side.empty()) return absl::OkStatus();
  if (!*wanted) {
    side.clear();
    return absl::OkStatus();
  }
  if (!token) {
    return absl::InvalidArgumentError(
        Concat("tokenizer_config.json: ", key, ": expected false, because the token is not an added token"));
  }
  side.push_back(*token);
  return absl::OkStatus();
}

absl::Status ApplyConfig(const TokenizerConfig& config, Pipeline& pipeline) {
  PostProcessor& post = pipeline.post_processor;
  if (config.bos_token) pipeline.bos = pipeline.added_tokens->IdOf(*config.bos_token);
  if (!pipeline.bos && post.prefix.size() == 1) pipeline.bos = post.prefix[0];
  const std::optional<TokenId> eos = config.eos_token ? pipeline.added_tokens->IdOf(*config.eos_token) : std::nullopt;
  BATON_RETURN_IF_ERROR(Override(config.add_bos_token, pipeline.bos, "add_bos_token", post.prefix));
  return Override(config.add_eos_token, eos, "add_eos_token", post.suffix);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Create(std::string_view tokenizer_json,
                                                             std::string_view tokenizer_config_json) {
  BATON_ASSIGN_OR_RETURN(const nlohmann::json document, ParseJson(tokenizer_json, "tokenizer.json"));
  const auto root = JsonNode::OfFile(document, "tokenizer.json");
  auto pipeline = std::make_unique<Pipeline>();
  BATON_ASSIGN_OR_RETURN(pipeline->decoder, LoadDecoder(root));
  BATON_ASSIGN_OR_RETURN(pipeline->normalizer, LoadNormalizer(root.Find("normalizer")));
  BATON_ASSIGN_OR_RETURN(pipeline->pre_tokenizers, LoadPreTokenizers(root.Find("pre_tokenizer")));
  if (pipeline->pre_tokenizers.is_byte_level != pipeline->decoder.is_byte_level()) {
    return root.Unsupported("only one of ByteLevel pre-tokenizer and ByteLevel decoder");
  }
  BATON_ASSIGN_OR_RETURN(const JsonNode model, root.Get("model"));
  BATON_ASSIGN_OR_RETURN(pipeline->model, LoadTokenModel(model, pipeline->decoder, pipeline->vocabulary));
  BATON_ASSIGN_OR_RETURN(pipeline->added_tokens, AddedTokens::Load(root.Find("added_tokens"),
                                                                   pipeline->normalizer.get(), pipeline->vocabulary));
  BATON_ASSIGN_OR_RETURN(pipeline->post_processor,
                         LoadPostProcessor(root.Find("post_processor"), pipeline->vocabulary));
  BATON_ASSIGN_OR_RETURN(const TokenizerConfig config, ParseTokenizerConfig(tokenizer_config_json));
  BATON_RETURN_IF_ERROR(ApplyConfig(config, *pipeline));
  return std::make_unique<PipelineTokenizer>(std::move(pipeline));
}

}  // namespace baton
