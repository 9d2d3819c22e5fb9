// SPDX-License-Identifier: Apache-2.0
// Encodes and decodes the quantized blocks of model files, in the layouts of ggml (https://github.com/ggml-org/ggml).
// Pure functions without libm, so results are the same bits on every machine.
#pragma once

#include <cstddef>
#include <span>

#include "engine/types.h"

namespace baton {

// Decodes `values` values into `out`. `values` is a multiple of the type's block_values. `blocks` may have any
// alignment.
void DecodeBlocks(TensorType type, const std::byte* blocks, size_t values, float* out);

// Encodes `values` as kF32, kF16, kBF16, kQ8_0 or kQ4_0, rounding to nearest with ties to even. values.size() is a
// multiple of the type's block_values. `out` has room for BytesOf(type, values.size()).
//
// Q8_0: scale = greatest magnitude / 127. Q4_0: scale = value of greatest magnitude / -8; that value gets code -8.
// Codes are computed with the scale rounded to f16, because the decoder multiplies by that scale.
//
// Returns false when a value is not finite or too large for the type.
[[nodiscard]] bool EncodeBlocks(TensorType type, std::span<const float> values, std::byte* out);

// Returns whether EncodeBlocks supports `type`.
bool CanEncode(TensorType type);

}  // namespace baton
