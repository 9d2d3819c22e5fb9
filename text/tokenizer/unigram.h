// SPDX-License-Identifier: Apache-2.0
// SentencePiece's unigram model (Kudo, 2018). Encode finds the split of a piece with the highest sum of token scores,
// by dynamic programming. Among equal splits, the split with the longest last token wins.
//
// A character that is no token costs a score below every token's. A run of such characters becomes one unknown token,
// or byte tokens (<0xE2>...) with byte_fallback. As in SentencePiece, the literal text "<0xE2>" is not a byte token.
//
// Encode takes time O(piece length x longest token). Immutable after Load, so thread-safe.
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

  // A trie with root 0: (node << 8 | byte) -> child node. token_at_[node] is the token that ends at node, or kNone.
  absl::flat_hash_map<uint64_t, uint32_t> edges_;
  std::vector<TokenId> token_at_;
  std::vector<double> scores_;  // by id
  double unknown_score_ = 0;
  TokenId unknown_token_ = kNone;
  std::array<TokenId, 256> byte_tokens_{};  // for byte_fallback; kNone without
};

}  // namespace baton
