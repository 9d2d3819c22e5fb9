// SPDX-License-Identifier: Apache-2.0
// Rounds K and V to the types of the KV cache.
//
// int8_t and E4M3 have one float scale per token and head, such that the largest magnitude maps to the type's largest
// value. An infinity or NaN makes the scale, and so the whole head, infinity or NaN.
#pragma once

#include "engine/kernels/cpu/prepare-inl.h"
#include "engine/kernels/cpu/vector-inl.h"

namespace baton::cpu {

template <typename T>
inline constexpr float kLargestOf = 0;  // 0: no scale
template <>
inline constexpr float kLargestOf<int8_t> = 127;
template <>
inline constexpr float kLargestOf<E4M3> = 448;

template <typename T>
inline constexpr bool kHasScales = kLargestOf<T> != 0;

template <typename T>
inline constexpr bool kExactInBF16 = kHasScales<T>;
template <>
inline constexpr bool kExactInBF16<BF16> = true;

template <typename V>
BATON_INLINE void StoreCodes(V v, int8_t* codes) {
  v.StoreRounded(codes);
}

// Rounds to nearest, ties to even. A magnitude above 448, or NaN, gives an arbitrary code.
template <typename V>
BATON_INLINE void StoreCodes(V v, E4M3* codes) {
  uint32_t lanes[V::kLanes];
  v.Store(reinterpret_cast<float*>(lanes));
  for (int i = 0; i < V::kLanes; ++i) {
    const uint32_t magnitude = lanes[i] & 0x7fffffff;
    const uint32_t normal = (magnitude + 0x7ffff + (magnitude >> 20 & 1) - (120u << 23)) >> 20;
    // Below 2^-6: the last place of floats near 2^14 is the subnormal unit of E4M3, so the addition rounds.
    float sum;
    __builtin_memcpy(&sum, &magnitude, sizeof(sum));
    sum += 0x1p14f;
    uint32_t subnormal;
    __builtin_memcpy(&subnormal, &sum, sizeof(subnormal));
    subnormal -= 0x46800000;
    const uint32_t code = magnitude < 0x3c800000 ? subnormal : normal;
    codes[i].bits = static_cast<uint8_t>((lanes[i] >> 24 & 0x80) | (code & 0x7f));
  }
}

template <typename V, typename T>
void RoundHead(const float* x, int head_dim, std::byte* out, std::byte* scale) {
  T* const rounded = reinterpret_cast<T*>(out);
  if constexpr (kHasScales<T>) {
    const float magnitude = LargestMagnitude<V>(x, head_dim);
    const bool zero = magnitude < 0x1p-100f;
    const float step = zero ? 0 : magnitude / kLargestOf<T>;
    __builtin_memcpy(scale, &step, sizeof(step));
    const V factor = V::Set(zero ? 0 : kLargestOf<T> / magnitude);
    ForVectors<V>(head_dim, [&](size_t i, int partial) {
      const V scaled = LoadSome<V>(x + i, partial) * factor;
      if (partial == 0) {
        StoreCodes(scaled, rounded + i);
      } else {
        T codes[V::kLanes];
        StoreCodes(scaled, codes);
        for (int lane = 0; lane < partial; ++lane) rounded[i + lane] = codes[lane];
      }
    });
  } else {
    ForVectors<V>(head_dim,
                  [&](size_t i, int partial) { StoreSome(LoadSome<V>(x + i, partial), rounded + i, partial); });
  }
}

}  // namespace baton::cpu
