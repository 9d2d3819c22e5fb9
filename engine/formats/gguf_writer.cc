// SPDX-License-Identifier: Apache-2.0
#include "engine/formats/gguf_writer.h"

#include <algorithm>
#include <cstring>

#include "common/status_macros.h"
#include "common/strings.h"
#include "engine/formats/ggml_types.h"

namespace baton {
namespace {

constexpr uint64_t kAlignment = 32;  // GGUF's default without general.alignment
constexpr uint32_t kVersion = 3;

uint64_t Padding(uint64_t bytes) { return (kAlignment - bytes % kAlignment) % kAlignment; }

template <typename T>
void Put(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

void PutString(std::string& out, std::string_view text) {
  Put<uint64_t>(out, text.size());
  out += text;
}

std::string ArrayStart(GgufType type, uint64_t count) {
  std::string out;
  Put(out, static_cast<uint32_t>(type));
  Put(out, count);
  return out;
}

template <typename T>
std::string NumberBytes(T value) {
  std::string out;
  Put(out, value);
  return out;
}

}  // namespace

void GgufHeader::Add(std::string_view key, GgufType type, std::string value) {
  std::string entry = NumberBytes(static_cast<uint32_t>(type)) + value;
  const auto found = std::find_if(metadata_.begin(), metadata_.end(), [&](const auto& e) { return e.first == key; });
  if (found != metadata_.end()) {
    found->second = std::move(entry);
  } else {
    metadata_.emplace_back(key, std::move(entry));
  }
}

void GgufHeader::AddUint32(std::string_view key, uint32_t value) { Add(key, GgufType::kUint32, NumberBytes(value)); }
void GgufHeader::AddFloat32(std::string_view key, float value) { Add(key, GgufType::kFloat32, NumberBytes(value)); }
void GgufHeader::AddBool(std::string_view key, bool value) { Add(key, GgufType::kBool, NumberBytes<uint8_t>(value)); }

void GgufHeader::AddString(std::string_view key, std::string_view value) {
  std::string bytes;
  PutString(bytes, value);
  Add(key, GgufType::kString, std::move(bytes));
}

void GgufHeader::AddStrings(std::string_view key, std::span<const std::string> values) {
  std::string bytes = ArrayStart(GgufType::kString, values.size());
  for (const std::string& value : values) PutString(bytes, value);
  Add(key, GgufType::kArray, std::move(bytes));
}

void GgufHeader::AddInt32s(std::string_view key, std::span<const int32_t> values) {
  std::string bytes = ArrayStart(GgufType::kInt32, values.size());
  for (const int32_t value : values) Put(bytes, value);
  Add(key, GgufType::kArray, std::move(bytes));
}

void GgufHeader::AddTokenTypes(std::span<const GgufTokenType> types) {
  std::vector<int32_t> numbers;
  for (const GgufTokenType type : types) numbers.push_back(static_cast<int32_t>(type));
  AddInt32s(kGgufTokenTypes, numbers);
}

void GgufHeader::Add(std::string_view key, const GgufValue& value) {
  Add(key, value.type, std::string(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size()));
}

void GgufHeader::AddTensor(std::string_view name, const std::vector<int64_t>& shape, TensorType type) {
  PutString(tensors_, name);
  Put(tensors_, static_cast<uint32_t>(shape.size()));
  uint64_t values = 1;
  for (auto size = shape.rbegin(); size != shape.rend(); ++size) {  // GGUF lists the innermost dimension first
    Put(tensors_, static_cast<uint64_t>(*size));
    values *= *size;
  }
  Put(tensors_, GgmlTypeOf(type).id);
  Put(tensors_, data_bytes_);
  tensor_bytes_.push_back(BytesOf(type, values));
  data_bytes_ += tensor_bytes_.back() + Padding(tensor_bytes_.back());
}

std::string GgufHeader::Bytes() const {
  std::string out = "GGUF";
  Put(out, kVersion);
  Put<uint64_t>(out, tensor_bytes_.size());
  Put<uint64_t>(out, metadata_.size());
  for (const auto& [key, entry] : metadata_) {
    PutString(out, key);
    out += entry;
  }
  out += tensors_;
  out.append(Padding(out.size()), '\0');
  return out;
}

absl::StatusOr<GgufWriter> GgufWriter::Create(const std::filesystem::path& path, const GgufHeader& header) {
  BATON_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  BATON_RETURN_IF_ERROR(file.Write(header.Bytes()));
  return GgufWriter(std::move(file), header.tensor_bytes());
}

absl::Status GgufWriter::Write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (tensor_ == tensor_bytes_.size()) {
      return absl::FailedPreconditionError(
          Concat(file_.path().string(), ": expected no data after the last tensor, got ", bytes.size(), " bytes"));
    }
    const size_t size = std::min<uint64_t>(bytes.size(), tensor_bytes_[tensor_] - written_);
    BATON_RETURN_IF_ERROR(file_.Write(bytes.first(size)));
    bytes = bytes.subspan(size);
    written_ += size;
    if (written_ == tensor_bytes_[tensor_]) {
      BATON_RETURN_IF_ERROR(file_.Write(std::string(Padding(written_), '\0')));
      ++tensor_;
      written_ = 0;
    }
  }
  return absl::OkStatus();
}

absl::Status GgufWriter::Finish() {
  if (tensor_ != tensor_bytes_.size()) {
    return absl::FailedPreconditionError(
        Concat(file_.path().string(), ": expected ", tensor_bytes_.size(), " complete tensors, got ", tensor_));
  }
  return file_.Finish();
}

}  // namespace baton
