// What tokenizer.json says of a Metaspace step, as a pre-tokenizer and as a decoder: SentencePiece's way with spaces.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"

namespace baton {

class JsonNode;

struct Metaspace {
  enum class Prepend { kAlways, kFirst, kNever };

  std::string_view replacement;  // of each space, not empty; lives as long as the document
  Prepend prepend;               // when one more is put before a text
};

absl::StatusOr<Metaspace> ReadMetaspace(const JsonNode& json);

}  // namespace baton
