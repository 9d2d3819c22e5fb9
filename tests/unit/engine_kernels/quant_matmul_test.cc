// SPDX-License-Identifier: Apache-2.0
// Products with quantized weights.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <tuple>
#include <vector>

#include "engine/formats/block_codec.h"
#include "kernel_testing.h"

namespace baton {
namespace {

using testing::CloseTo;
using testing::FamilyTest;
using testing::Multiply;
using testing::PoisonedActivations;
using testing::RandomMatrix;
using testing::SameBits;
using testing::ToActivations;
using testing::Values;

constexpr TensorType kTypes[] = {TensorType::kQ8_0, TensorType::kQ4_0, TensorType::kQ4_1, TensorType::kQ5_0,
                                 TensorType::kQ5_1, TensorType::kQ4_K, TensorType::kQ5_K, TensorType::kQ6_K};
constexpr int kScaleInputs = 128;  // activations share a scale

bool HasTwoLevelsOfScales(TensorType type) { return InfoOf(type).block_values == 256; }

// Blocks of random codes, with scales of sensible size, at an odd address.
class QuantTensor {
 public:
  QuantTensor(TensorType type, int rows, int cols, uint32_t seed)
      : type_(type), rows_(rows), cols_(cols), bytes_(1 + rows * BytesOf(type, cols)), values_(size_t(rows) * cols) {
    std::mt19937 random(seed);
    for (std::byte& byte : bytes_) byte = static_cast<std::byte>(random());
    const TensorTypeInfo info = InfoOf(type);
    for (size_t block = 1; block < bytes_.size(); block += info.block_bytes) {
      const auto put = [&](int offset) {
        const auto half = static_cast<_Float16>(0.001f * static_cast<float>(1 + random() % 64));
        std::memcpy(&bytes_[block + offset], &half, sizeof(half));
      };
      put(type == TensorType::kQ6_K ? 208 : 0);
      const bool has_min = type == TensorType::kQ4_1 || type == TensorType::kQ5_1 || type == TensorType::kQ4_K ||
                           type == TensorType::kQ5_K;
      if (has_min) put(2);
    }
    DecodeBlocks(type, bytes_.data() + 1, values_.size(), values_.data());
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

// As the kernels read activations: 8 bits and a scale for each kScaleInputs.
std::vector<double> Quantized(std::span<const float> row) {
  std::vector<double> out;
  for (size_t first = 0; first < row.size(); first += kScaleInputs) {
    const std::span<const float> block = row.subspan(first, std::min<size_t>(kScaleInputs, row.size() - first));
    float magnitude = 0;
    for (const float x : block) magnitude = std::max(magnitude, std::abs(x));
    const float scale = magnitude / 127;
    const float factor = 127 / magnitude;
    for (const float x : block) out.push_back(std::nearbyint(x * factor) * double{scale});
  }
  return out;
}

class QuantMatMulTest : public FamilyTest {
 protected:
  static std::vector<double> Reference(const QuantTensor& weights, int outputs, int inputs, std::span<const float> x,
                                       int rows, bool exact_activations) {
    std::vector<double> out;
    for (int r = 0; r < rows; ++r) {
      const std::span<const float> row = x.subspan(size_t(r) * inputs, inputs);
      const std::vector<double> read = exact_activations ? std::vector<double>(row.begin(), row.end()) : Quantized(row);
      for (int o = 0; o < outputs; ++o) {
        double sum = 0;
        for (int i = 0; i < inputs; ++i) sum += read[i] * weights.at(o, i);
        out.push_back(sum);
      }
    }
    return out;
  }
};

TEST_P(QuantMatMulTest, MatchesDoubleArithmeticForAnyShapeAndType) {
  const auto backend = NewBackend(2);
  const std::tuple<int, int, int> shapes[] = {{1, 17, 256}, {2, 31, 256}, {3, 64, 512}, {7, 65, 1024}, {40, 33, 768}};
  for (const TensorType type : kTypes) {
    for (const auto& [rows, outputs, inputs] : shapes) {
      const QuantTensor weights(type, outputs, inputs, outputs);
      const std::vector<float> x = RandomMatrix(rows, inputs, rows);
      const std::vector<float> out = Multiply(*backend, weights.view(), x, rows);
      // Products of two levels of scales are rounded to F16.
      const double tolerance = HasTwoLevelsOfScales(type) ? 1e-3 : 2e-6;
      EXPECT_TRUE(CloseTo(out, Reference(weights, outputs, inputs, x, rows, false), tolerance))
          << InfoOf(type).name << " " << rows << " x " << outputs << " x " << inputs;
      EXPECT_TRUE(CloseTo(out, Reference(weights, outputs, inputs, x, rows, true), 2e-2))
          << InfoOf(type).name << " " << rows << " x " << outputs << " x " << inputs;
    }
  }
}

TEST_P(QuantMatMulTest, TakesTheMemoryThatIsForetold) {
  constexpr int kOutputs = 128;
  constexpr int kInputs = 512;
  const auto backend = NewBackend(1);
  for (const TensorType type : kTypes) {
    const QuantTensor weights(type, kOutputs, kInputs, 1);
    const auto matrix = *backend->Pack(weights.view());
    EXPECT_EQ(matrix->bytes(), PackedBytes(type, size_t{kOutputs} * kInputs)) << InfoOf(type).name;
  }
}

TEST_P(QuantMatMulTest, InputsNeedNotFillAScalesBlock) {
  const auto backend = NewBackend(1);
  for (const TensorType type : {TensorType::kQ8_0, TensorType::kQ4_0, TensorType::kQ5_1}) {
    for (const int inputs : {32, 96, 160, 704}) {
      const QuantTensor weights(type, 40, inputs, 1);
      const std::vector<float> x = RandomMatrix(5, inputs, 2);
      EXPECT_TRUE(CloseTo(Multiply(*backend, weights.view(), x, 5), Reference(weights, 40, inputs, x, 5, false), 2e-6))
          << InfoOf(type).name << " " << inputs;
    }
  }
}

TEST_P(QuantMatMulTest, ARowDoesNotDependOnHowManyRowsThereAre) {
  constexpr int kOutputs = 77;
  constexpr int kInputs = 512;
  constexpr int kMaxRows = 64;
  const auto backend = NewBackend(1);
  for (const TensorType type : kTypes) {
    const QuantTensor weights(type, kOutputs, kInputs, 1);
    const std::vector<float> x = RandomMatrix(kMaxRows, kInputs, 2);
    const std::vector<float> all = Multiply(*backend, weights.view(), x, kMaxRows);
    for (int rows = 1; rows < kMaxRows; ++rows) {
      const std::vector<float> some = Multiply(*backend, weights.view(), x, rows);
      ASSERT_TRUE(SameBits(some, std::span(all).first(some.size()))) << InfoOf(type).name << ", " << rows << " rows";
    }
  }
}

TEST_P(QuantMatMulTest, ARowDoesNotDependOnItsPlaceOrItsNeighbours) {
  constexpr int kOutputs = 40;
  constexpr int kInputs = 256;
  const auto backend = NewBackend(1);
  for (const TensorType type : {TensorType::kQ8_0, TensorType::kQ4_K}) {
    const QuantTensor weights(type, kOutputs, kInputs, 1);
    const std::vector<float> row = RandomMatrix(1, kInputs, 2);
    const std::vector<float> alone = Multiply(*backend, weights.view(), row, 1);
    for (const int rows : {2, 13, 1200}) {
      for (const int place : {0, rows / 2, rows - 1}) {
        std::vector<float> x(size_t(rows) * kInputs, testing::kNan);  // neighbours that would show
        std::copy(row.begin(), row.end(), x.begin() + size_t(place) * kInputs);
        const std::vector<float> out = Multiply(*backend, weights.view(), x, rows);
        EXPECT_TRUE(SameBits(alone, std::span(out).subspan(size_t(place) * kOutputs, kOutputs))) << place;
        EXPECT_TRUE(std::isnan(out[place == 0 ? out.size() - 1 : 0]));  // and they do not hide
      }
    }
  }
}

TEST_P(QuantMatMulTest, DoesNotDependOnTheNumberOfThreads) {
  constexpr int kOutputs = 333;
  constexpr int kInputs = 512;
  for (const int rows : {1, 8, 50}) {
    const QuantTensor weights(TensorType::kQ8_0, kOutputs, kInputs, 1);
    const std::vector<float> x = RandomMatrix(rows, kInputs, 2);
    const std::vector<float> one = Multiply(*NewBackend(1), weights.view(), x, rows);
    for (const int threads : {2, 3, 4}) {
      EXPECT_TRUE(SameBits(one, Multiply(*NewBackend(threads), weights.view(), x, rows))) << threads << " threads";
    }
  }
}

TEST_P(QuantMatMulTest, LargestCodesAndActivationsDoNotOverflow) {
  constexpr int kInputs = 256;
  const auto backend = NewBackend(1);
  for (const int byte : {0x80, 0x7f, 0xff, 0x00}) {
    std::vector<std::byte> blocks(BytesOf(TensorType::kQ8_0, kInputs), static_cast<std::byte>(byte));
    const auto one = static_cast<_Float16>(1.0f);
    for (size_t block = 0; block < blocks.size(); block += 34) std::memcpy(&blocks[block], &one, 2);
    for (const float sign : {-1.0f, 1.0f}) {
      const std::vector<float> x(kInputs, sign * 127);
      EXPECT_FLOAT_EQ(Multiply(*backend, {blocks.data(), TensorType::kQ8_0, 1, kInputs}, x, 1)[0],
                      sign * 127 * static_cast<int8_t>(byte) * kInputs);
    }
  }
}

TEST_P(QuantMatMulTest, ZeroAndTinyActivationsGiveZero) {
  const auto backend = NewBackend(1);
  const QuantTensor weights(TensorType::kQ4_1, 3, 256, 1);
  for (const float value : {0.0f, -0.0f, 1e-38f, 1e-45f}) {
    const std::vector<float> x(256, value);
    for (const float out : Multiply(*backend, weights.view(), x, 1)) EXPECT_EQ(out, 0) << value;
  }
}

TEST_P(QuantMatMulTest, PackedRowsCanBeRead) {
  constexpr int kInputs = 512;
  const auto backend = NewBackend(2);
  for (const TensorType type : kTypes) {
    const QuantTensor weights(type, 70, kInputs, 3);
    const auto matrix = *backend->Pack(weights.view());
    std::vector<TokenId> ids(70);
    for (int i = 0; i < 70; ++i) ids[i] = i;
    const auto out = PoisonedActivations(*backend, 70, kInputs);
    testing::Embed(*backend, *matrix, ids, *out);
    const std::vector<float> values = Values(*backend, *out, 70);
    if (HasTwoLevelsOfScales(type)) {
      EXPECT_TRUE(CloseTo(values, std::vector<double>(weights.values().begin(), weights.values().end()), 5e-4));
    } else {
      EXPECT_THAT(values, ::testing::Pointwise(::testing::FloatEq(), weights.values())) << InfoOf(type).name;
    }
  }
}

TEST_P(QuantMatMulTest, TypesCanBeStacked) {
  constexpr int kInputs = 256;
  const auto backend = NewBackend(2);
  const QuantTensor q(TensorType::kQ4_K, 50, kInputs, 1);
  const QuantTensor k(TensorType::kQ4_K, 7, kInputs, 2);
  const QuantTensor v(TensorType::kQ6_K, 40, kInputs, 3);
  const TensorView parts[] = {q.view(), k.view(), v.view()};
  const auto stacked = *backend->PackStacked(parts);
  for (const int rows : {1, 20}) {
    const std::vector<float> x = RandomMatrix(rows, kInputs, 4);
    const auto in = ToActivations(*backend, rows, kInputs, x);
    const auto out = PoisonedActivations(*backend, rows, 97);
    backend->MatMul(*stacked, *in, rows, *out);
    const std::vector<float> together = Values(*backend, *out, rows);
    int first = 0;
    for (const TensorView& part : parts) {
      const std::vector<float> alone = Multiply(*backend, part, x, rows);
      for (int r = 0; r < rows; ++r) {
        EXPECT_TRUE(SameBits(std::span(together).subspan(size_t(r) * 97 + first, part.rows),
                             std::span(alone).subspan(size_t(r) * part.rows, part.rows)));
      }
      first += part.rows;
    }
  }
}

TEST_P(QuantMatMulTest, InterleavedHeadsAreUndone) {
  constexpr int kInputs = 64;
  constexpr int kHeadDim = 6;
  const auto backend = NewBackend(1);
  for (const TensorType type : {TensorType::kQ8_0, TensorType::kF32}) {
    std::vector<float> values = RandomMatrix(size_t{2} * kHeadDim, kInputs, 1);
    std::vector<std::byte> file(12 * BytesOf(type, kInputs));
    // As the file has them: 0, 3, 1, 4, 2, 5 of each head.
    std::vector<float> want;
    for (int row = 0; row < 2 * kHeadDim; ++row) {
      const int within = row % kHeadDim;
      const int in_file = row - within + (within < 3 ? 2 * within : 2 * (within - 3) + 1);
      std::byte* const place = &file[in_file * BytesOf(type, kInputs)];
      ASSERT_TRUE(EncodeBlocks(type, std::span(values).subspan(size_t(row) * kInputs, kInputs), place));
      want.resize(want.size() + kInputs);
      DecodeBlocks(type, place, kInputs, &want[size_t(row) * kInputs]);
    }
    const auto matrix = *backend->Pack({file.data(), type, 12, kInputs, /*interleaved_heads=*/2});
    const TokenId ids[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    const auto out = PoisonedActivations(*backend, 12, kInputs);
    testing::Embed(*backend, *matrix, ids, *out);
    EXPECT_THAT(Values(*backend, *out, 12), ::testing::Pointwise(::testing::FloatEq(), want));
  }
}

TEST_P(QuantMatMulTest, RefusesRowsThatAreNoWholeBlocksOrHeads) {
  const auto backend = NewBackend(1);
  const std::vector<std::byte> bytes(1000);
  EXPECT_EQ(backend->Pack({bytes.data(), TensorType::kQ8_0, 1, 33}).status().message(),
            "weights of type Q8_0 have rows of 33 values, expected a multiple of 32");
  EXPECT_EQ(backend->Pack({bytes.data(), TensorType::kF32, 6, 4, 2}).status().message(),
            "weights of 2 interleaved heads have 6 rows, expected a multiple of 4");
}

INSTANTIATE_FOR_FAMILIES(QuantMatMulTest);

}  // namespace
}  // namespace baton
