// Pre-tokenizers cut text into the pieces that the model encodes, each on its own.
//
// A tokenizer's pre-tokenizer is a list of them; each refines what the one before left. Immutable, so thread-safe.
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
  bool is_byte_level = false;  // ByteLevel is among the steps: the model sees bytes
};

// From tokenizer.json's pre_tokenizer (null: none). UNIMPLEMENTED names what is not supported.
absl::StatusOr<PreTokenizers> LoadPreTokenizers(const std::optional<JsonNode>& json);

}  // namespace baton
