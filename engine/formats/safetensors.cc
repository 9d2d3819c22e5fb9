// SPDX-License-Identifier: Apache-2.0
#include "engine/formats/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/str_join.h"
#include "common/json.h"
#include "common/status_macros.h"
#include "common/strings.h"

namespace baton {
namespace {

using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little, "tensors point into little-endian files");

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = uint64_t{16} << 20;
constexpr size_t kMaxRank = 8;

struct FileDType {
  std::string_view name;
  uint64_t bytes;
  std::optional<TensorType> type;
};

constexpr FileDType kDTypes[] = {
    {"F32", 4, TensorType::kF32}, {"F16", 2, TensorType::kF16}, {"BF16", 2, TensorType::kBF16},
    {"F64", 8, std::nullopt},     {"F8_E4M3", 1, std::nullopt}, {"F8_E5M2", 1, std::nullopt},
    {"I64", 8, std::nullopt},     {"I32", 4, std::nullopt},     {"I16", 2, std::nullopt},
    {"I8", 1, std::nullopt},      {"U64", 8, std::nullopt},     {"U32", 4, std::nullopt},
    {"U16", 2, std::nullopt},     {"U8", 1, std::nullopt},      {"BOOL", 1, std::nullopt},
};

template <typename... Args>
absl::Status Invalid(std::string_view origin, const Args&... args) {
  return absl::InvalidArgumentError(Concat(origin, ": ", args...));
}

absl::StatusOr<FileDType> ReadDType(const Json& entry) {
  const auto found = entry.find("dtype");
  if (found == entry.end() || !found->is_string()) return absl::InvalidArgumentError("expected a dtype");
  const std::string name = found->get<std::string>();
  const auto* known =
      std::find_if(std::begin(kDTypes), std::end(kDTypes), [&](const auto& d) { return d.name == name; });
  if (known == std::end(kDTypes)) {
    return absl::InvalidArgumentError(Concat("expected a dtype of the safetensors format, got \"", name, "\""));
  }
  return *known;
}

// Reads a list of at most `max_size` numbers >= 0.
absl::StatusOr<std::vector<int64_t>> ReadSizes(const Json& entry, std::string_view field, size_t max_size) {
  const auto found = entry.find(field);
  if (found == entry.end() || !found->is_array() || found->size() > max_size ||
      !std::all_of(found->begin(), found->end(), [](const Json& n) {
        return n.is_number_unsigned() && n.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX);
      })) {
    return absl::InvalidArgumentError(Concat("expected ", field, " to be a list of at most ", max_size, " sizes"));
  }
  return found->get<std::vector<int64_t>>();
}

// Returns nullopt when the size exceeds 2^64 - 1 bytes.
std::optional<uint64_t> ByteSize(const std::vector<int64_t>& shape, uint64_t element_bytes) {
  uint64_t bytes = element_bytes;
  for (const int64_t size : shape) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes)) return std::nullopt;
  }
  return bytes;
}

// Reads one entry of the header. `body` is the file after the header. Errors do not name the file and the tensor.
absl::StatusOr<Tensor> ReadTensor(const std::string& name, const Json& entry, std::span<const std::byte> body) {
  if (!entry.is_object()) return absl::InvalidArgumentError("expected an object with dtype, shape and data_offsets");
  BATON_ASSIGN_OR_RETURN(const FileDType dtype, ReadDType(entry));
  BATON_ASSIGN_OR_RETURN(std::vector<int64_t> shape, ReadSizes(entry, "shape", kMaxRank));
  BATON_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, ReadSizes(entry, "data_offsets", 2));
  const std::optional<uint64_t> bytes = ByteSize(shape, dtype.bytes);
  if (offsets.size() != 2 || offsets[0] > offsets[1] || static_cast<uint64_t>(offsets[1]) > body.size()) {
    return absl::InvalidArgumentError(Concat("expected data_offsets [begin, end] within the ", body.size(),
                                             " bytes after the header, got ", ShapeText(offsets)));
  }
  const auto size = static_cast<uint64_t>(offsets[1] - offsets[0]);
  if (bytes != size) {
    return absl::InvalidArgumentError(Concat("expected ", dtype.name, " ", ShapeText(shape), " to take ",
                                             bytes.has_value() ? Concat(*bytes) : "more than 2^64",
                                             " bytes, data_offsets give ", size));
  }
  return Tensor{name, std::string(dtype.name), dtype.type, std::move(shape), body.subspan(offsets[0], size)};
}

// Checks that the tensors fill `body` without gap or overlap.
absl::Status CheckTiling(const std::vector<Tensor>& tensors, std::span<const std::byte> body, std::string_view origin) {
  std::vector<const Tensor*> order;
  order.reserve(tensors.size());
  for (const Tensor& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const Tensor* a, const Tensor* b) {
    return std::pair(a->data.data(), a->data.size()) < std::pair(b->data.data(), b->data.size());
  });
  const std::byte* end = body.data();
  for (const Tensor* tensor : order) {
    if (tensor->data.data() != end) {
      return Invalid(origin, "tensor ", tensor->name, ": expected its data at offset ", end - body.data(),
                     ", where the tensor before it ends, got ", tensor->data.data() - body.data());
    }
    end += tensor->data.size();
  }
  if (end != body.data() + body.size()) {
    return Invalid(origin, "expected the file to end with its last tensor, ", end - body.data(),
                   " bytes after the header, got ", body.size());
  }
  return absl::OkStatus();
}

}  // namespace

std::string ShapeText(const std::vector<int64_t>& shape) { return Concat("[", absl::StrJoin(shape, ", "), "]"); }

absl::StatusOr<std::vector<Tensor>> ParseSafetensors(std::span<const std::byte> file, std::string_view origin) {
  if (file.size() < kLengthBytes) {
    return Invalid(origin, "expected a safetensors file to start with 8 bytes of header length, got ", file.size());
  }
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data(), kLengthBytes);
  file = file.subspan(kLengthBytes);
  if (header_bytes > kMaxHeaderBytes || header_bytes > file.size()) {
    return Invalid(origin, "header length is ", header_bytes, " bytes, expected at most ",
                   std::min<uint64_t>(kMaxHeaderBytes, file.size()));
  }
  const std::string_view header(reinterpret_cast<const char*>(file.data()), header_bytes);
  const std::span<const std::byte> body = file.subspan(header_bytes);

  BATON_ASSIGN_OR_RETURN(const Json root, ParseJson(header, Concat(origin, ": header")));
  if (!root.is_object()) return Invalid(origin, "expected the header to be a JSON object");
  std::vector<Tensor> tensors;
  tensors.reserve(root.size());
  for (const auto& [name, entry] : root.items()) {
    if (name == "__metadata__") continue;
    absl::StatusOr<Tensor> tensor = ReadTensor(name, entry, body);
    if (!tensor.ok()) return Invalid(origin, "tensor ", name, ": ", tensor.status().message());
    tensors.push_back(*std::move(tensor));
  }
  BATON_RETURN_IF_ERROR(CheckTiling(tensors, body, origin));
  return tensors;
}

absl::StatusOr<std::map<std::string, std::string>> ParseSafetensorsIndex(std::string_view json,
                                                                         std::string_view origin) {
  BATON_ASSIGN_OR_RETURN(const Json root, ParseJson(json, origin));
  JsonFields fields(root, origin);
  const Json* weight_map = fields.Required("weight_map").Find("weight_map");
  if (weight_map != nullptr && !weight_map->is_object()) fields.Expected("weight_map", "an object");
  BATON_RETURN_IF_ERROR(fields.status());

  std::map<std::string, std::string> files;
  for (const auto& [name, file] : weight_map->items()) {
    // Refuses paths: the index must not refer to files outside its folder.
    const std::string text = file.is_string() ? file.get<std::string>() : std::string();
    if (!text.ends_with(".safetensors") || text.find_first_of(std::string_view("/\0", 2)) != std::string::npos) {
      return Invalid(origin, "weight_map: ", name, ": expected the name of a .safetensors file in the same folder");
    }
    files.emplace(name, text);
  }
  return files;
}

}  // namespace baton
