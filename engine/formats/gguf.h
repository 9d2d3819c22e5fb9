// The GGUF format, versions 2 and 3 (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md): metadata, then what
// the tensors are, then their bytes, little-endian, each at an aligned offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/formats/safetensors.h"

namespace baton {

enum class GgufType : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64
};

// A value of the metadata in a file's memory, which it does not own: its bytes as the format has them, checked. Numbers
// are not necessarily aligned; a string is its length (uint64) and its bytes; an array the type of its elements
// (uint32), how many there are (uint64), and they. GgufFields reads it.
struct GgufValue {
  GgufType type = GgufType::kUint8;
  std::span<const std::byte> bytes;
};

using GgufMetadata = std::map<std::string, GgufValue, std::less<>>;

struct GgufFile {
  GgufMetadata metadata;
  std::vector<Tensor> tensors;  // in the file's order; shapes with the rows first, as everywhere here
};

// Everything is checked before it is used or allocated for: counts and lengths against what is left of the file, types,
// alignment, shapes (whole blocks), and that tensors lie in the file and overlap nowhere. A tensor whose type the
// engine does not compute with has its name and no `type`; where the type is not even known, it has no data.
// INVALID_ARGUMENT names `origin`, the key or tensor and what was expected. The result refers to `file`.
absl::StatusOr<GgufFile> ParseGguf(std::span<const std::byte> file, std::string_view origin);

}  // namespace baton
