// SPDX-License-Identifier: Apache-2.0
// Writes GGUF files, version 3 (see gguf.h). Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/formats/gguf.h"
#include "engine/formats/gguf_conventions.h"
#include "engine/formats/output_file.h"

namespace baton {

// Collects the part of a GGUF file before the tensor data. Adding a key again replaces its value.
class GgufHeader {
 public:
  void AddUint32(std::string_view key, uint32_t value);
  void AddFloat32(std::string_view key, float value);
  void AddBool(std::string_view key, bool value);
  void AddString(std::string_view key, std::string_view value);
  void AddStrings(std::string_view key, std::span<const std::string> values);
  void AddInt32s(std::string_view key, std::span<const int32_t> values);
  void AddTokenTypes(std::span<const GgufTokenType> types);
  void Add(std::string_view key, const GgufValue& value);  // copies a value of another file

  // shape.back() must be a multiple of the type's block_values.
  void AddTensor(std::string_view name, const std::vector<int64_t>& shape, TensorType type);

  std::string Bytes() const;  // the encoded header, padded up to the data of the first tensor
  const std::vector<uint64_t>& tensor_bytes() const { return tensor_bytes_; }

 private:
  void Add(std::string_view key, GgufType type, std::string value);

  std::vector<std::pair<std::string, std::string>> metadata_;  // key -> encoded type and value
  std::string tensors_;                                        // encoded tensor descriptions
  std::vector<uint64_t> tensor_bytes_;                         // data size of each tensor, without padding
  uint64_t data_bytes_ = 0;                                    // sum of the data sizes, with padding
};

// Writes a header and then streams tensor data. The file appears only after a successful Finish.
class GgufWriter {
 public:
  static absl::StatusOr<GgufWriter> Create(const std::filesystem::path& path, const GgufHeader& header);

  // Appends tensor data, in the order of the header. A call may end or begin within a tensor. Adds the padding.
  absl::Status Write(std::span<const std::byte> bytes);
  // FAILED_PRECONDITION when data is missing.
  absl::Status Finish();

  uint64_t bytes() const { return file_.bytes(); }

 private:
  GgufWriter(OutputFile file, std::vector<uint64_t> tensor_bytes)
      : file_(std::move(file)), tensor_bytes_(std::move(tensor_bytes)) {}

  OutputFile file_;
  std::vector<uint64_t> tensor_bytes_;
  size_t tensor_ = 0;     // index of the tensor being written
  uint64_t written_ = 0;  // bytes of that tensor written so far
};

}  // namespace baton
