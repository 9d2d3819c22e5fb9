// SPDX-License-Identifier: Apache-2.0
// Pre-tokenizers split text into pieces, which the model encodes separately. A tokenizer applies a chain of
// pre-tokenizers: each splits the pieces that the previous pre-tokenizer left.
//
// Immutable, so thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "text/tokenizer/pieces.h"

namespace baton {

class JsonNode;

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // RESOURCE_EXHAUSTED when a regular expression hits a limit.
  virtual absl::Status Split(Pieces& pieces) const = 0;
};

struct PreTokenizers {
  std::vector<std::unique_ptr<PreTokenizer>> chain;
  bool is_byte_level = false;  // the chain has a ByteLevel step, so the model encodes bytes
};

// Loads the `pre_tokenizer` of tokenizer.json (nullopt: empty chain). UNIMPLEMENTED names an unsupported step.
absl::StatusOr<PreTokenizers> LoadPreTokenizers(const std::optional<JsonNode>& json);

}  // namespace baton
