// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/det_math.h"

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace baton {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
// Adding 1.5 * 2^52 rounds to the nearest integer, ties to even, and leaves the integer in the low bits.
constexpr double kRound = 0x1.8p52;
// ln 2 = kLn2High + kLn2Low. kLn2High has few enough bits that its product with any exponent is exact.
constexpr double kLn2High = 0x1.62e42fefa38p-1;
constexpr double kLn2Low = 0x1.ef35793c7673p-45;
constexpr double kLog2E = 0x1.71547652b82fep0;

// pi/2 in three parts of 33 bits, whose products with integers below 2^20 are exact, and a remainder.
constexpr double kHalfPi1 = 0x1.921fb544p0;
constexpr double kHalfPi2 = 0x1.0b4611a6p-34;
constexpr double kHalfPi3 = 0x1.3198a2ep-69;
constexpr double kHalfPi4 = 0x1.b839a252049c1p-104;
constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;

// Coefficients 1/i! of the Taylor series of exp, sin and cos.
template <int kTerms>
struct InverseFactorials {
  constexpr InverseFactorials() {
    double factorial = 1;
    for (int i = 0; i < kTerms; ++i) {
      factorial *= i == 0 ? 1 : i;  // exact up to 18!
      value[i] = 1 / factorial;
    }
  }
  double value[kTerms] = {};
};
constexpr InverseFactorials<19> kInverseFactorial;

double ScaleByPowerOfTwo(double x, int64_t n) {
  return std::bit_cast<double>(std::bit_cast<uint64_t>(x) + (static_cast<uint64_t>(n) << 52));
}

// Returns sin(r), cos(r), -sin(r) or -cos(r) for quadrants 0 to 3, for |r| <= pi/4.
double SinOfQuadrant(double r, unsigned quadrant) {
  const double square = r * r;
  const bool cosine = (quadrant & 1) != 0;
  double sum = 0;
  for (int i = cosine ? 18 : 17; i >= 0; i -= 2) {
    const double term = (i & 2) != 0 ? -kInverseFactorial.value[i] : kInverseFactorial.value[i];
    sum = sum * square + term;
  }
  const double value = cosine ? sum : sum * r;
  return (quadrant & 2) != 0 ? -value : value;
}

double SinShifted(double x, unsigned shift) {
  if (!(x >= -1e6 && x <= 1e6)) return kNan;
  const double rounded = x * kTwoOverPi + kRound;
  const double n = rounded - kRound;
  const double r = (((x - n * kHalfPi1) - n * kHalfPi2) - n * kHalfPi3) - n * kHalfPi4;
  return SinOfQuadrant(r, (static_cast<unsigned>(std::bit_cast<uint64_t>(rounded)) + shift) & 3);
}

}  // namespace

float DetExp(float x) {
  constexpr float kFloatRound = 0x1.8p23f;
  if (!(x >= -87.0f)) return x < -87.0f ? 0.0f : x;  // NaN stays
  if (x > 88.7228f) return std::numeric_limits<float>::infinity();
  const float rounded = x * 0x1.715476p0f + kFloatRound;
  const float n = rounded - kFloatRound;
  const float r = (x - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;
  float sum = 1.0f / 5040;
  sum = sum * r + 1.0f / 720;
  sum = sum * r + 1.0f / 120;
  sum = sum * r + 1.0f / 24;
  sum = sum * r + 1.0f / 6;
  sum = sum * r + 0.5f;
  sum = sum * r + 1.0f;
  sum = sum * r + 1.0f;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(sum) + (std::bit_cast<uint32_t>(rounded) << 23));
}

void DetExp(std::span<const float> x, std::span<float> out) {
  assert(x.size() == out.size());
  for (size_t i = 0; i < x.size(); ++i) out[i] = DetExp(x[i]);
}

float DetLog(float x) { return static_cast<float>(DetLog(static_cast<double>(x))); }

double DetExp(double x) {
  if (!(x >= -708.0)) return x < -708.0 ? 0.0 : x;  // NaN stays
  if (x > 709.782712893383973) return kInfinity;
  const double rounded = x * kLog2E + kRound;
  const double n = rounded - kRound;
  const double r = (x - n * kLn2High) - n * kLn2Low;
  double sum = 0;
  for (int i = 13; i >= 0; --i) sum = sum * r + kInverseFactorial.value[i];
  return ScaleByPowerOfTwo(sum, static_cast<int64_t>(n));
}

double DetLog(double x) {
  if (!(x > 0)) return x == 0 ? -kInfinity : kNan;
  if (x == kInfinity) return x;
  int64_t exponent = 0;
  if (x < std::numeric_limits<double>::min()) {
    x *= 0x1p54;
    exponent = -54;
  }
  // x = m * 2^exponent with m between sqrt(1/2) and sqrt(2); log(m) = 2 atanh((m - 1) / (m + 1)).
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  exponent += static_cast<int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xfffffffffffffULL) | 0x3ff0000000000000ULL);
  if (m > 0x1.6a09e667f3bcdp0) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1) / (m + 1);
  const double square = s * s;
  double sum = 0;
  for (int i = 23; i >= 3; i -= 2) sum = sum * square + 1.0 / i;
  const double log_m = 2 * s + 2 * s * (square * sum);
  const double n = static_cast<double>(exponent);
  return n * kLn2High + (log_m + n * kLn2Low);
}

double DetPow(double x, double y) {
  if (y == 0) return 1;
  return DetExp(y * DetLog(x));
}

double DetSin(double x) { return SinShifted(x, 0); }

double DetCos(double x) { return SinShifted(x, 1); }

}  // namespace baton
