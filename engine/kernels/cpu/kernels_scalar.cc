// SPDX-License-Identifier: Apache-2.0
// The family that every CPU runs: the compiler's baseline instructions, no fused multiply-add.

#include "engine/kernels/cpu/table-inl.h"

namespace baton::cpu {
namespace scalar {

// Four floats; the compiler maps them to the baseline's vector instructions.
struct Vec {
  static constexpr int kLanes = 4;
  static constexpr int kPanelVectors = 2;
  static constexpr int kTileRows = 4;
  static constexpr int kQuantRows = 2;
  static constexpr int kFourBytes = 4;
  static constexpr bool kHasPairs = false;

  using Floats = float __attribute__((vector_size(16)));
  using Words = uint32_t __attribute__((vector_size(16)));
  using Halves = uint16_t __attribute__((vector_size(8)));

  static BATON_INLINE Vec Zero() { return {Floats{}}; }
  static BATON_INLINE Vec Set(float x) { return {Floats{x, x, x, x}}; }
  static BATON_INLINE Vec Load(const float* p) {
    Vec v;
    __builtin_memcpy(&v.floats, p, sizeof(v.floats));
    return v;
  }
  static BATON_INLINE Vec Load(const F16* p) {
    const Words half = LoadHalves(p);
    // Shifts exponent and mantissa into place; the product corrects the exponent bias, exactly for subnormals, too.
    const Floats magnitude = AsFloats((half & 0x7fff) << 13) * 0x1p112f;
    const Words special = (half & 0x7c00) == 0x7c00;  // infinity, NaN
    return {AsFloats(AsWords(magnitude) | (special & 0x7f800000) | ((half & 0x8000) << 16))};
  }
  static BATON_INLINE Vec Load(const BF16* p) { return {AsFloats(LoadHalves(p) << 16)}; }
  static BATON_INLINE Vec Load(const int8_t* p) {
    return {
        Floats{static_cast<float>(p[0]), static_cast<float>(p[1]), static_cast<float>(p[2]), static_cast<float>(p[3])}};
  }
  static BATON_INLINE Vec Load(const E4M3* p) {
    const Words codes = {p[0].bits, p[1].bits, p[2].bits, p[3].bits};
    const Floats magnitude = AsFloats((codes & 0x7f) << 20) * 0x1p120f;  // exponent bias, as for F16
    return {AsFloats(AsWords(magnitude) | ((codes & 0x80) << 24))};
  }

  BATON_INLINE void Store(float* p) const { __builtin_memcpy(p, &floats, sizeof(floats)); }
  BATON_INLINE void Store(F16* p) const {
    for (int i = 0; i < kLanes; ++i) p[i].bits = ToF16(floats[i]);
  }
  BATON_INLINE void Store(BF16* p) const {
    const Words bits = AsWords(floats);
    const Words rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    const Words nan = (bits & 0x7fffffff) > 0x7f800000;
    const Halves halves = __builtin_convertvector((nan & ((bits >> 16) | 0x40)) | (~nan & rounded), Halves);
    __builtin_memcpy(p, &halves, sizeof(halves));
  }

  friend BATON_INLINE Vec operator+(Vec a, Vec b) { return {a.floats + b.floats}; }
  friend BATON_INLINE Vec operator-(Vec a, Vec b) { return {a.floats - b.floats}; }
  friend BATON_INLINE Vec operator*(Vec a, Vec b) { return {a.floats * b.floats}; }
  friend BATON_INLINE Vec operator/(Vec a, Vec b) { return {a.floats / b.floats}; }
  static BATON_INLINE Vec Fma(Vec a, Vec b, Vec c) { return {a.floats * b.floats + c.floats}; }
  static BATON_INLINE Vec Max(Vec a, Vec b) { return {a.floats > b.floats ? a.floats : b.floats}; }
  static BATON_INLINE Vec IfLess(Vec a, Vec b, Vec x, Vec y) { return {a.floats < b.floats ? x.floats : y.floats}; }
  static BATON_INLINE Vec ScaleByPowerOfTwo(Vec a, Vec n) {
    return {AsFloats(AsWords(a.floats) + (AsWords(n.floats) << 23))};
  }
  static BATON_INLINE float Sqrt(float x) { return __builtin_sqrtf(x); }
  BATON_INLINE float SumLanes() const { return (floats[0] + floats[2]) + (floats[1] + floats[3]); }
  BATON_INLINE float MaxLane() const {
    float max = floats[0];
    for (int i = 1; i < kLanes; ++i) max = max < floats[i] ? floats[i] : max;
    return max;
  }
  static BATON_INLINE void Transpose(Vec (&rows)[kLanes]) {
    Vec columns[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      columns[i] = {Floats{rows[0].floats[i], rows[1].floats[i], rows[2].floats[i], rows[3].floats[i]}};
    }
    for (int i = 0; i < kLanes; ++i) rows[i] = columns[i];
  }

  static BATON_INLINE Vec MaxMagnitude(Vec a, Vec b) {
    const Words x = AsWords(a.floats);
    const Words y = AsWords(b.floats) & 0x7fffffff;
    return {AsFloats(x > y ? x : y)};
  }
  BATON_INLINE void StoreRounded(int8_t* p) const {
    for (int i = 0; i < kLanes; ++i) {
      // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits. For NaN the low bits are arbitrary.
      const float shifted = floats[i] + 0x1.8p23f;
      uint32_t bits;
      __builtin_memcpy(&bits, &shifted, sizeof(bits));
      p[i] = static_cast<int8_t>(bits);
    }
  }

  struct Ints {
    static BATON_INLINE Ints Zero() { return {}; }
    static BATON_INLINE Ints Broadcast(const int32_t* p) { return {{*p, *p, *p, *p}}; }
    BATON_INLINE Vec ToFloats() const {
      return {Floats{static_cast<float>(ints[0]), static_cast<float>(ints[1]), static_cast<float>(ints[2]),
                     static_cast<float>(ints[3])}};
    }
    int32_t ints[kLanes];
  };
  struct Bytes {
    uint8_t bytes[4 * kLanes];
  };
  struct Four {
    int8_t values[4];
  };
  static BATON_INLINE Bytes LoadBytes(const std::byte* p) {
    Bytes b;
    __builtin_memcpy(b.bytes, p, sizeof(b.bytes));
    return b;
  }
  static BATON_INLINE Bytes LowNibbles(Bytes b) {
    for (uint8_t& byte : b.bytes) byte &= 0x0f;
    return b;
  }
  static BATON_INLINE Bytes HighNibbles(Bytes b) {
    for (uint8_t& byte : b.bytes) byte >>= 4;
    return b;
  }
  static BATON_INLINE void StoreFour(const int8_t* values, std::byte* p) { __builtin_memcpy(p, values, 4); }
  static BATON_INLINE Four LoadFour(const std::byte* p) {
    Four four;
    __builtin_memcpy(four.values, p, sizeof(four.values));
    return four;
  }
  static BATON_INLINE Ints AddProducts(Ints sums, Bytes w, Four x) {
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int i = 0; i < 4; ++i) sums.ints[lane] += w.bytes[4 * lane + i] * x.values[i];
    }
    return sums;
  }

  Floats floats;

 private:
  static BATON_INLINE Floats AsFloats(Words words) { return reinterpret_cast<Floats>(words); }
  static BATON_INLINE Words AsWords(Floats floats) { return reinterpret_cast<Words>(floats); }
  static BATON_INLINE Words LoadHalves(const void* p) {
    Halves halves;
    __builtin_memcpy(&halves, p, sizeof(halves));
    return __builtin_convertvector(halves, Words);
  }

  static BATON_INLINE uint16_t ToF16(float x) {
    uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof(bits));
    const uint32_t sign = (bits >> 16) & 0x8000;
    bits &= 0x7fffffff;
    if (bits > 0x7f800000) return sign | 0x7e00 | ((bits >> 13) & 0x1ff);  // NaN
    if (bits >= 0x477ff000) return sign | 0x7c00;                          // 65520 and more round to infinity
    if (bits < 0x38800000) {
      // Subnormal: the last place of floats near 0.5 is the subnormal unit, so adding 0.5 rounds.
      float magnitude;
      __builtin_memcpy(&magnitude, &bits, sizeof(bits));
      magnitude += 0.5f;
      __builtin_memcpy(&bits, &magnitude, sizeof(bits));
      return sign | (bits - 0x3f000000);
    }
    return sign | ((bits - 0x38000000 + 0xfff + ((bits >> 13) & 1)) >> 13);
  }
};

}  // namespace scalar

constinit const KernelTable kScalarKernels = MakeTable<scalar::Vec>("scalar");

}  // namespace baton::cpu
