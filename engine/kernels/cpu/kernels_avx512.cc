// AVX-512 F, BW, VL and DQ: the subset of every server CPU that has AVX-512.

#include <immintrin.h>

#include "engine/kernels/cpu/table-inl.h"

namespace baton::cpu {
namespace avx512 {

struct Vec {
  static constexpr int kLanes = 16;
  static constexpr int kPanelVectors = 2;
  static constexpr int kTileRows = 8;
  static constexpr int kDotRows = 4;

  static BATON_INLINE Vec Zero() { return {_mm512_setzero_ps()}; }
  static BATON_INLINE Vec Set(float x) { return {_mm512_set1_ps(x)}; }
  static BATON_INLINE Vec Load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static BATON_INLINE Vec Load(const F16* p) { return {_mm512_cvtph_ps(LoadHalves(p))}; }
  static BATON_INLINE Vec Load(const BF16* p) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(LoadHalves(p)), 16))};
  }

  BATON_INLINE void Store(float* p) const { _mm512_storeu_ps(p, floats); }
  BATON_INLINE void Store(F16* p) const {
    StoreHalves(_mm512_cvtps_ph(floats, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), p);
  }
  BATON_INLINE void Store(BF16* p) const {
    const __m512i bits = _mm512_castps_si512(floats);
    const __m512i high = _mm512_srli_epi32(bits, 16);
    const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    const __m512i rounded =
        _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
    const __mmask16 nan = _mm512_cmp_ps_mask(floats, floats, _CMP_UNORD_Q);
    StoreHalves(_mm512_cvtepi32_epi16(_mm512_mask_or_epi32(rounded, nan, high, _mm512_set1_epi32(0x40))), p);
  }

  friend BATON_INLINE Vec operator+(Vec a, Vec b) { return {_mm512_add_ps(a.floats, b.floats)}; }
  friend BATON_INLINE Vec operator-(Vec a, Vec b) { return {_mm512_sub_ps(a.floats, b.floats)}; }
  friend BATON_INLINE Vec operator*(Vec a, Vec b) { return {_mm512_mul_ps(a.floats, b.floats)}; }
  friend BATON_INLINE Vec operator/(Vec a, Vec b) { return {_mm512_div_ps(a.floats, b.floats)}; }
  static BATON_INLINE Vec Fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.floats, b.floats, c.floats)}; }
  static BATON_INLINE Vec Max(Vec a, Vec b) { return {_mm512_max_ps(a.floats, b.floats)}; }
  static BATON_INLINE Vec IfLess(Vec a, Vec b, Vec x, Vec y) {
    return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.floats, b.floats, _CMP_LT_OQ), y.floats, x.floats)};
  }
  static BATON_INLINE Vec ScaleByPowerOfTwo(Vec a, Vec n) {
    const __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(n.floats), 23);
    return {_mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a.floats), exponent))};
  }
  static BATON_INLINE float Sqrt(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }
  static BATON_INLINE void Sums4(Vec a, Vec b, Vec c, Vec d, float* out) {
    // The halves, then neighbours, neighbours of those, and the two halves left.
    const __m256 ab = _mm256_hadd_ps(AddHalves(a), AddHalves(b));
    const __m256 cd = _mm256_hadd_ps(AddHalves(c), AddHalves(d));
    const __m256 abcd = _mm256_hadd_ps(ab, cd);
    _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(abcd), _mm256_extractf128_ps(abcd, 1)));
  }

  __m512 floats;

 private:
  static BATON_INLINE __m256 AddHalves(Vec v) {
    return _mm256_add_ps(_mm512_castps512_ps256(v.floats), _mm512_extractf32x8_ps(v.floats, 1));
  }
  static BATON_INLINE __m256i LoadHalves(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  static BATON_INLINE void StoreHalves(__m256i halves, void* p) {
    _mm256_storeu_si256(static_cast<__m256i*>(p), halves);
  }
};

}  // namespace avx512

constinit const KernelTable kAvx512Kernels = MakeTable<avx512::Vec>("avx512");

}  // namespace baton::cpu
