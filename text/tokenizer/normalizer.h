// What tokenizer.json does to a text before it is split: Unicode normalization forms (by ICU), lower case,
// replacements, stripping and prepending, one after the other.
//
// Immutable after loading, so thread-safe.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace baton {

class JsonNode;

class Normalizer {
 public:
  virtual ~Normalizer() = default;

  // `text`, which is valid UTF-8, where nothing is to be changed, as it mostly is; else what becomes of it, valid too,
  // owned by `storage`. RESOURCE_EXHAUSTED when a regular expression hits a limit.
  virtual absl::StatusOr<std::string_view> Apply(std::string_view text, std::deque<std::string>& storage) const = 0;
};

// From tokenizer.json's normalizer. Null when it does nothing; another kind is refused by its name.
absl::StatusOr<std::unique_ptr<const Normalizer>> LoadNormalizer(const std::optional<JsonNode>& json);

}  // namespace baton
