// SPDX-License-Identifier: Apache-2.0
// AVX2 with FMA and F16C, which every x86 server has had since 2013.

#include <immintrin.h>

#include "engine/kernels/cpu/table-inl.h"

namespace baton::cpu {
namespace avx2 {

struct Vec {
  static constexpr int kLanes = 8;
  static constexpr int kPanelVectors = 2;
  static constexpr int kTileRows = 6;
  static constexpr int kQuantRows = 2;
  static constexpr int kFourBytes = 8;
  static constexpr bool kHasPairs = false;

  static BATON_INLINE Vec Zero() { return {_mm256_setzero_ps()}; }
  static BATON_INLINE Vec Set(float x) { return {_mm256_set1_ps(x)}; }
  static BATON_INLINE Vec Load(const float* p) { return {_mm256_loadu_ps(p)}; }
  static BATON_INLINE Vec Load(const F16* p) { return {_mm256_cvtph_ps(LoadHalves(p))}; }
  static BATON_INLINE Vec Load(const BF16* p) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(LoadHalves(p)), 16))};
  }
  static BATON_INLINE Vec Load(const int8_t* p) {
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))))};
  }
  static BATON_INLINE Vec Load(const E4M3* p) {
    const __m128i codes = _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
    // Reads the code as F16; the product by 256 corrects for the different exponent bias.
    const __m128i sign = _mm_slli_epi16(_mm_and_si128(codes, _mm_set1_epi16(0x80)), 8);
    const __m128i magnitude = _mm_slli_epi16(_mm_and_si128(codes, _mm_set1_epi16(0x7f)), 7);
    return {_mm256_mul_ps(_mm256_cvtph_ps(_mm_or_si128(sign, magnitude)), _mm256_set1_ps(256))};
  }

  BATON_INLINE void Store(float* p) const { _mm256_storeu_ps(p, floats); }
  BATON_INLINE void Store(F16* p) const {
    StoreHalves(_mm256_cvtps_ph(floats, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), p);
  }
  BATON_INLINE void Store(BF16* p) const {
    const __m256i bits = _mm256_castps_si256(floats);
    const __m256i high = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    const __m256i rounded =
        _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(floats, floats, _CMP_UNORD_Q));
    const __m256i words = _mm256_blendv_epi8(rounded, _mm256_or_si256(high, _mm256_set1_epi32(0x40)), nan);
    // packus leaves each 128-bit half's four values twice; the permute keeps one copy of each.
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(words, words), 0b1000);
    StoreHalves(_mm256_castsi256_si128(packed), p);
  }

  friend BATON_INLINE Vec operator+(Vec a, Vec b) { return {_mm256_add_ps(a.floats, b.floats)}; }
  friend BATON_INLINE Vec operator-(Vec a, Vec b) { return {_mm256_sub_ps(a.floats, b.floats)}; }
  friend BATON_INLINE Vec operator*(Vec a, Vec b) { return {_mm256_mul_ps(a.floats, b.floats)}; }
  friend BATON_INLINE Vec operator/(Vec a, Vec b) { return {_mm256_div_ps(a.floats, b.floats)}; }
  static BATON_INLINE Vec Fma(Vec a, Vec b, Vec c) { return {_mm256_fmadd_ps(a.floats, b.floats, c.floats)}; }
  static BATON_INLINE Vec Max(Vec a, Vec b) { return {_mm256_max_ps(a.floats, b.floats)}; }
  static BATON_INLINE Vec IfLess(Vec a, Vec b, Vec x, Vec y) {
    return {_mm256_blendv_ps(y.floats, x.floats, _mm256_cmp_ps(a.floats, b.floats, _CMP_LT_OQ))};
  }
  static BATON_INLINE Vec ScaleByPowerOfTwo(Vec a, Vec n) {
    const __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(n.floats), 23);
    return {_mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a.floats), exponent))};
  }
  static BATON_INLINE float Sqrt(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }
  // Adds the upper half to the lower half until one lane is left.
  BATON_INLINE float SumLanes() const {
    __m128 sums = _mm_add_ps(_mm256_castps256_ps128(floats), _mm256_extractf128_ps(floats, 1));
    sums = _mm_add_ps(sums, _mm_movehl_ps(sums, sums));
    return _mm_cvtss_f32(_mm_add_ss(sums, _mm_movehdup_ps(sums)));
  }
  BATON_INLINE float MaxLane() const {
    __m128 max = _mm_max_ps(_mm256_castps256_ps128(floats), _mm256_extractf128_ps(floats, 1));
    max = _mm_max_ps(max, _mm_movehl_ps(max, max));
    return _mm_cvtss_f32(_mm_max_ss(max, _mm_movehdup_ps(max)));
  }
  static BATON_INLINE void Transpose(Vec (&rows)[kLanes]) {
    __m256 twos[kLanes];
    BATON_UNROLL for (int i = 0; i < kLanes; i += 2) {
      twos[i] = _mm256_unpacklo_ps(rows[i].floats, rows[i + 1].floats);
      twos[i + 1] = _mm256_unpackhi_ps(rows[i].floats, rows[i + 1].floats);
    }
    __m256 fours[kLanes];  // halves of fours[i + j]: columns j and j + 4 of rows i to i + 3
    BATON_UNROLL for (int i = 0; i < kLanes; i += 4) {
      fours[i] = _mm256_shuffle_ps(twos[i], twos[i + 2], 0x44);
      fours[i + 1] = _mm256_shuffle_ps(twos[i], twos[i + 2], 0xee);
      fours[i + 2] = _mm256_shuffle_ps(twos[i + 1], twos[i + 3], 0x44);
      fours[i + 3] = _mm256_shuffle_ps(twos[i + 1], twos[i + 3], 0xee);
    }
    BATON_UNROLL for (int j = 0; j < 4; ++j) {
      rows[j].floats = _mm256_permute2f128_ps(fours[j], fours[j + 4], 0x20);
      rows[j + 4].floats = _mm256_permute2f128_ps(fours[j], fours[j + 4], 0x31);
    }
  }

  static BATON_INLINE Vec MaxMagnitude(Vec a, Vec b) {
    const __m256i magnitude = _mm256_and_si256(_mm256_castps_si256(b.floats), _mm256_set1_epi32(0x7fffffff));
    return {_mm256_castsi256_ps(_mm256_max_epu32(_mm256_castps_si256(a.floats), magnitude))};
  }
  BATON_INLINE void StoreRounded(int8_t* p) const {
    const __m256i ints = _mm256_cvtps_epi32(floats);
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(ints), _mm256_extracti128_si256(ints, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(words, words));
  }

  struct Ints {
    static BATON_INLINE Ints Zero() { return {_mm256_setzero_si256()}; }
    static BATON_INLINE Ints Broadcast(const int32_t* p) { return {_mm256_set1_epi32(*p)}; }
    BATON_INLINE Vec ToFloats() const { return {_mm256_cvtepi32_ps(ints)}; }
    __m256i ints;
  };
  struct Bytes {
    __m256i bytes;
  };
  // The values of even and odd index, in 16 bits.
  struct Four {
    __m256i even;
    __m256i odd;
  };
  static BATON_INLINE Bytes LoadBytes(const std::byte* p) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))};
  }
  static BATON_INLINE Bytes LowNibbles(Bytes b) { return {_mm256_and_si256(b.bytes, _mm256_set1_epi8(0x0f))}; }
  static BATON_INLINE Bytes HighNibbles(Bytes b) {
    return {_mm256_and_si256(_mm256_srli_epi16(b.bytes, 4), _mm256_set1_epi8(0x0f))};
  }
  static BATON_INLINE void StoreFour(const int8_t* values, std::byte* p) {
    const int16_t words[4] = {values[0], values[2], values[1], values[3]};
    __builtin_memcpy(p, words, sizeof(words));
  }
  static BATON_INLINE Four LoadFour(const std::byte* p) {
    int32_t words[2];
    __builtin_memcpy(words, p, sizeof(words));
    return {_mm256_set1_epi32(words[0]), _mm256_set1_epi32(words[1])};
  }
  static BATON_INLINE Ints AddProducts(Ints sums, Bytes w, Four x) {
    const __m256i even = _mm256_madd_epi16(_mm256_and_si256(w.bytes, _mm256_set1_epi16(0xff)), x.even);
    const __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(w.bytes, 8), x.odd);
    return {_mm256_add_epi32(_mm256_add_epi32(sums.ints, even), odd)};
  }

  __m256 floats;

 private:
  static BATON_INLINE __m128i LoadHalves(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
  static BATON_INLINE void StoreHalves(__m128i halves, void* p) { _mm_storeu_si128(static_cast<__m128i*>(p), halves); }
};

}  // namespace avx2

constinit const KernelTable kAvx2Kernels = MakeTable<avx2::Vec>("avx2");

}  // namespace baton::cpu
