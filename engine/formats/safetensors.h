// The safetensors format (https://github.com/huggingface/safetensors): 8 bytes of header length, a JSON header, then
// the tensors' bytes, row-major and little-endian, one after the other without gaps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/types.h"

namespace baton {

// A named tensor within a file's memory, which it does not own.
struct Tensor {
  std::string name;
  std::string type_name;            // as the format spells it: "BF16", "I64", "Q8_0"
  std::optional<TensorType> type;   // of those that the engine computes with; else empty
  std::vector<int64_t> shape;       // empty for a scalar
  std::span<const std::byte> data;  // not necessarily aligned
  int interleaved_heads = 0;        // see TensorView in engine/kernels/backend.h
  std::string name_in_file = {};    // if that is another one
};

// The tensors of one file, by name. Everything in the header is checked: lengths, dtypes, shape x dtype = bytes,
// offsets that leave no gap, overlap nowhere and end with the file. INVALID_ARGUMENT names `origin`, the tensor and
// what was expected. The result refers to `file`.
absl::StatusOr<std::vector<Tensor>> ParseSafetensors(std::span<const std::byte> file, std::string_view origin);

// Of a sharded model, from the text of model.safetensors.index.json: tensor name -> file name in the same folder.
absl::StatusOr<std::map<std::string, std::string>> ParseSafetensorsIndex(std::string_view json,
                                                                         std::string_view origin);

}  // namespace baton
