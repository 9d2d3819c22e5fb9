// The tokens that a tokenizer puts around a text: BOS before it, for most models.
//
// Immutable, so thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ids.h"

namespace baton {

class JsonNode;
class Vocabulary;

struct PostProcessor {
  std::vector<TokenId> prefix;
  std::vector<TokenId> suffix;

  // Puts them around `ids`. What `ids` starts with already is not put there again.
  void AddSpecialTokens(std::vector<TokenId>& ids) const;
};

// From tokenizer.json's post_processor. The ids it names must be in `vocabulary`.
absl::StatusOr<PostProcessor> LoadPostProcessor(const std::optional<JsonNode>& json, const Vocabulary& vocabulary);

}  // namespace baton
