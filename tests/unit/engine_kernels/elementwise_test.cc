// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "engine/kv/layout.h"
#include "kernel_testing.h"

namespace baton {
namespace {

using testing::AsKept;
using testing::CloseTo;
using testing::FamilyTest;
using testing::PoisonedActivations;
using testing::RandomFloats;
using testing::RandomMatrix;
using testing::RoundTo;
using testing::SameBits;
using testing::ToActivations;
using testing::ToVector;
using testing::Values;
using testing::WriteKv;

class ElementwiseTest : public FamilyTest {};

TEST_P(ElementwiseTest, RmsNormMatchesDoubleArithmetic) {
  const auto backend = NewBackend(2);
  for (const int cols : {1, 5, 8, 16, 33, 64, 2048, 2051}) {
    constexpr int kRows = 20;
    const std::vector<float> x = RandomMatrix(kRows, cols, cols, 3.0f);
    const std::vector<float> weight = RandomFloats(cols, 1);
    const auto vector = ToVector(*backend, weight);
    std::vector<double> want;
    for (int r = 0; r < kRows; ++r) {
      double squares = 0;
      for (int c = 0; c < cols; ++c) squares += double{x[r * cols + c]} * x[r * cols + c];
      const double scale = 1 / std::sqrt(squares / cols + 1e-5);
      for (int c = 0; c < cols; ++c) want.push_back(x[r * cols + c] * scale * weight[c]);
    }
    const auto in = ToActivations(*backend, kRows, cols, x);
    const auto out = PoisonedActivations(*backend, kRows, cols);
    backend->RmsNorm(*in, kRows, *vector, 1e-5f, *out);
    EXPECT_TRUE(CloseTo(Values(*backend, *out, kRows), want, 1e-6)) << cols;

    backend->RmsNorm(*in, kRows, *vector, 1e-5f, *in);
    EXPECT_TRUE(SameBits(Values(*backend, *in, kRows), Values(*backend, *out, kRows))) << "in place, " << cols;
  }
}

TEST_P(ElementwiseTest, AddAddsTheRowsAskedForAndNoOthers) {
  const auto backend = NewBackend(1);
  constexpr int kCols = 37;
  const std::vector<float> a = RandomMatrix(3, kCols, 1);
  const std::vector<float> b = RandomMatrix(3, kCols, 2);
  const auto x = ToActivations(*backend, 3, kCols, a);
  backend->Add(*x, *ToActivations(*backend, 3, kCols, b), 2);
  std::vector<float> want = a;
  for (int i = 0; i < 2 * kCols; ++i) want[i] += b[i];
  EXPECT_TRUE(SameBits(Values(*backend, *x, 3), want));
}

TEST_P(ElementwiseTest, SiluMulMatchesDoubleArithmetic) {
  const auto backend = NewBackend(2);
  for (const int cols : {1, 8, 31, 500}) {
    std::vector<float> x = RandomMatrix(8, cols, cols, 20.0f);
    x[0] = -200.0f;  // e^200 overflows
    const auto out = PoisonedActivations(*backend, 4, cols);
    backend->SiluMul(*ToActivations(*backend, 4, 2 * cols, x), 4, *out);
    const std::vector<float> got = Values(*backend, *out, 4);
    for (int r = 0; r < 4; ++r) {
      for (int c = 0; c < cols; ++c) {
        const double gate = x[r * 2 * cols + c];
        const double want = gate / (1 + std::exp(-gate)) * x[r * 2 * cols + cols + c];
        EXPECT_NEAR(got[r * cols + c], want, std::abs(want) * 1e-6 + 1e-30) << gate;
      }
    }
  }
}

TEST_P(ElementwiseTest, SiluMulOfOneValueDoesNotDependOnItsPlaceInTheRow) {
  const auto backend = NewBackend(1);
  constexpr int kCols = 37;  // vectors and a tail
  const auto out = PoisonedActivations(*backend, 1, kCols);
  backend->SiluMul(*ToActivations(*backend, 1, 2 * kCols, std::vector<float>(size_t{2} * kCols, 1.2345f)), 1, *out);
  const std::vector<float> got = Values(*backend, *out, 1);
  EXPECT_TRUE(SameBits(got, std::vector<float>(kCols, got[0])));
}

TEST_P(ElementwiseTest, HeadNormNormalizesEachHeadAndLeavesOtherColumns) {
  const auto backend = NewBackend(1);
  constexpr int kHeads = 3, kDim = 24, kFirst = 5, kCols = kFirst + kHeads * kDim + 2;
  const std::vector<float> x = RandomMatrix(2, kCols, 1);
  const std::vector<float> weight = RandomFloats(kDim, 2);
  std::vector<double> want(x.begin(), x.end());
  for (int r = 0; r < 2; ++r) {
    for (int h = 0; h < kHeads; ++h) {
      double* const head = &want[r * kCols + kFirst + h * kDim];
      double squares = 0;
      for (int i = 0; i < kDim; ++i) squares += head[i] * head[i];
      for (int i = 0; i < kDim; ++i) head[i] *= weight[i] / std::sqrt(squares / kDim + 1e-6);
    }
  }
  const auto activations = ToActivations(*backend, 2, kCols, x);
  backend->HeadNorm(*activations, 2, kFirst, kHeads, *ToVector(*backend, weight), 1e-6f);
  EXPECT_TRUE(CloseTo(Values(*backend, *activations, 2), want, 1e-6));
}

TEST_P(ElementwiseTest, RopeRotatesHalvesByTheTableRowOfEachPosition) {
  const auto backend = NewBackend(1);
  for (const int half : {4, 8, 12, 64}) {
    constexpr int kHeads = 2, kFirst = 3;
    const int cols = kFirst + kHeads * 2 * half + 1;
    RopeTable table{.half_dim = half};
    for (int i = 0; i < 6 * half; ++i) {
      table.cos.push_back(std::cos(0.1f * i));
      table.sin.push_back(std::sin(0.1f * i));
    }
    const std::vector<int> positions = {5, 0, 3};
    const std::vector<float> x = RandomMatrix(3, cols, half);
    std::vector<double> want(x.begin(), x.end());
    for (int r = 0; r < 3; ++r) {
      for (int h = 0; h < kHeads; ++h) {
        double* const a = &want[r * cols + kFirst + h * 2 * half];
        for (int i = 0; i < half; ++i) {
          const double c = table.cos[positions[r] * half + i], s = table.sin[positions[r] * half + i];
          const double first = a[i], second = a[half + i];
          a[i] = first * c - second * s;
          a[half + i] = second * c + first * s;
        }
      }
    }
    const auto activations = ToActivations(*backend, 3, cols, x);
    backend->BeginStep({.positions = positions});
    backend->Rope(*activations, kFirst, kHeads, **backend->PackRotary(table));
    EXPECT_TRUE(CloseTo(Values(*backend, *activations, 3), want, 1e-6)) << half;
  }
}

TEST_P(ElementwiseTest, AddRmsNormHasTheBitsOfAddThenRmsNorm) {
  const auto backend = NewBackend(2);
  for (const int cols : {5, 64, 2051}) {
    constexpr int kRows = 70;
    const std::vector<float> a = RandomMatrix(kRows, cols, 1);
    const std::vector<float> b = RandomMatrix(kRows, cols, 2);
    const auto weight = ToVector(*backend, RandomFloats(cols, 3));
    const auto sum = ToActivations(*backend, kRows, cols, a);
    const auto want = PoisonedActivations(*backend, kRows, cols);
    backend->Add(*sum, *ToActivations(*backend, kRows, cols, b), kRows);
    backend->RmsNorm(*sum, kRows, *weight, 1e-5f, *want);

    const auto x = ToActivations(*backend, kRows, cols, a);
    const auto y = ToActivations(*backend, kRows, cols, b);
    backend->AddRmsNorm(*x, *y, kRows, *weight, 1e-5f, *y);
    EXPECT_TRUE(SameBits(Values(*backend, *x, kRows), Values(*backend, *sum, kRows))) << cols;
    EXPECT_TRUE(SameBits(Values(*backend, *y, kRows), Values(*backend, *want, kRows))) << cols;
  }
}

// Values whose rounding is easy to get wrong: ties both ways, subnormals, carries into the exponent, overflow.
std::vector<float> HardToRound() {
  std::vector<float> values = RandomFloats(64, 9);
  for (const uint32_t bits : {0x3f808000u, 0x3f818000u, 0x3f80ffffu, 0x3f7fffffu, 0x3f801000u, 0x3f803000u, 0x3f80efffu,
                              0x7f7fffffu, 0x477fefffu, 0x477ff000u, 0x38800000u, 0x387fffffu, 0x33800000u, 0x33000000u,
                              0x33000001u, 0x33c00000u, 0x38001000u, 0x00000000u}) {
    values.push_back(std::bit_cast<float>(bits));
    values.push_back(-std::bit_cast<float>(bits));
  }
  values.resize(104, 1.0f);
  return values;
}

float ValueOfE4M3(uint8_t code) {
  const int exponent = code >> 3 & 15;
  const int mantissa = code & 7;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return static_cast<float>((code & 0x80) != 0 ? -magnitude : magnitude);
}

TEST_P(ElementwiseTest, WriteKvRoundsToNearestEvenAndPutsEachHeadInItsPlace) {
  const auto backend = NewBackend(1);
  const std::vector<float> values = HardToRound();
  for (const KvType dtype : {KvType::kF32, KvType::kF16, KvType::kBF16}) {
    const int dim = static_cast<int>(values.size());
    const KvBlock block{.kv_heads = 2, .head_dim = dim, .page_tokens = 4, .dtype = dtype};
    // Two tokens at positions 3 and 4: the last slot of the first page, the first slot of the second.
    std::vector<float> qkv;
    for (int i = 0; i < 8; ++i) {
      for (const float value : values) qkv.push_back(value * (i % 2 == 0 ? 1.0f : -0.5f));
    }
    std::vector<std::byte> blocks(3 * block.bytes(), std::byte{0xff});
    const PageId pages[] = {PageId{2}, PageId{0}};
    const SequenceRows sequence{.first_row = 0, .rows = 2, .start_position = 3, .pages = pages};
    WriteKv(*backend, *ToActivations(*backend, 2, 4 * dim, qkv), 0, 2 * dim, sequence, block, blocks.data());

    size_t written = 0;
    for (int token = 0; token < 2; ++token) {
      const size_t page = token == 0 ? 2 : 0, slot = token == 0 ? 3 : 0;
      for (int part = 0; part < 4; ++part) {  // K of both heads, V of both heads
        const std::byte* at = blocks.data() + page * block.bytes() + (part * size_t{4} + slot) * dim * SizeOf(dtype);
        for (int i = 0; i < dim; ++i, at += SizeOf(dtype)) {
          const float want = RoundTo(static_cast<TensorType>(dtype), qkv[(token * 4 + part) * dim + i]);
          float got = 0;
          if (dtype == KvType::kF32) {
            std::memcpy(&got, at, 4);
          } else if (dtype == KvType::kF16) {
            _Float16 half;
            std::memcpy(&half, at, 2);
            got = half;
          } else {
            std::memcpy(reinterpret_cast<char*>(&got) + 2, at, 2);
          }
          ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(want))
              << Name(dtype) << " of " << qkv[(token * 4 + part) * dim + i];
          ++written;
        }
      }
    }
    // Nothing else was touched.
    size_t untouched = 0;
    for (size_t i = 0; i < blocks.size(); i += SizeOf(dtype)) untouched += blocks[i] == std::byte{0xff} ? 1 : 0;
    EXPECT_GE(untouched, blocks.size() / SizeOf(dtype) - written);
  }
}

// A scale per token and head, behind the head's values; each value the nearest that the type has.
TEST_P(ElementwiseTest, WriteKvScalesEachTokenAndHead) {
  const auto backend = NewBackend(1);
  for (const KvType dtype : {KvType::kInt8, KvType::kFp8}) {
    constexpr int kDim = 44;
    const KvBlock block{.kv_heads = 2, .head_dim = kDim, .page_tokens = 4, .dtype = dtype};
    std::vector<float> qkv = RandomFloats(size_t{8} * kDim, 3);
    for (int i = 0; i < kDim; ++i) {
      qkv[kDim + i] *= 1e6f;                      // K of the second head
      qkv[2 * kDim + i] = 0;                      // V of the first
      qkv[3 * kDim + i] = std::ldexp(1.0f, -i);   // down to what becomes subnormal, then 0
      qkv[5 * kDim + i] = static_cast<float>(i);  // halfway values among them
    }
    std::vector<std::byte> blocks(3 * block.bytes(), std::byte{0xff});
    const PageId pages[] = {PageId{2}, PageId{0}};
    const SequenceRows sequence{.first_row = 0, .rows = 2, .start_position = 3, .pages = pages};
    WriteKv(*backend, *ToActivations(*backend, 2, 4 * kDim, qkv), 0, 2 * kDim, sequence, block, blocks.data());

    size_t written = 0;
    for (int token = 0; token < 2; ++token) {
      const size_t page = token == 0 ? 2 : 0, slot = token == 0 ? 3 : 0;
      for (size_t part = 0; part < 4; ++part) {
        const float* const from = &qkv[(size_t(token) * 4 + part) * kDim];
        const std::byte* const head = blocks.data() + page * block.bytes() + part * block.head_bytes();
        float scale = 0;
        std::memcpy(&scale, head + block.scales_offset() + slot * sizeof(scale), sizeof(scale));
        const std::vector<float> want = AsKept(dtype, {from, kDim});
        for (int i = 0; i < kDim; ++i, ++written) {
          const auto code = std::to_integer<uint8_t>(head[slot * kDim + i]);
          const float value =
              dtype == KvType::kInt8 ? static_cast<float>(static_cast<int8_t>(code)) : ValueOfE4M3(code);
          ASSERT_EQ(value * scale, want[i]) << Name(dtype) << " of " << from[i];
        }
        written += sizeof(scale);
      }
    }
    const auto untouched = static_cast<size_t>(std::count(blocks.begin(), blocks.end(), std::byte{0xff}));
    EXPECT_GE(untouched, blocks.size() - written);
  }
}

TEST_P(ElementwiseTest, RoundingKeepsNan) {
  const auto backend = NewBackend(1);
  for (const KvType dtype : {KvType::kF16, KvType::kBF16}) {
    const KvBlock block{.kv_heads = 1, .head_dim = 8, .page_tokens = 4, .dtype = dtype};
    std::vector<std::byte> blocks(block.bytes());
    const PageId page{0};
    const SequenceRows sequence{.first_row = 0, .rows = 1, .start_position = 0, .pages = {&page, 1}};
    std::vector<float> qkv(16, 1.0f);
    qkv[1] = std::bit_cast<float>(0x7f800001u);  // its mantissa's high bits are all zero
    WriteKv(*backend, *ToActivations(*backend, 1, 16, qkv), 0, 8, sequence, block, blocks.data());
    uint16_t bits = 0;
    std::memcpy(&bits, blocks.data() + 2, 2);
    const int mantissa_mask = dtype == KvType::kF16 ? 0x3ff : 0x7f;
    const int exponent_mask = dtype == KvType::kF16 ? 0x7c00 : 0x7f80;
    EXPECT_EQ(bits & exponent_mask, exponent_mask);
    EXPECT_NE(bits & mantissa_mask, 0);
  }
}

INSTANTIATE_FOR_FAMILIES(ElementwiseTest);

}  // namespace
}  // namespace baton
