// SPDX-License-Identifier: Apache-2.0
// Normalizers change a text before pre-tokenizers split it: Unicode normalization forms (by ICU), lower case,
// replacements, stripping and prepending.
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

  // Returns `text` when nothing changes, otherwise the normalized text, owned by `storage`. Input and result are valid
  // UTF-8. RESOURCE_EXHAUSTED when a regular expression hits a limit.
  virtual absl::StatusOr<std::string_view> Apply(std::string_view text, std::deque<std::string>& storage) const = 0;
};

// Loads the `normalizer` of tokenizer.json. Returns null when the text stays unchanged. UNIMPLEMENTED names an
// unsupported normalizer.
absl::StatusOr<std::unique_ptr<const Normalizer>> LoadNormalizer(const std::optional<JsonNode>& json);

}  // namespace baton
