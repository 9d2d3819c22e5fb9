// SPDX-License-Identifier: Apache-2.0
// Finds added tokens in a text, before normalizer, pre-tokenizer and model run. Added tokens are special tokens such as
// <|user|>, and words that were added to a vocabulary after training.
//
// The longest match at a position wins. First, the input text is searched for tokens that are not `normalized`. Then
// the remaining text is normalized and searched for `normalized` tokens. Immutable after Load, so thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/ids.h"
#include "text/tokenizer/pieces.h"

namespace baton {

class JsonNode;
class Normalizer;
class Vocabulary;

struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool special = false;
  bool normalized = false;
  bool single_word = false;  // matches only between characters that are not letters, digits or underscores
  bool lstrip = false;       // the match includes whitespace before the token
  bool rstrip = false;       // the match includes whitespace after the token
};

// Splits pieces at the tokens of one set.
class AddedTokenMatcher {
 public:
  explicit AddedTokenMatcher(std::vector<AddedToken> tokens);

  absl::Status Split(Pieces& pieces) const;

 private:
  struct Match {
    size_t begin;
    size_t end;
    int token;  // in tokens_
  };
  void SplitText(std::string_view text, std::vector<Piece>& out) const;
  std::optional<Match> FindNext(std::string_view text, size_t from) const;

  std::vector<AddedToken> tokens_;
  // A trie with root 0: (node << 8 | byte) -> child node. token_at_[node] indexes tokens_; -1 when no token ends at
  // node.
  absl::flat_hash_map<uint64_t, int> edges_;
  std::vector<int> token_at_;
  std::vector<bool> starts_token_;  // [256], by first byte
};

class AddedTokens {
 public:
  // Loads the `added_tokens` of tokenizer.json (nullopt: no tokens) and adds them to `vocabulary`. `normalizer` may be
  // null.
  static absl::StatusOr<AddedTokens> Load(const std::optional<JsonNode>& json, const Normalizer* normalizer,
                                          Vocabulary& vocabulary);

  // Splits `pieces` at added tokens and normalizes the text between them. `normalizer` may be null.
  absl::Status Split(const Normalizer* normalizer, Pieces& pieces) const;

  std::optional<TokenId> IdOf(std::string_view content) const;

 private:
  AddedTokens(AddedTokenMatcher raw, AddedTokenMatcher normalized, absl::flat_hash_map<std::string, TokenId> ids);

  AddedTokenMatcher raw_;
  AddedTokenMatcher normalized_;
  absl::flat_hash_map<std::string, TokenId> ids_;
};

}  // namespace baton
