// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <tuple>
#include <vector>

#include "kernel_testing.h"

namespace baton {
namespace {

using testing::CloseTo;
using testing::FamilyTest;
using testing::FileTensor;
using testing::Multiply;
using testing::PoisonedActivations;
using testing::RandomFloats;
using testing::RandomMatrix;
using testing::SameBits;
using testing::ToActivations;
using testing::Values;

constexpr TensorType kFloatTypes[] = {TensorType::kF32, TensorType::kF16, TensorType::kBF16};

class MatMulTest : public FamilyTest {
 protected:
  // Kernels with products of BF16 pairs read x so rounded.
  static float AsRead(TensorType weights, float x) {
    return GetParam() == "avx512-bf16" && weights == TensorType::kBF16 ? testing::RoundToBF16(x) : x;
  }

  static std::vector<double> Reference(const FileTensor& weights, TensorType type, int outputs, int inputs,
                                       std::span<const float> x, int rows) {
    std::vector<double> out;
    for (int r = 0; r < rows; ++r) {
      for (int o = 0; o < outputs; ++o) {
        double sum = 0;
        for (int i = 0; i < inputs; ++i) sum += double{AsRead(type, x[size_t(r) * inputs + i])} * weights.at(o, i);
        out.push_back(sum);
      }
    }
    return out;
  }
};

TEST_P(MatMulTest, MatchesDoubleArithmeticForAnyShapeAndType) {
  const auto backend = NewBackend(2);
  // Odd sizes, one output, sizes on and beside panels and input blocks.
  const std::tuple<int, int, int> shapes[] = {{1, 1, 1},     {1, 33, 7},     {2, 64, 256},   {3, 65, 257}, {5, 31, 40},
                                              {17, 100, 64}, {40, 127, 300}, {256, 97, 530}, {9, 8, 1024}};
  for (const TensorType type : kFloatTypes) {
    for (const auto& [rows, outputs, inputs] : shapes) {
      const FileTensor weights(type, outputs, inputs, RandomMatrix(outputs, inputs, outputs));
      const std::vector<float> x = RandomMatrix(rows, inputs, rows);
      EXPECT_TRUE(CloseTo(Multiply(*backend, weights.view(), x, rows),
                          Reference(weights, type, outputs, inputs, x, rows), 2e-6))
          << InfoOf(type).name << " " << rows << " x " << outputs << " x " << inputs;
    }
  }
}

TEST_P(MatMulTest, ARowDoesNotDependOnHowManyRowsThereAre) {
  constexpr int kOutputs = 77;
  constexpr int kInputs = 600;  // more than two input blocks
  constexpr int kMaxRows = 64;
  const auto backend = NewBackend(1);
  for (const TensorType type : kFloatTypes) {
    const FileTensor weights(type, kOutputs, kInputs, RandomMatrix(kOutputs, kInputs, 1));
    const std::vector<float> x = RandomMatrix(kMaxRows, kInputs, 2);
    const std::vector<float> all = Multiply(*backend, weights.view(), x, kMaxRows);
    for (int rows = 1; rows < kMaxRows; ++rows) {
      const std::vector<float> some = Multiply(*backend, weights.view(), x, rows);
      ASSERT_TRUE(SameBits(some, std::span(all).first(some.size()))) << InfoOf(type).name << ", " << rows << " rows";
    }
  }
}

TEST_P(MatMulTest, ARowDoesNotDependOnItsPlaceOrItsNeighbours) {
  constexpr int kOutputs = 40;
  constexpr int kInputs = 300;
  const auto backend = NewBackend(1);
  const FileTensor weights(TensorType::kBF16, kOutputs, kInputs, RandomMatrix(kOutputs, kInputs, 1));
  const std::vector<float> row = RandomFloats(kInputs, 2);
  const std::vector<float> alone = Multiply(*backend, weights.view(), row, 1);
  for (const int rows : {2, 13, 256, 600}) {
    for (const int place : {0, rows / 2, rows - 1}) {
      std::vector<float> x(size_t(rows) * kInputs, testing::kNan);  // neighbours that would show
      std::copy(row.begin(), row.end(), x.begin() + size_t(place) * kInputs);
      const std::vector<float> out = Multiply(*backend, weights.view(), x, rows);
      EXPECT_TRUE(SameBits(alone, std::span(out).subspan(size_t(place) * kOutputs, kOutputs))) << place;
    }
  }
}

TEST_P(MatMulTest, DoesNotDependOnTheNumberOfThreads) {
  constexpr int kOutputs = 333;
  constexpr int kInputs = 512;
  for (const int rows : {1, 2, 8, 50}) {
    const FileTensor weights(TensorType::kBF16, kOutputs, kInputs, RandomMatrix(kOutputs, kInputs, 1));
    const std::vector<float> x = RandomMatrix(rows, kInputs, 2);
    const std::vector<float> one = Multiply(*NewBackend(1), weights.view(), x, rows);
    for (const int threads : {2, 3, 4}) {
      EXPECT_TRUE(SameBits(one, Multiply(*NewBackend(threads), weights.view(), x, rows))) << threads << " threads";
    }
  }
}

TEST_P(MatMulTest, StackedWeightsComputeWhatEachWouldAlone) {
  constexpr int kInputs = 48;
  const auto backend = NewBackend(1);
  const FileTensor q(TensorType::kBF16, 24, kInputs, RandomMatrix(24, kInputs, 1));
  const FileTensor k(TensorType::kBF16, 5, kInputs, RandomMatrix(5, kInputs, 2));
  const FileTensor v(TensorType::kBF16, 70, kInputs, RandomMatrix(70, kInputs, 3));
  const TensorView parts[] = {q.view(), k.view(), v.view()};
  const auto stacked = *backend->PackStacked(parts);
  ASSERT_EQ(stacked->outputs(), 99);
  const std::vector<float> x = RandomFloats(kInputs, 4);
  const auto in = ToActivations(*backend, 1, kInputs, x);
  const auto out = PoisonedActivations(*backend, 1, 99);
  backend->MatMul(*stacked, *in, 1, *out);

  std::vector<float> apart;
  for (const TensorView& part : parts) {
    const std::vector<float> values = Multiply(*backend, part, x, 1);
    apart.insert(apart.end(), values.begin(), values.end());
  }
  EXPECT_TRUE(SameBits(Values(*backend, *out, 1), apart));
}

TEST_P(MatMulTest, StackedWeightsOfDifferentDTypesKeepTheirValues) {
  constexpr int kInputs = 16;
  const auto backend = NewBackend(1);
  const FileTensor a(TensorType::kF16, 3, kInputs, RandomMatrix(3, kInputs, 1));
  const FileTensor b(TensorType::kF32, 4, kInputs, RandomMatrix(4, kInputs, 2));
  const TensorView parts[] = {a.view(), b.view()};
  const auto stacked = *backend->PackStacked(parts);
  const TokenId ids[] = {0, 1, 2, 3, 4, 5, 6};
  const auto out = PoisonedActivations(*backend, 7, kInputs);
  testing::Embed(*backend, *stacked, ids, *out);
  std::vector<float> want(a.values().begin(), a.values().end());
  want.insert(want.end(), b.values().begin(), b.values().end());
  EXPECT_TRUE(SameBits(Values(*backend, *out, 7), want));
}

INSTANTIATE_FOR_FAMILIES(MatMulTest);

}  // namespace
}  // namespace baton
