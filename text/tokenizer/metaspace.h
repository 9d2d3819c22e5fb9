// SPDX-License-Identifier: Apache-2.0
// The parameters of a Metaspace step in tokenizer.json, which handles spaces like SentencePiece. Pre-tokenizers and
// decoders share the format.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"

namespace baton {

class JsonNode;

struct Metaspace {
  enum class Prepend { kAlways, kFirst, kNever };

  std::string_view replacement;  // replaces each space; not empty; points into the document
  Prepend prepend;               // whether a text gets a leading replacement
};

absl::StatusOr<Metaspace> ReadMetaspace(const JsonNode& json);

}  // namespace baton
