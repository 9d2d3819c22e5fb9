// SPDX-License-Identifier: Apache-2.0
// Parses GGUF files, versions 2 and 3 (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
//
// Layout, little-endian: header, metadata, tensor descriptions, then the data of each tensor at an aligned offset.
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

// A metadata value, as encoded in the file; ParseGguf has checked the encoding. Does not own `bytes`. Read values with
// GgufFields.
//
// Encodings: a string is length (uint64) | characters. An array is element type (uint32) | count (uint64) | elements.
// Numbers may have any alignment.
struct GgufValue {
  GgufType type = GgufType::kUint8;
  std::span<const std::byte> bytes;
};

using GgufMetadata = std::map<std::string, GgufValue, std::less<>>;

struct GgufFile {
  GgufMetadata metadata;
  std::vector<Tensor> tensors;  // in file order; shapes are [rows, cols], the reverse of GGUF's order
};

// Parses an untrusted file. Checks counts and lengths against the size of the file before allocating. Checks that
// tensors lie within the file, aligned and without overlap. INVALID_ARGUMENT names `origin`, the key or tensor, and
// what was expected.
//
// A tensor of a type that the engine does not support has an empty `type`. If the type's id is unknown, `data` is
// empty, too. The result points into `file`.
absl::StatusOr<GgufFile> ParseGguf(std::span<const std::byte> file, std::string_view origin);

}  // namespace baton
