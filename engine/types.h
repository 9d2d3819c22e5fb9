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

}  // namespace baton
