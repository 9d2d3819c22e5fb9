// SPDX-License-Identifier: Apache-2.0
// Types that every part of the engine shares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/ids.h"  // TokenId

namespace baton {

// Index of a page in a worker's page pool.
enum class PageId : uint32_t {};
constexpr uint32_t ToIndex(PageId page) { return static_cast<uint32_t>(page); }

// Where memory lies: pageable memory of the host, page-locked memory of the host, or memory of a device.
enum class MemoryKind : uint8_t { kHost, kPinned, kDevice };

constexpr std::string_view Name(MemoryKind kind) {
  constexpr std::string_view kNames[] = {"host", "pinned", "device"};
  return kNames[static_cast<int>(kind)];
}

// Type of the values in the KV cache. kInt8 and kFp8 (E4M3: 4 exponent bits, 3 mantissa bits) have a scale per token
// and head.
enum class KvType : uint8_t { kF32, kF16, kBF16, kInt8, kFp8 };

inline constexpr KvType kKvTypes[] = {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kInt8, KvType::kFp8};

constexpr bool HasScales(KvType type) { return type >= KvType::kInt8; }
constexpr size_t SizeOf(KvType type) { return HasScales(type) ? 1 : type == KvType::kF32 ? 4 : 2; }

constexpr std::string_view Name(KvType type) {
  constexpr std::string_view kNames[] = {"f32", "f16", "bf16", "int8", "fp8"};
  return kNames[static_cast<int>(type)];
}

constexpr std::optional<KvType> KvTypeFromName(std::string_view name) {
  for (const KvType type : kKvTypes) {
    if (Name(type) == name) return type;
  }
  return std::nullopt;
}

// Type of a tensor's values in a model file. The kQ types are GGUF's blocks of quantized values with scales; a row
// consists of whole blocks.
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

// Bytes of `values` values of a row; `values` must be a multiple of block_values.
constexpr size_t BytesOf(TensorType type, size_t values) {
  return values / InfoOf(type).block_values * InfoOf(type).block_bytes;
}

constexpr bool IsQuantized(TensorType type) { return type > TensorType::kBF16; }

}  // namespace baton
