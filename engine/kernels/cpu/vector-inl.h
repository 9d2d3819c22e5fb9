// SPDX-License-Identifier: Apache-2.0
// Helpers on a family's vector type, and the operations that a vector type must have. For restrictions on includes see
// kernel_table.h.
//
// A vector type V is kLanes floats:
//   V::Zero(), V::Set(float)
//   V::Load(const T*)    widens kLanes values; T is float, F16, BF16, int8_t or E4M3 (whose NaN is not supported)
//   v.Store(T*)          rounds to nearest, ties to even; T is float, F16 or BF16
//   V::Fma(a, b, c)      a * b + c; a family fuses it always or never
//   +, -, *, /
//   V::Max(a, b)         b if either is NaN
//   V::IfLess(a, b, x, y)       a < b ? x : y, by lane
//   V::ScaleByPowerOfTwo(a, n)  a * 2^i, with i in the low bits of n
//   V::Sqrt(float)       correctly rounded, without libm
//   v.SumLanes()         adds in a fixed order
//   v.MaxLane()          ignores NaN
//   V::Transpose(V (&rows)[kLanes])  afterwards row i holds lane i of all rows
//   V::MaxMagnitude(a, b)     the larger of a >= 0 and |b|, compared as bits, so that NaN wins
//   v.StoreRounded(int8_t*)   rounds to nearest, ties to even; a value out of range gives an arbitrary code
//
// Products of 8-bit integers:
//   Ints                 kLanes sums of 32 bits
//   Bytes                4 unsigned codes per sum
//   Four                 4 signed activations; kFourBytes long in memory (StoreFour, LoadFour)
//   V::AddProducts(Ints, Bytes, Four)    adds 4 products to each sum, exactly, for codes 0..255 and values -128..127
//   V::LowNibbles(b), V::HighNibbles(b)  the 4-bit codes of Bytes
//   ints.ToFloats()
//
// If V::kHasPairs:
//   V::AddPairProducts(V, Pairs, Pairs)  adds two products of BF16 numbers to each float
//   V::JoinPairs(V a, V b)               per lane BF16(a) in the low half, BF16(b) in the high half; a, b exact in BF16
//
// A packed panel is kPanelVectors vectors wide. Register tiles hold up to kTileRows rows in f32 products, kQuantRows in
// integer products, kPairRows in products of pairs.
#pragma once

#include <cstdint>

#include "engine/kernels/cpu/kernel_table.h"
// Unrolls loops over arrays that must stay in registers.
#if defined(__clang__)
#define BATON_UNROLL _Pragma("unroll")
#else
#define BATON_UNROLL _Pragma("GCC unroll 64")
#endif
#define BATON_INLINE __attribute__((always_inline)) inline

namespace baton::cpu {

struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};
struct E4M3 {
  uint8_t bits;
};

// Loads the first `count` < kLanes values. The other lanes are 0, so adding them changes nothing.
template <typename V, typename T>
BATON_INLINE V LoadPartial(const T* p, int count) {
  T lanes[V::kLanes] = {};
  for (int i = 0; i < count; ++i) lanes[i] = p[i];
  return V::Load(lanes);
}

template <typename V, typename T>
BATON_INLINE void StorePartial(V v, T* p, int count) {
  T lanes[V::kLanes];
  v.Store(lanes);
  for (int i = 0; i < count; ++i) p[i] = lanes[i];
}

// Calls f(index, partial) for each vector of `count` values. `partial` is 0, or the number of values in the last
// vector.
template <typename V, typename F>
BATON_INLINE void ForVectors(size_t count, F f) {
  size_t i = 0;
  for (; i + V::kLanes <= count; i += V::kLanes) f(i, 0);
  if (i < count) f(i, static_cast<int>(count - i));
}

// Loads a whole vector, or `partial` values if not 0.
template <typename V, typename T>
BATON_INLINE V LoadSome(const T* p, int partial) {
  return partial == 0 ? V::Load(p) : LoadPartial<V>(p, partial);
}

template <typename V, typename T>
BATON_INLINE void StoreSome(V v, T* p, int partial) {
  if (partial == 0) {
    v.Store(p);
  } else {
    StorePartial(v, p, partial);
  }
}

// e^x with relative error below 2e-7, by the method of DetExp. Results below the smallest normal float are 0, above the
// largest float infinity; NaN stays NaN.
template <typename V>
BATON_INLINE V Exp(V x) {
  const V low = V::Set(-87.0f);
  const V high = V::Set(88.7228f);
  const V clamped = V::IfLess(high, x, high, V::Max(low, x));
  const V round = V::Set(0x1.8p23f);
  const V rounded = V::Fma(clamped, V::Set(0x1.715476p0f), round);
  const V n = rounded - round;
  V r = V::Fma(n, V::Set(-0x1.62e4p-1f), clamped);
  r = V::Fma(n, V::Set(-0x1.7f7d1cp-20f), r);
  V sum = V::Set(1.0f / 5040);
  sum = V::Fma(sum, r, V::Set(1.0f / 720));
  sum = V::Fma(sum, r, V::Set(1.0f / 120));
  sum = V::Fma(sum, r, V::Set(1.0f / 24));
  sum = V::Fma(sum, r, V::Set(1.0f / 6));
  sum = V::Fma(sum, r, V::Set(0.5f));
  sum = V::Fma(sum, r, V::Set(1.0f));
  sum = V::Fma(sum, r, V::Set(1.0f));
  V result = V::ScaleByPowerOfTwo(sum, rounded);
  result = V::IfLess(x, low, V::Zero(), result);
  return V::IfLess(high, x, V::Set(__builtin_inff()), result);
}

}  // namespace baton::cpu
