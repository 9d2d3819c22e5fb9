// Byte-pair encoding (Sennrich et al., 2016) over bytes (Radford et al., 2019): a piece starts as its single bytes'
// tokens; of all adjacent pairs that have a merge, the one earliest in the merge list, and leftmost, becomes one token,
// until none has.
//
// Near linear in the length of a piece. Immutable after Load, so thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/types.h"

namespace baton {

class JsonNode;
class Vocabulary;

class Bpe {
 public:
  // From tokenizer.json's model, of type BPE. The tokens' bytes go into `vocabulary`.
  static absl::StatusOr<std::unique_ptr<Bpe>> Load(const JsonNode& json, Vocabulary& vocabulary);

  Bpe(const Bpe&) = delete;
  Bpe& operator=(const Bpe&) = delete;

  // Appends the tokens of `piece`, which is valid UTF-8 of less than 4 GiB, to `out`.
  void Encode(std::string_view piece, std::vector<TokenId>& out) const;

 private:
  struct Merge {
    uint32_t rank;
    TokenId result;
  };
  // Tokens by the text that vocabularies are written in.
  using IdsByWord = absl::flat_hash_map<std::string, TokenId>;

  Bpe() = default;
  absl::Status LoadVocabulary(const JsonNode& json, Vocabulary& vocabulary, IdsByWord& ids);
  absl::Status LoadMerges(const JsonNode& json, const IdsByWord& ids);
  void FindWholePieces(const Vocabulary& vocabulary, const IdsByWord& ids, bool ignore_merges);

  const Merge* FindMerge(TokenId left, TokenId right) const;
  void EncodeShort(std::string_view piece, std::vector<TokenId>& out) const;
  void EncodeLong(std::string_view piece, std::vector<TokenId>& out) const;
  void EncodeByMerges(std::string_view piece, std::vector<TokenId>& out) const;

  std::array<TokenId, 256> byte_tokens_{};
  absl::flat_hash_map<uint64_t, Merge> merges_;  // by left << 32 | right
  // Pieces known to be one token. Most words are, so that most pieces cost one look-up.
  absl::flat_hash_map<absl::string_view, TokenId> whole_pieces_;
  std::string whole_piece_bytes_;
};

}  // namespace baton
