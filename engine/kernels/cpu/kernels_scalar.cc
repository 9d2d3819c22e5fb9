// The family every CPU can run: no instruction beyond the compiler's baseline, no fused multiply-add.

#include "engine/kernels/cpu/table-inl.h"

namespace baton::cpu {
namespace scalar {

// Four floats side by side: the compiler makes of them what the baseline has.
struct Vec {
  static constexpr int kLanes = 4;
  static constexpr int kPanelVectors = 2;
  static constexpr int kTileRows = 4;
  static constexpr int kDotRows = 2;

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
    // Exponent and mantissa in their place, then the exponent's bias corrected by a product, exact for subnormals too.
    const Floats magnitude = AsFloats((half & 0x7fff) << 13) * 0x1p112f;
    const Words special = (half & 0x7c00) == 0x7c00;  // infinity, NaN
    return {AsFloats(AsWords(magnitude) | (special & 0x7f800000) | ((half & 0x8000) << 16))};
  }
  static BATON_INLINE Vec Load(const BF16* p) { return {AsFloats(LoadHalves(p) << 16)}; }

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
  static BATON_INLINE void Sums4(Vec a, Vec b, Vec c, Vec d, float* out) {
    out[0] = SumLanes(a.floats);
    out[1] = SumLanes(b.floats);
    out[2] = SumLanes(c.floats);
    out[3] = SumLanes(d.floats);
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
  static BATON_INLINE float SumLanes(Floats v) { return (v[0] + v[2]) + (v[1] + v[3]); }

  static BATON_INLINE uint16_t ToF16(float x) {
    uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof(bits));
    const uint32_t sign = (bits >> 16) & 0x8000;
    bits &= 0x7fffffff;
    if (bits > 0x7f800000) return sign | 0x7e00 | ((bits >> 13) & 0x1ff);  // NaN
    if (bits >= 0x477ff000) return sign | 0x7c00;                          // 65520 and more round to infinity
    if (bits < 0x38800000) {
      // Subnormal: one of its units is the last place of numbers beside 0.5, so that adding 0.5 rounds.
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
