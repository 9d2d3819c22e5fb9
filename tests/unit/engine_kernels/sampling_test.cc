// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "kernel_testing.h"
#include "tests/mixed_sampling.h"

namespace baton {
namespace {

using testing::MixedSampling;
using testing::RandomMatrix;
using testing::SameSample;
using testing::Sampling;
using testing::ToActivations;

class SamplingTest : public testing::FamilyTest {};

TEST_P(SamplingTest, RowsSampledTogetherAreThoseOfTheSerialSampler) {
  constexpr int kVocab = 1999, kFirst = 3, kMostRows = 64;  // few rows stay on one thread, many do not
  const std::vector<float> values = RandomMatrix(kFirst + kMostRows, kVocab, 1, 3.0f);
  std::vector<Sampling> sampling;
  std::vector<SampledToken> want;
  Sampler serial;
  for (int r = 0; r < kMostRows; ++r) {
    const Sampling& s = sampling.emplace_back(MixedSampling(kVocab, r));
    want.push_back(serial.Sample(std::span(values).subspan(size_t(kFirst + r) * kVocab, kVocab), s.params, s.history));
  }
  for (const int threads : {1, 3}) {
    const auto backend = NewBackend(threads);
    const auto logits = ToActivations(*backend, kFirst + kMostRows, kVocab, values);
    for (int count = 1; count <= kMostRows; ++count) {
      std::vector<SampledToken> got(count);
      std::vector<SampleRow> rows;
      for (int r = 0; r < count; ++r) rows.push_back({&sampling[r].params, &sampling[r].history, &got[r]});
      backend->Sample(*logits, kFirst, rows);
      for (int r = 0; r < count; ++r) {
        ASSERT_TRUE(SameSample(got[r], want[r])) << "row " << r << " of " << count << ", " << threads << " threads";
      }
    }
  }
}

INSTANTIATE_FOR_FAMILIES(SamplingTest);

}  // namespace
}  // namespace baton
