// Writes GGUF files, version 3 (see gguf.h).
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

// What a file says before its tensors' bytes. A key that is there already gets the new value.
class GgufHeader {
 public:
  void AddUint32(std::string_view key, uint32_t value);
  void AddFloat32(std::string_view key, float value);
  void AddBool(std::string_view key, bool value);
  void AddString(std::string_view key, std::string_view value);
  void AddStrings(std::string_view key, std::span<const std::string> values);
  void AddInt32s(std::string_view key, std::span<const int32_t> values);
  void AddTokenTypes(std::span<const GgufTokenType> types);
  void Add(std::string_view key, const GgufValue& value);  // as another file has it

  // A multiple of the type's block_values to a row (the last of `shape`).
  void AddTensor(std::string_view name, const std::vector<int64_t>& shape, TensorType type);

  std::string Bytes() const;  // of the whole header, padded to where the first tensor's data begin
  const std::vector<uint64_t>& tensor_bytes() const { return tensor_bytes_; }

 private:
  void Add(std::string_view key, GgufType type, std::string value);

  std::vector<std::pair<std::string, std::string>> metadata_;  // key to type and value, as they are written
  std::string tensors_;                                        // as they are written
  std::vector<uint64_t> tensor_bytes_;                         // of each tensor's data
  uint64_t data_bytes_ = 0;                                    // of all of them, padded
};

// Streams the tensors' bytes after a header. Not thread-safe. Without Finish there is no file.
class GgufWriter {
 public:
  static absl::StatusOr<GgufWriter> Create(const std::filesystem::path& path, const GgufHeader& header);

  // The next bytes of the tensors' data, in the order of the header, however they are cut up.
  absl::Status Write(std::span<const std::byte> bytes);
  // FAILED_PRECONDITION when a tensor is not complete.
  absl::Status Finish();

  uint64_t bytes() const { return file_.bytes(); }

 private:
  GgufWriter(OutputFile file, std::vector<uint64_t> tensor_bytes)
      : file_(std::move(file)), tensor_bytes_(std::move(tensor_bytes)) {}

  OutputFile file_;
  std::vector<uint64_t> tensor_bytes_;
  size_t tensor_ = 0;     // the one being written
  uint64_t written_ = 0;  // of it
};

}  // namespace baton
