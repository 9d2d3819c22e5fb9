// SPDX-License-Identifier: Apache-2.0
#include "engine/formats/ggml_types.h"

#include <algorithm>
#include <iterator>

namespace baton {
namespace {

constexpr GgmlType Supported(uint32_t id, TensorType type) {
  const TensorTypeInfo info = InfoOf(type);
  return {id, info.name, static_cast<uint32_t>(info.block_values), static_cast<uint32_t>(info.block_bytes), type};
}

constexpr GgmlType kGgmlTypes[] = {
    Supported(0, TensorType::kF32),         Supported(1, TensorType::kF16),
    Supported(2, TensorType::kQ4_0),        Supported(3, TensorType::kQ4_1),
    Supported(6, TensorType::kQ5_0),        Supported(7, TensorType::kQ5_1),
    Supported(8, TensorType::kQ8_0),        {9, "Q8_1", 32, 36, std::nullopt},
    {10, "Q2_K", 256, 84, std::nullopt},    {11, "Q3_K", 256, 110, std::nullopt},
    Supported(12, TensorType::kQ4_K),       Supported(13, TensorType::kQ5_K),
    Supported(14, TensorType::kQ6_K),       {15, "Q8_K", 256, 292, std::nullopt},
    {16, "IQ2_XXS", 256, 66, std::nullopt}, {17, "IQ2_XS", 256, 74, std::nullopt},
    {18, "IQ3_XXS", 256, 98, std::nullopt}, {19, "IQ1_S", 256, 50, std::nullopt},
    {20, "IQ4_NL", 32, 18, std::nullopt},   {21, "IQ3_S", 256, 110, std::nullopt},
    {22, "IQ2_S", 256, 82, std::nullopt},   {23, "IQ4_XS", 256, 136, std::nullopt},
    {24, "I8", 1, 1, std::nullopt},         {25, "I16", 1, 2, std::nullopt},
    {26, "I32", 1, 4, std::nullopt},        {27, "I64", 1, 8, std::nullopt},
    {28, "F64", 1, 8, std::nullopt},        {29, "IQ1_M", 256, 56, std::nullopt},
    Supported(30, TensorType::kBF16),       {34, "TQ1_0", 256, 54, std::nullopt},
    {35, "TQ2_0", 256, 66, std::nullopt},   {39, "MXFP4", 32, 17, std::nullopt},
};

}  // namespace

const GgmlType* FindGgmlType(uint32_t id) {
  const auto* found =
      std::find_if(std::begin(kGgmlTypes), std::end(kGgmlTypes), [&](const auto& t) { return t.id == id; });
  return found == std::end(kGgmlTypes) ? nullptr : found;
}

const GgmlType& GgmlTypeOf(TensorType type) {
  return *std::find_if(std::begin(kGgmlTypes), std::end(kGgmlTypes), [&](const auto& t) { return t.type == type; });
}

}  // namespace baton
