// SentencePiece's unigram model (Kudo, 2018): of all ways to cut a piece into tokens the one with the highest sum of
// scores, found by dynamic programming over the piece's characters; of equals, that with the longest last token.
//
// A character that no token begins with at its place is unknown, at a score below every token's. Unknown characters in
// a row are one unknown token, or with byte_fallback become those of their bytes; a text that reads like the token of a
// byte is not that byte, as in SentencePiece itself.
//
// Linear in the length of a piece, times that of the longest token. Immutable after Load, so thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "text/tokenizer/token_model.h"

namespace baton {

class Unigram final : public TokenModel {
 public:
  static absl::StatusOr<std::unique_ptr<const TokenModel>> Load(const JsonNode& json, const TokenDecoder& decoder,
                                                                Vocabulary& vocabulary);

  void Encode(std::string_view piece, std::vector<TokenId>& out) const override;

 private:
  static constexpr TokenId kNone = -1;

  Unigram() = default;
  absl::Status LoadVocabulary(const JsonNode& json, const TokenDecoder& decoder, bool byte_fallback,
                              Vocabulary& vocabulary);
  absl::Status FindUnknown(const JsonNode& json);
  void AddUnknown(std::string_view text, std::vector<TokenId>& out) const;

  // A trie: (node << 8 | byte) -> node, from node 0. token_at_[node] is the token that ends there, or kNone.
  absl::flat_hash_map<uint64_t, uint32_t> edges_;
  std::vector<TokenId> token_at_;
  std::vector<double> scores_;  // by id
  double unknown_score_ = 0;
  TokenId unknown_token_ = kNone;
  std::array<TokenId, 256> byte_tokens_{};  // of byte_fallback, or kNone
};

}  // namespace baton
