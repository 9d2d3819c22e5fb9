// SPDX-License-Identifier: Apache-2.0
// The table of ggml's tensor types, which GGUF files refer to by id. Immutable, so thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/types.h"

namespace baton {

struct GgmlType {
  uint32_t id;
  std::string_view name;
  uint32_t block_values;
  uint32_t block_bytes;
  std::optional<TensorType> type;  // empty when the engine does not support the type
};

// Returns null for an unknown id.
const GgmlType* FindGgmlType(uint32_t id);
const GgmlType& GgmlTypeOf(TensorType type);

}  // namespace baton
