// Types that every part of the engine shares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace baton {

// An index into the vocabulary. Plain int32 so that protobuf's repeated fields are spans of it.
using TokenId = int32_t;

// An index into a worker's page pool.
enum class PageId : uint32_t {};
constexpr uint32_t ToIndex(PageId page) { return static_cast<uint32_t>(page); }

enum class DType : uint8_t { kF32, kF16, kBF16 };

constexpr size_t SizeOf(DType dtype) { return dtype == DType::kF32 ? 4 : 2; }

constexpr std::string_view Name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
  }
  return "?";
}

constexpr std::optional<DType> DTypeFromName(std::string_view name) {
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    if (Name(dtype) == name) return dtype;
  }
  return std::nullopt;
}

// How a file stores a tensor's values. Q...: blocks of quantized values with scales, as GGUF files have them; a row is
// whole blocks.
enum class TensorType : uint8_t { kF32, kF16, kBF16, kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ4_K, kQ5_K, kQ6_K };

struct TensorTypeInfo {
  std::string_view name;
  int block_values;  // consecutive values of a row
  int block_bytes;
};

constexpr TensorTypeInfo InfoOf(TensorType type) {
  constexpr TensorTypeInfo kInfos[] = {{"F32", 1, 4},      {"F16", 1, 2},      {"BF16", 1, 2},    {"Q8_0", 32, 34},
                                       {"Q4_0", 32, 18},   {"Q4_1", 32, 20},   {"Q5_0", 32, 22},  {"Q5_1", 32, 24},
                                       {"Q4_K", 256, 144}, {"Q5_K", 256, 176}, {"Q6_K", 256, 210}};
  return kInfos[static_cast<int>(type)];
}

// The bytes of `values` values of a row, a multiple of block_values.
constexpr size_t BytesOf(TensorType type, size_t values) {
  return values / InfoOf(type).block_values * InfoOf(type).block_bytes;
}

constexpr TensorType ToTensorType(DType dtype) { return static_cast<TensorType>(dtype); }
constexpr bool IsQuantized(TensorType type) { return type > TensorType::kBF16; }
// Of a type that is not quantized.
constexpr DType ToDType(TensorType type) { return static_cast<DType>(type); }

}  // namespace baton
