// SPDX-License-Identifier: Apache-2.0
// Builds GGUF files, right ones and wrong ones.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace baton::testing {

class GgufBuilder {
 public:
  explicit GgufBuilder(uint32_t version = 3) : version_(version) {}

  // False claims of the file about its contents.
  std::optional<uint64_t> tensor_count;
  std::optional<uint64_t> metadata_count;

  GgufBuilder& Raw(const std::string& key, uint32_t type, const std::string& value) {
    PutString(metadata_, key);
    Put(metadata_, type);
    metadata_ += value;
    ++metadata_entries_;
    return *this;
  }
  GgufBuilder& Uint32(const std::string& key, uint32_t value) { return Raw(key, 4, Bytes(value)); }
  GgufBuilder& Float32(const std::string& key, float value) { return Raw(key, 6, Bytes(value)); }
  GgufBuilder& Bool(const std::string& key, bool value) { return Raw(key, 7, std::string(1, value ? '\1' : '\0')); }
  GgufBuilder& String(const std::string& key, const std::string& value) {
    std::string bytes;
    PutString(bytes, value);
    return Raw(key, 8, bytes);
  }
  GgufBuilder& Strings(const std::string& key, const std::vector<std::string>& values) {
    std::string bytes = Bytes<uint32_t>(8) + Bytes<uint64_t>(values.size());
    for (const std::string& value : values) PutString(bytes, value);
    return Raw(key, 9, bytes);
  }
  GgufBuilder& Int32s(const std::string& key, const std::vector<int32_t>& values) {
    std::string bytes = Bytes<uint32_t>(5) + Bytes<uint64_t>(values.size());
    for (const int32_t value : values) Put(bytes, value);
    return Raw(key, 9, bytes);
  }
  GgufBuilder& Float32s(const std::string& key, const std::vector<float>& values) {
    std::string bytes = Bytes<uint32_t>(6) + Bytes<uint64_t>(values.size());
    for (const float value : values) Put(bytes, value);
    return Raw(key, 9, bytes);
  }

  // `sizes` as the format has them, the length of a row first.
  GgufBuilder& Tensor(const std::string& name, const std::vector<uint64_t>& sizes, uint32_t type, uint64_t offset) {
    PutString(tensors_, name);
    Put(tensors_, static_cast<uint32_t>(sizes.size()));
    for (const uint64_t size : sizes) Put(tensors_, size);
    Put(tensors_, type);
    Put(tensors_, offset);
    ++tensor_entries_;
    return *this;
  }

  // `data` after the padded header.
  std::string File(const std::string& data, size_t alignment = 32) const {
    std::string file = "GGUF" + Bytes(version_);
    Put(file, tensor_count.value_or(tensor_entries_));
    Put(file, metadata_count.value_or(metadata_entries_));
    file += metadata_ + tensors_;
    file.resize((file.size() + alignment - 1) / alignment * alignment);
    return file + data;
  }

 private:
  template <typename T>
  static void Put(std::string& out, T value) {
    out += Bytes(value);
  }
  template <typename T>
  static std::string Bytes(T value) {
    std::string bytes(sizeof(T), '\0');
    std::memcpy(bytes.data(), &value, sizeof(T));
    return bytes;
  }
  static void PutString(std::string& out, const std::string& text) {
    Put<uint64_t>(out, text.size());
    out += text;
  }

  uint32_t version_;
  std::string metadata_;
  std::string tensors_;
  uint64_t metadata_entries_ = 0;
  uint64_t tensor_entries_ = 0;
};

}  // namespace baton::testing
