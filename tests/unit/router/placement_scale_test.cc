// SPDX-License-Identifier: Apache-2.0
// Placement looks at few of many pairs: what it chooses is the best of all, at random.
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <random>
#include <set>

#include "placement_fixture.h"

namespace baton::router {
namespace {

class PlacementScaleTest : public ::testing::Test {
 protected:
  uint64_t Below(uint64_t end) { return random_() % end; }
  bool OneIn(uint64_t count) { return Below(count) == 0; }

  // Few values, so that costs are often equal.
  WorkerView RandomWorker() {
    WorkerView worker = Worker();
    worker.avoided = OneIn(20);
    worker.waiting_tokens = 500 * Below(3);
    worker.waiting_batch_tokens = worker.waiting_tokens / (1 + Below(3));
    if (OneIn(4)) worker.other_tenants = {worker.waiting_tokens / 2};
    worker.prefill_tokens_per_second = 1000.0 * static_cast<double>(Below(4));
    worker.step_seconds = 0.01 * static_cast<double>(Below(3));
    worker.running_sequences = static_cast<uint32_t>(Below(10));
    worker.running_tokens = 100 * Below(2);
    worker.pages_total = 60 + 50 * Below(2);
    worker.pages_free = Below(worker.pages_total);
    worker.kv_token_bytes = 1000;
    worker.cached_tokens = static_cast<uint32_t>(16 * Below(20));
    if (OneIn(2)) worker.cost = {.step = 0.01, .prompt_token = 1e-3, .decode_row = 0.001};
    if (OneIn(2)) {
      worker.objectives = static_cast<uint32_t>(Below(worker.running_sequences + 1));
      worker.tpot_slo = 0.015;
    }
    return worker;
  }

  Candidates RandomCandidates() {
    Candidates candidates;
    const auto prefills = static_cast<uint32_t>(Below(15));
    const auto workers = static_cast<uint32_t>(prefills + Below(15));
    for (uint32_t i = 0; i < workers; ++i) candidates.workers.push_back(RandomWorker());
    for (uint32_t decode = prefills; decode < workers; ++decode) {
      if (OneIn(3)) candidates.pairs.push_back({candidates.pairs.size(), decode, decode});
      for (uint32_t prefill = 0; prefill < prefills; ++prefill) {
        const PathView path{1e5 * static_cast<double>(Below(3))};
        if (OneIn(2)) candidates.pairs.push_back({candidates.pairs.size(), prefill, decode, path});
      }
    }
    candidates.NoteWorkersOfPairs();
    return candidates;
  }

  PlacementNeed RandomNeed() {
    const auto prompt = static_cast<uint32_t>(1 + Below(1000));
    return {.prompt_tokens = prompt,
            .total_tokens = prompt + static_cast<uint32_t>(Below(200)),
            .is_batch = OneIn(4),
            .waited = OneIn(2) ? 0 : 0.2,
            .ttft_slo = OneIn(2) ? 0 : 0.5,
            .tpot_slo = OneIn(2) ? 0 : 0.015};
  }

  std::mt19937_64 random_{1};
};

TEST_F(PlacementScaleTest, ChoosesTheBestOfAllPairs) {
  int chosen = 0;
  for (int round = 0; round < 2000; ++round) {
    const Candidates candidates = RandomCandidates();
    const PlacementNeed need = RandomNeed();
    constexpr std::array kPolicies = {PlacementPolicy::kPrefix, PlacementPolicy::kPrefix, PlacementPolicy::kRoundRobin};
    const PlacementRules rules{.policy = kPolicies[Below(3)]};
    const std::optional<size_t> choice = ChoosePair(rules, candidates, need, round);
    ASSERT_EQ(choice, ChooseOfAll(rules, candidates, need, round)) << "round " << round;
    if (choice) ++chosen;
  }
  EXPECT_GT(chosen, 1000);
}

TEST_F(PlacementScaleTest, ProvesTheBestOfThePairsThatAreNotHeld) {
  int chosen = 0;
  for (int round = 0; round < 1000; ++round) {
    const Candidates candidates = RandomCandidates();
    const PlacementNeed need = RandomNeed();
    Provable provable;
    for (uint32_t i = 0; i < candidates.workers.size(); ++i)
      (OneIn(2) ? provable.prefills : provable.decodes).push_back(i);
    std::set<std::pair<uint32_t, uint32_t>> held;
    std::optional<double> least;
    const double most = OneIn(2) ? std::numeric_limits<double>::infinity() : 1.0;
    for (const uint32_t prefill : provable.prefills) {
      for (const uint32_t decode : provable.decodes) {
        if (OneIn(2)) {
          held.emplace(prefill, decode);
          continue;
        }
        const PairView pair{0, false, candidates.workers[prefill], candidates.workers[decode], {}};
        if (!IsPossible(pair, need)) continue;
        const double cost = CostOf(pair, need, FastestOf(candidates));
        if (cost < least.value_or(most)) least = cost;
      }
    }
    const auto is_held = [&](uint32_t prefill, uint32_t decode) { return held.contains({prefill, decode}); };
    const std::optional<PairToProve> choice = ChoosePairToProve(candidates, provable, need, most, is_held);
    ASSERT_EQ(choice.has_value(), least.has_value()) << "round " << round;
    if (!choice) continue;
    ++chosen;
    EXPECT_EQ(choice->cost, *least);
    EXPECT_FALSE(is_held(choice->prefill, choice->decode));
    const PairView pair{0, false, candidates.workers[choice->prefill], candidates.workers[choice->decode], {}};
    EXPECT_TRUE(IsPossible(pair, need));
    EXPECT_EQ(CostOf(pair, need, FastestOf(candidates)), *least);
  }
  EXPECT_GT(chosen, 300);
}

}  // namespace
}  // namespace baton::router
