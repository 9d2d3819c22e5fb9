// What the kernels need on top of a family's vector type, and which operations that type has. See kernel_table.h for
// what may be included here.
//
// A vector type V is kLanes floats:
//   V::Zero(), V::Set(float)
//   V::Load(const T*) of kLanes values of T, widened, T being float, F16, BF16, int8_t or E4M3 (which has no NaN here)
//   v.Store(T*)      rounded to T, to nearest, ties to even, T being float, F16 or BF16
//   V::Fma(a, b, c)        a b + c, fused or not: the same for all lanes and kernels of the family
//   +, -, *, /, V::Max(a, b) (b if either is NaN), V::IfLess(a, b, x, y) (a < b ? x : y, by lane)
//   V::ScaleByPowerOfTwo(a, n)  a 2^i, i in the low bits of n
//   V::Sqrt(float)   exact, not libm's
//   v.SumLanes()  always added in the same order; v.MaxLane(), of what is no NaN
//   V::Transpose(V (&rows)[kLanes])  row i gets lane i of all
//   V::MaxMagnitude(a, b)  of a >= 0 and |b| the larger by bits, so that NaN wins
//   v.StoreRounded(int8_t*)  to nearest, ties to even; what does not fit becomes any value
// For products of 8-bit integers: Ints are kLanes sums of 32 bits, Bytes 4 unsigned codes for each of these, a Four the
// 4 signed activations that meet them, kFourBytes long in memory (StoreFour, LoadFour).
//   V::AddProducts(Ints, Bytes, Four)  adds to each sum its 4 products, exactly, for codes to 255 and values from -128
//   V::LowNibbles(b), V::HighNibbles(b)  4-bit codes of Bytes; ints.ToFloats()
// With kHasPairs: V::AddPairProducts(V, Pairs, Pairs) adds products of two BF16 numbers to each float.
//   V::JoinPairs(V a, V b)  in each lane the BF16 of a, below that of b, of values that are exact in BF16
// kPanelVectors vectors are one panel of packed weights; kTileRows rows by one panel fit the registers, kQuantRows and
// kPairRows in products of integers and of pairs.
#pragma once

#include <cstdint>

#include "engine/kernels/cpu/kernel_table.h"
// Loops over registers: they must vanish at compile time.
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

// The first `count` < kLanes values, the other lanes 0: adding them to a sum changes nothing.
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

// Calls f(index, partial lanes or 0) for each vector of `count` values.
template <typename V, typename F>
BATON_INLINE void ForVectors(size_t count, F f) {
  size_t i = 0;
  for (; i + V::kLanes <= count; i += V::kLanes) f(i, 0);
  if (i < count) f(i, static_cast<int>(count - i));
}

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

// e^x within 2e-7; too small for a normal float is 0, too large is infinity, NaN stays. The method of DetExp.
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
