// SPDX-License-Identifier: Apache-2.0
// Helpers of the kernel tests: backends of each family, random data, rounding done the slow way.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "engine/kernels/backend.h"
#include "engine/types.h"
#include "tests/kernel_families.h"
#include "tests/status_matchers.h"

namespace baton::testing {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Parameterized by family. Skips a family only when this CPU lacks the family's features.
class FamilyTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_CPU_FOR(GetParam());
    ASSERT_OK(CreateCpuBackend({.threads = 1, .kernels = GetParam()}));
  }
  static std::unique_ptr<Backend> NewBackend(int threads) {
    auto backend = CreateCpuBackend({.threads = threads, .kernels = GetParam()});
    EXPECT_OK(backend);
    return backend.ok() ? *std::move(backend) : nullptr;
  }
};

#define INSTANTIATE_FOR_FAMILIES(suite)                                                      \
  INSTANTIATE_TEST_SUITE_P(, suite, ::testing::ValuesIn(::baton::testing::KernelFamilies()), \
                           [](const auto& info) { return ::baton::testing::AsTestName(info.param); })

inline std::vector<float> RandomFloats(size_t count, uint32_t seed, float scale = 1.0f) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

inline std::vector<float> RandomMatrix(size_t rows, size_t cols, uint32_t seed, float scale = 1.0f) {
  return RandomFloats(rows * cols, seed, scale);
}

// Nearest BF16, ties to even, by arithmetic; normal numbers only.
inline float RoundToBF16(float x) {
  if (x == 0 || !std::isfinite(x)) return x;
  int exponent = 0;
  const double mantissa = std::frexp(double{x}, &exponent);
  return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8));
}

// Nearest E4M3, ties to even, by arithmetic; up to 448.
inline float RoundToE4M3(float x) {
  if (x == 0) return x;
  const int last_place = std::max(std::ilogb(x), -6) - 3;
  return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(double{x}, -last_place)), last_place));
}

inline float RoundTo(TensorType type, float x) {
  if (type == TensorType::kF16) return static_cast<float>(static_cast<_Float16>(x));
  return type == TensorType::kBF16 ? RoundToBF16(x) : x;
}

// Returns one head's K or V of one token as read from the KV cache.
inline std::vector<float> AsKept(KvType type, std::span<const float> head) {
  std::vector<float> kept(head.begin(), head.end());
  if (HasScales(type)) {
    const float largest = type == KvType::kInt8 ? 127 : 448;
    float magnitude = 0;
    for (const float x : head) magnitude = std::max(magnitude, std::abs(x));
    if (magnitude == 0) return kept;
    const float scale = magnitude / largest;
    for (float& x : kept) {
      x *= largest / magnitude;
      x = (type == KvType::kInt8 ? std::nearbyint(x) : RoundToE4M3(x)) * scale;
    }
  } else {
    for (float& x : kept) x = RoundTo(static_cast<TensorType>(type), x);
  }
  return kept;
}

// A matrix as a file would hold it, rounded to `type`; at an odd address, as files may.
class FileTensor {
 public:
  FileTensor(TensorType type, int rows, int cols, std::span<const float> values)
      : type_(type), rows_(rows), cols_(cols), bytes_(1 + BytesOf(type, values.size())) {
    for (size_t i = 0; i < values.size(); ++i) {
      values_.push_back(RoundTo(type, values[i]));
      std::byte* const at = bytes_.data() + 1 + BytesOf(type, i);
      if (type == TensorType::kF32) {
        std::memcpy(at, &values_.back(), 4);
      } else if (type == TensorType::kF16) {
        const auto half = static_cast<_Float16>(values_.back());
        std::memcpy(at, &half, 2);
      } else {
        std::memcpy(at, reinterpret_cast<const char*>(&values_.back()) + 2, 2);
      }
    }
  }
  TensorView view() const { return {bytes_.data() + 1, type_, rows_, cols_}; }
  float at(int row, int col) const { return values_[size_t(row) * cols_ + col]; }
  std::span<const float> values() const { return values_; }

 private:
  TensorType type_;
  int rows_;
  int cols_;
  std::vector<std::byte> bytes_;
  std::vector<float> values_;
};

inline std::unique_ptr<Activations> ToActivations(Backend& backend, int rows, int cols, std::span<const float> values) {
  auto x = *backend.Allocate(rows, cols);
  std::copy(values.begin(), values.end(), backend.HostData(*x));
  return x;
}

inline std::unique_ptr<Activations> PoisonedActivations(Backend& backend, int rows, int cols) {
  return ToActivations(backend, rows, cols, std::vector<float>(size_t(rows) * cols, kNan));
}

inline std::vector<float> Values(Backend& backend, Activations& x, int rows) {
  const float* data = backend.HostData(x);
  return {data, data + size_t(rows) * x.cols()};
}

// `values` as norm weights in the backend's memory.
inline std::unique_ptr<WeightVector> ToVector(Backend& backend, std::span<const float> values) {
  return *backend.PackVector({.data = reinterpret_cast<const std::byte*>(values.data()),
                              .type = TensorType::kF32,
                              .rows = 1,
                              .cols = static_cast<int>(values.size())});
}

inline void Embed(Backend& backend, const Matrix& table, std::span<const TokenId> ids, Activations& out) {
  backend.BeginStep({.tokens = ids});
  backend.Embed(table, out);
}

// Writes K and V of one sequence's rows.
inline void WriteKv(Backend& backend, const Activations& qkv, int k_col, int v_col, const SequenceRows& sequence,
                    const KvBlock& block, std::byte* kv) {
  const GroupRows group{.block = block, .block_stride = block.bytes(), .sequences = {&sequence, 1}};
  backend.BeginStep({.heads = block.kv_heads, .groups = {&group, 1}});
  backend.WriteKv(qkv, k_col, v_col, {.data = kv});
}

// x w^T, the first `rows` rows of x being multiplied.
inline std::vector<float> Multiply(Backend& backend, const TensorView& weights, std::span<const float> x, int rows) {
  const auto matrix = *backend.Pack(weights);
  const auto in = ToActivations(backend, rows, weights.cols, x.first(size_t(rows) * weights.cols));
  const auto out = PoisonedActivations(backend, rows, weights.rows);
  backend.MatMul(*matrix, *in, rows, *out);
  return Values(backend, *out, rows);
}

// Equal bit for bit; NaN nowhere.
inline ::testing::AssertionResult SameBits(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " values, " << b.size();
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) || std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i])) {
      return ::testing::AssertionFailure() << "at " << i << ": " << a[i] << " and " << b[i];
    }
  }
  return ::testing::AssertionSuccess();
}

// |got - want| <= tolerance max|want|, everywhere.
inline ::testing::AssertionResult CloseTo(std::span<const float> got, std::span<const double> want, double tolerance) {
  if (got.size() != want.size()) return ::testing::AssertionFailure() << got.size() << " values, " << want.size();
  double largest = 0;
  for (const double value : want) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < got.size(); ++i) {
    if (!(std::abs(got[i] - want[i]) <= tolerance * largest)) {
      return ::testing::AssertionFailure() << "at " << i << ": " << got[i] << ", expected " << want[i];
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace baton::testing
