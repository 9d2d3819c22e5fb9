// SPDX-License-Identifier: Apache-2.0
// The special tokens that a tokenizer adds before and after a text; for most models BOS before.
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

  // Adds `prefix` and `suffix` to `ids`. Adds no prefix when `ids` already starts with it.
  void AddSpecialTokens(std::vector<TokenId>& ids) const;
};

// Loads the `post_processor` of tokenizer.json. INVALID_ARGUMENT when a special token is not in `vocabulary`.
absl::StatusOr<PostProcessor> LoadPostProcessor(const std::optional<JsonNode>& json, const Vocabulary& vocabulary);

}  // namespace baton
