// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernel_testing.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using testing::Fails;
using testing::FamilyTest;
using testing::FileTensor;
using testing::PoisonedActivations;
using testing::RandomFloats;
using testing::RandomMatrix;
using testing::SameBits;
using testing::ToActivations;
using testing::Values;

TEST(CreateCpuBackendTest, AutoPicksAFamilyThatCanAlsoBeForced) {
  ASSERT_OK_AND_ASSIGN(const auto automatic, CreateCpuBackend({}));
  const std::string family(automatic->family());
  ASSERT_OK_AND_ASSIGN(const auto forced, CreateCpuBackend({.kernels = family}));
  EXPECT_EQ(forced->family(), family);
  EXPECT_GE(automatic->revision(), 1);
}

TEST(CreateCpuBackendTest, ScalarKernelsRunEverywhere) {
  ASSERT_OK_AND_ASSIGN(const auto backend, CreateCpuBackend({.kernels = "scalar"}));
  EXPECT_EQ(backend->family(), "scalar");
}

TEST(CreateCpuBackendTest, RunsEachFamilyWhoseFeaturesTheCpuHasAndNoOther) {
  for (const std::string& family : testing::KernelFamilies()) {
    const std::string why_not = testing::WhyItCannotRun(family);
    EXPECT_EQ(CreateCpuBackend({.kernels = family}).ok(), why_not.empty()) << family << ": " << why_not;
  }
}

TEST(CreateCpuBackendTest, RefusesWhatItCannotDo) {
  EXPECT_TRUE(Fails(CreateCpuBackend({.kernels = "mmx"}), absl::StatusCode::kInvalidArgument, "mmx"));
  EXPECT_TRUE(Fails(CreateCpuBackend({.threads = 0}), absl::StatusCode::kInvalidArgument, "0 compute threads"));
  EXPECT_TRUE(Fails(CreateCpuBackend({.threads = 2, .cpus = {0}}), absl::StatusCode::kInvalidArgument, "1 CPUs for 2"));
  EXPECT_TRUE(Fails(CreateCpuBackend({.threads = 1, .cpus = {-1}}), absl::StatusCode::kInvalidArgument, "CPU -1"));
  EXPECT_TRUE(
      Fails(CreateCpuBackend({.threads = 1, .cpus = {100000}}), absl::StatusCode::kInvalidArgument, "CPU 100000"));
}

TEST(CreateBackendTest, MakesTheBackendOfADeviceByItsName) {
  EXPECT_THAT(KnownDevices(), ::testing::Contains("cpu"));
  ASSERT_OK_AND_ASSIGN(const auto backend, CreateBackend({.device = "cpu", .kernels = "scalar"}));
  EXPECT_EQ(backend->family(), "scalar");
}

TEST(CreateBackendTest, NamesAnUnknownDeviceAndTheKnownOnes) {
  for (const std::string device : {"cuda:0", "cpu:0", ""}) {
    EXPECT_TRUE(Fails(CreateBackend({.device = device}), absl::StatusCode::kInvalidArgument,
                      "device " + device + ": expected one of cpu"));
  }
}

class BackendTest : public FamilyTest {};

TEST_P(BackendTest, PackingKeepsTheDTypeAndTheSizes) {
  const auto backend = NewBackend(1);
  for (const TensorType type : {TensorType::kF32, TensorType::kF16, TensorType::kBF16}) {
    const FileTensor tensor(type, 64, 24, RandomMatrix(64, 24, 1));
    ASSERT_OK_AND_ASSIGN(const auto matrix, backend->Pack(tensor.view()));
    EXPECT_EQ(matrix->outputs(), 64);
    EXPECT_EQ(matrix->inputs(), 24);
    EXPECT_EQ(matrix->bytes(), size_t{64} * 24 * BytesOf(type, 1));
  }
}

TEST_P(BackendTest, RefusesShapesThatDoNotStack) {
  const auto backend = NewBackend(1);
  const FileTensor a(TensorType::kF32, 2, 8, RandomFloats(16, 1));
  const FileTensor b(TensorType::kF32, 2, 9, RandomFloats(18, 1));
  const TensorView parts[] = {a.view(), b.view()};
  EXPECT_TRUE(Fails(backend->PackStacked(parts), absl::StatusCode::kInvalidArgument, "[2, 9]"));
  EXPECT_TRUE(Fails(backend->PackStacked({}), absl::StatusCode::kInvalidArgument, "no weights"));
}

TEST_P(BackendTest, ActivationsThatDoNotFitMemoryAreAnError) {
  const auto backend = NewBackend(1);
  EXPECT_TRUE(Fails(backend->Allocate(1 << 30, 1 << 30), absl::StatusCode::kResourceExhausted, "bytes"));
  EXPECT_TRUE(Fails(backend->Allocate(0, 4), absl::StatusCode::kInvalidArgument, "[0, 4]"));
}

TEST_P(BackendTest, EmbedReadsTheRowsOfTheFileExactly) {
  constexpr int kVocab = 75, kCols = 33;
  const auto backend = NewBackend(2);
  for (const TensorType type : {TensorType::kF32, TensorType::kF16, TensorType::kBF16}) {
    std::vector<float> values = RandomMatrix(kVocab, kCols, 1, 1e-3f);
    values[0] = 3e-6f;  // subnormal as F16
    const FileTensor table(type, kVocab, kCols, values);
    ASSERT_OK_AND_ASSIGN(const auto matrix, backend->Pack(table.view()));
    const std::vector<TokenId> ids = {74, 0, 31, 32, 0};
    const auto out = PoisonedActivations(*backend, 5, kCols);
    testing::Embed(*backend, *matrix, ids, *out);
    std::vector<float> want;
    for (const TokenId id : ids) {
      for (int c = 0; c < kCols; ++c) want.push_back(table.at(id, c));
    }
    EXPECT_TRUE(SameBits(Values(*backend, *out, 5), want)) << InfoOf(type).name;
  }
}

TEST_P(BackendTest, VectorWidens) {
  const auto backend = NewBackend(1);
  const FileTensor tensor(TensorType::kBF16, 1, 19, RandomFloats(19, 1));
  ASSERT_OK_AND_ASSIGN(const auto vector, backend->PackVector(tensor.view()));
  EXPECT_EQ(vector->size(), 19);
  // A row whose RMS is 1 shows the weights.
  const auto ones = ToActivations(*backend, 1, 19, std::vector<float>(19, 1.0f));
  backend->RmsNorm(*ones, 1, *vector, 0, *ones);
  EXPECT_TRUE(SameBits(Values(*backend, *ones, 1), tensor.values()));
}

TEST_P(BackendTest, GatherRowsPicksRowsInTheOrderAskedFor) {
  const auto backend = NewBackend(1);
  const auto x = ToActivations(*backend, 3, 2, std::vector<float>{0, 1, 10, 11, 20, 21});
  const auto out = PoisonedActivations(*backend, 2, 2);
  const int wanted[] = {2, 0};
  const int logits[] = {0, 1, 2};
  backend->BeginStep({.wanted_rows = wanted, .logit_rows = logits});
  backend->GatherRows(*x, RowSet::kWanted, 0, 2, *out);
  EXPECT_EQ(Values(*backend, *out, 2), (std::vector<float>{20, 21, 0, 1}));
  backend->GatherRows(*x, RowSet::kLogits, 1, 2, *out);
  EXPECT_EQ(Values(*backend, *out, 2), (std::vector<float>{10, 11, 20, 21}));
}

INSTANTIATE_FOR_FAMILIES(BackendTest);

}  // namespace
}  // namespace baton
