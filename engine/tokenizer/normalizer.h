// What tokenizer.json does to a text before it is split: Unicode normalization form C (by ICU), or nothing.
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

  // `text`, which is valid UTF-8, where it is normal already, as it mostly is; else its normal form, owned by
  // `storage`.
  virtual std::string_view Apply(std::string_view text, std::deque<std::string>& storage) const = 0;
};

// From tokenizer.json's normalizer. Null when it does nothing; another kind is refused by its name.
absl::StatusOr<std::unique_ptr<const Normalizer>> LoadNormalizer(const std::optional<JsonNode>& json);

}  // namespace baton
