// Tokens that are found in the text before the model sees it: special ones such as <|user|>, and words that were added
// to a vocabulary later.
//
// At each position the longest one counts. Those not marked `normalized` are found first, in the whole text; then the
// others, in what is left, normalized.
//
// Immutable after Load, so thread-safe.
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
#include "text/tokenizer/regex.h"

namespace baton {

class JsonNode;
class Normalizer;
class Vocabulary;

struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool special = false;
  bool normalized = false;
  bool single_word = false;  // only where no letter, digit or underscore adjoins
  bool lstrip = false;       // takes the whitespace to its left along
  bool rstrip = false;       // ... to its right
};

// Finds one set of added tokens in texts.
class AddedTokenMatcher {
 public:
  static absl::StatusOr<AddedTokenMatcher> Create(std::vector<AddedToken> tokens);

  absl::Status Split(Pieces& pieces) const;

 private:
  struct Match {
    size_t begin;
    size_t end;
    int token;  // in tokens_
  };
  absl::Status SplitText(std::string_view text, std::vector<Piece>& out) const;
  std::optional<Match> FindNext(std::string_view text, size_t from) const;
  absl::StatusOr<bool> StandsAlone(std::string_view text, const Match& match) const;
  absl::StatusOr<bool> IsWordCharacter(std::string_view character) const;

  std::vector<AddedToken> tokens_;
  // A trie: (node << 8 | byte) -> node, from node 0. token_at_[node] is the token that ends there, or -1.
  absl::flat_hash_map<uint64_t, int> edges_;
  std::vector<int> token_at_;
  std::vector<bool> starts_token_;       // by first byte
  std::optional<Regex> word_character_;  // when a token is single_word
};

class AddedTokens {
 public:
  // From tokenizer.json's added_tokens (null: none). Their text and ids go into `vocabulary`. A null normalizer changes
  // nothing.
  static absl::StatusOr<AddedTokens> Load(const std::optional<JsonNode>& json, const Normalizer* normalizer,
                                          Vocabulary& vocabulary);

  // Leaves the text between added tokens normalized.
  absl::Status Split(const Normalizer* normalizer, Pieces& pieces) const;

  std::optional<TokenId> IdOf(std::string_view content) const;

 private:
  AddedTokens(AddedTokenMatcher raw, AddedTokenMatcher normalized, absl::flat_hash_map<std::string, TokenId> ids);

  AddedTokenMatcher raw_;
  AddedTokenMatcher normalized_;
  absl::flat_hash_map<std::string, TokenId> ids_;
};

}  // namespace baton
