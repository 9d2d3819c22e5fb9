// SPDX-License-Identifier: Apache-2.0
// The vector type of the AVX-512 families (operations: vector-inl.h). The baseline is F, BW, VL and DQ, which every
// server CPU with AVX-512 has.
#pragma once

#include <immintrin.h>

#include "engine/kernels/cpu/vector-inl.h"

namespace baton::cpu {

// Family names the extensions. The template argument also keeps the instantiations of each translation unit apart.
template <typename Family>
struct Vec512 {
  using Vec = Vec512;
  static constexpr int kLanes = 16;
  static constexpr int kPanelVectors = 2;
  static constexpr int kTileRows = 8;
  static constexpr int kQuantRows = Family::kVnni ? 6 : 5;
  static constexpr int kFourBytes = Family::kVnni ? 4 : 8;
  static constexpr bool kHasPairs = Family::kBf16;
  static constexpr int kPairRows = 12;

  static BATON_INLINE Vec Zero() { return {_mm512_setzero_ps()}; }
  static BATON_INLINE Vec Set(float x) { return {_mm512_set1_ps(x)}; }
  static BATON_INLINE Vec Load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static BATON_INLINE Vec Load(const F16* p) { return {_mm512_cvtph_ps(LoadHalves(p))}; }
  static BATON_INLINE Vec Load(const BF16* p) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(LoadHalves(p)), 16))};
  }
  static BATON_INLINE Vec Load(const int8_t* p) {
    return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
  }
  static BATON_INLINE Vec Load(const E4M3* p) {
    const __m256i codes = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    // Reads the code as F16; the product by 256 corrects for the different exponent bias.
    const __m256i sign = _mm256_slli_epi16(_mm256_and_si256(codes, _mm256_set1_epi16(0x80)), 8);
    const __m256i magnitude = _mm256_slli_epi16(_mm256_and_si256(codes, _mm256_set1_epi16(0x7f)), 7);
    return {_mm512_mul_ps(_mm512_cvtph_ps(_mm256_or_si256(sign, magnitude)), _mm512_set1_ps(256))};
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
  // Adds the upper half to the lower half until one lane is left.
  BATON_INLINE float SumLanes() const {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(floats), _mm512_extractf32x8_ps(floats, 1));
    __m128 sums = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    sums = _mm_add_ps(sums, _mm_movehl_ps(sums, sums));
    return _mm_cvtss_f32(_mm_add_ss(sums, _mm_movehdup_ps(sums)));
  }
  BATON_INLINE float MaxLane() const {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(floats), _mm512_extractf32x8_ps(floats, 1));
    __m128 max = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    max = _mm_max_ps(max, _mm_movehl_ps(max, max));
    return _mm_cvtss_f32(_mm_max_ss(max, _mm_movehdup_ps(max)));
  }
  static BATON_INLINE void Transpose(Vec (&rows)[kLanes]) {
    __m512d twos[kLanes];
    BATON_UNROLL for (int i = 0; i < kLanes; i += 2) {
      twos[i] = _mm512_castps_pd(_mm512_unpacklo_ps(rows[i].floats, rows[i + 1].floats));
      twos[i + 1] = _mm512_castps_pd(_mm512_unpackhi_ps(rows[i].floats, rows[i + 1].floats));
    }
    __m512 fours[kLanes];  // quarters of fours[i + j]: columns j, j + 4, j + 8, j + 12 of rows i to i + 3
    BATON_UNROLL for (int i = 0; i < kLanes; i += 4) {
      fours[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(twos[i], twos[i + 2]));
      fours[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(twos[i], twos[i + 2]));
      fours[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(twos[i + 1], twos[i + 3]));
      fours[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(twos[i + 1], twos[i + 3]));
    }
    BATON_UNROLL for (int j = 0; j < 4; ++j) {
      const __m512 even_low = _mm512_shuffle_f32x4(fours[j], fours[j + 4], 0x88);
      const __m512 even_high = _mm512_shuffle_f32x4(fours[j + 8], fours[j + 12], 0x88);
      const __m512 odd_low = _mm512_shuffle_f32x4(fours[j], fours[j + 4], 0xdd);
      const __m512 odd_high = _mm512_shuffle_f32x4(fours[j + 8], fours[j + 12], 0xdd);
      rows[j].floats = _mm512_shuffle_f32x4(even_low, even_high, 0x88);
      rows[j + 4].floats = _mm512_shuffle_f32x4(odd_low, odd_high, 0x88);
      rows[j + 8].floats = _mm512_shuffle_f32x4(even_low, even_high, 0xdd);
      rows[j + 12].floats = _mm512_shuffle_f32x4(odd_low, odd_high, 0xdd);
    }
  }

  static BATON_INLINE Vec MaxMagnitude(Vec a, Vec b) {
    const __m512i magnitude = _mm512_and_si512(_mm512_castps_si512(b.floats), _mm512_set1_epi32(0x7fffffff));
    return {_mm512_castsi512_ps(_mm512_max_epu32(_mm512_castps_si512(a.floats), magnitude))};
  }
  BATON_INLINE void StoreRounded(int8_t* p) const {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(floats)));
  }

  struct Ints {
    static BATON_INLINE Ints Zero() { return {_mm512_setzero_si512()}; }
    static BATON_INLINE Ints Broadcast(const int32_t* p) { return {_mm512_set1_epi32(*p)}; }
    BATON_INLINE Vec ToFloats() const { return {_mm512_cvtepi32_ps(ints)}; }
    __m512i ints;
  };
  struct Bytes {
    __m512i bytes;
  };
  // With VNNI, `even` holds all four values in 8 bits. Without VNNI, `even` and `odd` hold the values of even and odd
  // index in 16 bits.
  struct Four {
    __m512i even;
    __m512i odd;
  };
  static BATON_INLINE Bytes LoadBytes(const std::byte* p) { return {_mm512_loadu_si512(p)}; }
  static BATON_INLINE Bytes LowNibbles(Bytes b) { return {_mm512_and_si512(b.bytes, _mm512_set1_epi8(0x0f))}; }
  static BATON_INLINE Bytes HighNibbles(Bytes b) {
    return {_mm512_and_si512(_mm512_srli_epi16(b.bytes, 4), _mm512_set1_epi8(0x0f))};
  }
  static BATON_INLINE void StoreFour(const int8_t* values, std::byte* p) {
    if constexpr (Family::kVnni) {
      __builtin_memcpy(p, values, 4);
    } else {
      const int16_t words[4] = {values[0], values[2], values[1], values[3]};
      __builtin_memcpy(p, words, sizeof(words));
    }
  }
  static BATON_INLINE Four LoadFour(const std::byte* p) {
    int32_t words[2] = {};
    __builtin_memcpy(words, p, kFourBytes);
    return {_mm512_set1_epi32(words[0]), _mm512_set1_epi32(words[1])};
  }
  static BATON_INLINE Ints AddProducts(Ints sums, Bytes w, Four x) {
    if constexpr (Family::kVnni) {
      return {_mm512_dpbusd_epi32(sums.ints, w.bytes, x.even)};
    } else {
      const __m512i even = _mm512_madd_epi16(_mm512_and_si512(w.bytes, _mm512_set1_epi16(0xff)), x.even);
      const __m512i odd = _mm512_madd_epi16(_mm512_srli_epi16(w.bytes, 8), x.odd);
      return {_mm512_add_epi32(_mm512_add_epi32(sums.ints, even), odd)};
    }
  }

  struct Pairs {
    __m512i pairs;
  };
  static BATON_INLINE Pairs LoadPairs(const std::byte* p) { return {_mm512_loadu_si512(p)}; }
  static BATON_INLINE Pairs BroadcastPair(const std::byte* p) {
    int32_t pair;
    __builtin_memcpy(&pair, p, sizeof(pair));
    return {_mm512_set1_epi32(pair)};
  }
  static BATON_INLINE Vec JoinPairs(Vec a, Vec b) {
    const __m512i high = _mm512_and_si512(_mm512_castps_si512(b.floats), _mm512_set1_epi32(~0xffff));
    return {_mm512_castsi512_ps(_mm512_or_si512(_mm512_srli_epi32(_mm512_castps_si512(a.floats), 16), high))};
  }
  static BATON_INLINE Vec AddPairProducts(Vec sums, Pairs a, Pairs b) {
    return {_mm512_dpbf16_ps(sums.floats, reinterpret_cast<__m512bh>(a.pairs), reinterpret_cast<__m512bh>(b.pairs))};
  }

  __m512 floats;

 private:
  static BATON_INLINE __m256i LoadHalves(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  static BATON_INLINE void StoreHalves(__m256i halves, void* p) {
    _mm256_storeu_si256(static_cast<__m256i*>(p), halves);
  }
};

}  // namespace baton::cpu
