// SPDX-License-Identifier: Apache-2.0
// Invariant I5 in the engine: a sequence's logits are the same bits alone or beside others, in whatever chunks, on
// however many threads and in whichever pages.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/model_runner.h"
#include "tests/status_matchers.h"
#include "tests/tiny_models.h"

namespace baton {
namespace {

using testing::PagedSequence;

constexpr int kTokens = 530;  // past the largest chunk, not a multiple of anything
constexpr uint32_t kPages = 256;

// Kernels and KV dtype; demo-draft has 16-bit weights and is wide enough for every tile and tail of the kernels.
class Determinism : public ::testing::TestWithParam<std::tuple<std::string, KvType>> {
 protected:
  void SetUp() override { SKIP_WITHOUT_CPU_FOR(std::get<0>(GetParam())); }
  static std::unique_ptr<Model> Load(int threads) {
    return testing::LoadModel(
        testing::DemoModel("demo-draft"),
        {.threads = threads, .kernels = std::get<0>(GetParam()), .kv_dtype = std::get<1>(GetParam())});
  }
  // Of kTokens tokens, alone, on one thread, in one chunk.
  static std::vector<float> Reference(Model& model, const std::vector<TokenId>& tokens) {
    const auto pool = testing::MakePool(model, kPages);
    PagedSequence sequence(*pool, tokens, kTokens);
    return testing::AllLogits(model, *pool, sequence, kTokens);
  }
  static bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  }

  const std::vector<TokenId> tokens_ = testing::RandomTokens(kTokens, 4096, 42);
};

TEST_P(Determinism, ChunksThreadsAndPagesDoNotChangeABit) {
  const auto single = Load(1);
  const std::vector<float> expected = Reference(*single, tokens_);
  ASSERT_EQ(expected.size(), size_t{kTokens} * 4096);
  std::mt19937_64 random(1);
  const std::pair<int, std::vector<int>> chunks_by_threads[] = {{1, {1, 7, 16, 512}}, {2, {16, 512}}, {3, {7, 512}}};
  for (const auto& [threads, chunks] : chunks_by_threads) {
    const auto model = Load(threads);
    for (const int chunk : chunks) {
      const auto pool = testing::MakePool(*model, kPages);
      PagedSequence sequence(*pool, tokens_, kTokens);
      std::shuffle(sequence.pages.begin(), sequence.pages.end(), random);
      EXPECT_TRUE(SameBits(testing::AllLogits(*model, *pool, sequence, chunk), expected))
          << threads << " threads, chunks of " << chunk;
    }
  }
}

TEST_P(Determinism, FifteenOthersInTheBatchDoNotChangeABit) {
  const auto single = Load(1);
  const std::vector<float> expected = Reference(*single, tokens_);
  for (const int threads : {1, 3}) {
    // Given the sequence, in chunks of changing size, among others that prefill and decode
    const auto model = Load(threads);
    const auto pool = testing::MakePool(*model, 1024);
    std::vector<PagedSequence> others;
    others.reserve(15);
    for (int i = 0; i < 15; ++i) others.emplace_back(*pool, testing::RandomTokens(600, 4096, i), 600);
    PagedSequence sequence(*pool, tokens_, kTokens);
    std::mt19937_64 random(threads);
    std::vector<float> logits;
    ForwardOutput output;
    while (!sequence.done()) {
      // when they run in one batch, at a changing place in it
      std::vector<SequenceInput> batch;
      for (PagedSequence& other : others) {
        batch.push_back(other.Next(random() % 2 == 0 ? 1 : 1 + static_cast<int>(random() % 24), Want::kLastLogits));
        other.computed += static_cast<int>(batch.back().tokens.size());
      }
      const size_t place = random() % (batch.size() + 1);
      const SequenceInput input = sequence.Next(1 + static_cast<int>(random() % 90), Want::kAllLogits);
      batch.insert(batch.begin() + static_cast<ptrdiff_t>(place), input);
      ASSERT_OK(model->Forward(batch, *pool, nullptr, output));
      const float* first = output.row(output.rows[place].first).data();
      logits.insert(logits.end(), first, first + size_t(output.rows[place].count) * output.width);
      sequence.computed += static_cast<int>(input.tokens.size());
    }
    // then its logits are those that it has alone.
    EXPECT_TRUE(SameBits(logits, expected)) << threads << " threads";
  }
}

TEST_P(Determinism, LastLogitsAreTheLastOfAllLogits) {
  const auto model = Load(2);
  const std::vector<float> expected = Reference(*model, tokens_);
  const auto pool = testing::MakePool(*model, kPages);
  PagedSequence sequence(*pool, tokens_, kTokens);
  ForwardOutput output;
  while (!sequence.done()) {
    const SequenceInput input = sequence.Next(100, Want::kLastLogits);
    ASSERT_OK(model->Forward({&input, 1}, *pool, nullptr, output));
    sequence.computed += static_cast<int>(input.tokens.size());
    const auto at = expected.begin() + (sequence.computed - 1) * ptrdiff_t{4096};
    EXPECT_TRUE(SameBits(output.values, std::vector<float>(at, at + 4096))) << "after " << sequence.computed;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Determinism,
                         ::testing::Combine(::testing::ValuesIn(testing::KernelFamilies()),
                                            ::testing::Values(KvType::kF32, KvType::kBF16)),
                         [](const auto& info) {
                           return testing::AsTestName(std::get<0>(info.param)) + "_kv_" +
                                  std::string(Name(std::get<1>(info.param)));
                         });

}  // namespace
}  // namespace baton
