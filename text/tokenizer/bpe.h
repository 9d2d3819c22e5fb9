// SPDX-License-Identifier: Apache-2.0
// Byte-pair encoding (Sennrich et al., 2016), over bytes (Radford et al., 2019) or characters.
//
// A piece starts as one token per byte or character. Then the adjacent pair with the lowest merge rank becomes one
// token, until no pair has a merge. Among equal ranks, the leftmost pair is first. A character without a token becomes
// byte tokens (<0xE2>..., byte_fallback) or the unknown token.
//
// SentencePiece's BPE is the same algorithm with ranks by score, where merges of equal score share a rank. Encode takes
// time near linear in the piece's length. Immutable after Load, so thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "text/tokenizer/token_model.h"

namespace baton {

class Bpe final : public TokenModel {
 public:
  // Loads a `model` of type BPE from tokenizer.json and adds its tokens to `vocabulary`. `decoder` decides between
  // bytes and characters. The optional field `merge_ranks` is our extension to Hugging Face's format: the rank of each
  // merge, non-decreasing. Merges may share a rank.
  static absl::StatusOr<std::unique_ptr<const TokenModel>> Load(const JsonNode& json, const TokenDecoder& decoder,
                                                                Vocabulary& vocabulary);

  Bpe(const Bpe&) = delete;
  Bpe& operator=(const Bpe&) = delete;

  void Encode(std::string_view piece, std::vector<TokenId>& out) const override;

 private:
  struct Merge {
    uint32_t rank;
    TokenId result;
  };
  // Keys are spelled as in tokenizer.json (see byte_alphabet.h), not decoded.
  using IdsByWord = absl::flat_hash_map<std::string, TokenId>;

  static constexpr TokenId kNone = -1;

  Bpe() = default;
  absl::Status LoadVocabulary(const JsonNode& json, const TokenDecoder& decoder, Vocabulary& vocabulary,
                              IdsByWord& ids);
  absl::Status FindByteTokens(const JsonNode& json, const IdsByWord& ids);
  absl::Status FindCharacterTokens(const JsonNode& json, const IdsByWord& ids);
  absl::Status LoadMerges(const JsonNode& json, const std::optional<JsonNode>& ranks, const IdsByWord& ids);
  bool SeparatesWords() const;
  void FindWholePieces(const Vocabulary& vocabulary, const IdsByWord& ids, bool ignore_merges);

  // Writes the tokens of the single bytes or characters of `piece`, at most one per byte. Returns their number.
  size_t InitialTokens(std::string_view piece, TokenId* tokens) const;
  size_t FallbackTokens(std::string_view character, TokenId* tokens, bool after_unknown) const;
  const Merge* FindMerge(TokenId left, TokenId right) const;
  void EncodeWord(std::string_view word, std::vector<TokenId>& out) const;
  void EncodeShort(std::string_view piece, std::vector<TokenId>& out) const;
  void EncodeLong(std::string_view piece, std::vector<TokenId>& out) const;
  void EncodeByMerges(std::string_view piece, std::vector<TokenId>& out) const;

  bool over_bytes_ = true;
  std::array<TokenId, 256> byte_tokens_{};  // over characters: the tokens of byte_fallback, or kNone
  // Used only over characters:
  absl::flat_hash_map<char32_t, TokenId> character_tokens_;
  TokenId unknown_token_ = kNone;
  bool fuses_unknown_ = false;  // a run of unknown characters becomes one unknown token
  // A word begins at a U+2581 after another character. True when no merge crosses such a position, so that Encode may
  // treat words separately.
  bool separates_words_ = false;

  absl::flat_hash_map<uint64_t, Merge> merges_;  // by left << 32 | right
  // Pieces that encode to one token. Most words are such pieces and cost one look-up.
  absl::flat_hash_map<absl::string_view, TokenId> whole_pieces_;
  std::string whole_piece_bytes_;
};

}  // namespace baton
