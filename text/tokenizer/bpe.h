// Byte-pair encoding (Sennrich et al., 2016), over bytes (Radford et al., 2019) or characters: a piece starts as its
// single bytes' or characters' tokens; of all adjacent pairs that have a merge, the one earliest in the merge list, and
// leftmost, becomes one token, until none has. A character without a token becomes those of its bytes, <0xE2> and so on
// (byte_fallback), or the unknown one.
//
// SentencePiece's BPE is the same where merges are in the order of their result's score; those of one score are equals.
//
// Near linear in the length of a piece. Immutable after Load, so thread-safe.
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
  // From tokenizer.json's model, of type BPE: over bytes or characters, as `decoder` is. The tokens' bytes go into
  // `vocabulary`. Beside Hugging Face's fields there may be `merge_ranks`, an array of numbers that never fall: merges
  // of the same one are equals.
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
  // Tokens by the text that vocabularies are written in.
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

  // The tokens that `piece` starts as, at most one per byte; returns how many.
  size_t Start(std::string_view piece, TokenId* tokens) const;
  size_t StartOfCharacter(std::string_view character, TokenId* tokens, bool after_unknown) const;
  const Merge* FindMerge(TokenId left, TokenId right) const;
  void EncodeWord(std::string_view word, std::vector<TokenId>& out) const;
  void EncodeShort(std::string_view piece, std::vector<TokenId>& out) const;
  void EncodeLong(std::string_view piece, std::vector<TokenId>& out) const;
  void EncodeByMerges(std::string_view piece, std::vector<TokenId>& out) const;

  bool over_bytes_ = true;
  std::array<TokenId, 256> byte_tokens_{};  // over characters: of byte_fallback, or kNone
  // Over characters:
  absl::flat_hash_map<char32_t, TokenId> character_tokens_;
  TokenId unknown_token_ = kNone;
  bool fuses_unknown_ = false;  // a row of unknown characters is one token
  // No merge reaches over the beginning of a word, U+2581 behind another character: each can be encoded on its own.
  bool separates_words_ = false;

  absl::flat_hash_map<uint64_t, Merge> merges_;  // by left << 32 | right
  // Pieces known to be one token. Most words are, so that most pieces cost one look-up.
  absl::flat_hash_map<absl::string_view, TokenId> whole_pieces_;
  std::string whole_piece_bytes_;
};

}  // namespace baton
