// The numbers by which GGUF files name tensors' types.
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
  std::optional<TensorType> type;  // of those that the engine computes with
};

// Null for a number that is not known.
const GgmlType* FindGgmlType(uint32_t id);
const GgmlType& GgmlTypeOf(TensorType type);

}  // namespace baton
