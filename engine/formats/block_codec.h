// Quantized values as files hold them: blocks of codes with scales, in the layouts of ggml
// (https://github.com/ggml-org/ggml). Pure functions; no libm, so the same bits on any machine.
#pragma once

#include <cstddef>
#include <span>

#include "engine/types.h"

namespace baton {

// out[i] = value i of `blocks`, which may have any alignment. `values` is a multiple of the type's block_values.
void DecodeBlocks(TensorType type, const std::byte* blocks, size_t values, float* out);

// Rounds values, to nearest with ties to even, to what `type` can hold: kF32, kF16, kBF16, kQ8_0 or kQ4_0.
// values.size() is a multiple of the type's block_values; `out` has room for BytesOf(type, values.size()).
//
// Q8_0: the scale is the greatest magnitude / 127. Q4_0: the value of the greatest magnitude / -8, so that this one is
// exact up to the scale's rounding. Codes are rounded after the scale is, against what they will be decoded with.
//
// False when a value is not finite or has a magnitude that the type cannot hold.
[[nodiscard]] bool EncodeBlocks(TensorType type, std::span<const float> values, std::byte* out);

// Whether EncodeBlocks knows the type.
bool CanEncode(TensorType type);

}  // namespace baton
