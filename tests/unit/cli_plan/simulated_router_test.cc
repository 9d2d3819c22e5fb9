// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/simulated_router.h"

#include <gtest/gtest.h>

#include <random>

#include "plan_fixture.h"

namespace baton::plan {
namespace {

using router::PlacementNeed;

WorkerReport RandomReport(std::mt19937_64& random) {
  // Few values, so that pairs are often equal.
  return {.waiting_requests = static_cast<uint32_t>(random() % 2),
          .running_sequences = static_cast<uint32_t>(random() % 3),
          .waiting_tokens = 500 * (random() % 3),
          .running_tokens = 100 * (random() % 2),
          .pages_used = 400 * (random() % 3),
          .prefill_tokens_per_second = 5000.0 * static_cast<double>(1 + random() % 2),
          .step_seconds = 0.01 * static_cast<double>(1 + random() % 2)};
}

TEST(SimulatedRouterTest, FindsThePairThatChoosePairChoosesOfAll) {
  std::mt19937_64 random(1);
  int without_pair = 0;
  for (int round = 0; round < 300; ++round) {
    const auto count = [&](int most) { return static_cast<int>(random() % static_cast<uint64_t>(most + 1)); };
    const std::vector<WorkerSpec> workers = Workers(count(25), count(25), count(3));
    SimulatedRouter router(workers, {.rules = {}, .path_bytes_per_second = 1e9});
    for (size_t worker = 0; worker < workers.size(); ++worker) router.OnReport(0, worker, RandomReport(random));
    for (uint64_t turn = 0; turn < 5; ++turn) {
      const auto prompt = static_cast<uint32_t>(1 + random() % 3000);
      const PlacementNeed need{.prompt_tokens = prompt,
                               .total_tokens = prompt + static_cast<uint32_t>(random() % 100),
                               .ttft_slo = random() % 2 == 0 ? 0.0 : 0.5,
                               .tpot_slo = random() % 2 == 0 ? 0.0 : 0.015};
      const std::optional<size_t> chosen = router.Choose(0.03, need, turn);
      EXPECT_EQ(chosen, router.ChooseOfAll(0.03, need, turn));
      if (!chosen) ++without_pair;
    }
  }
  EXPECT_LT(without_pair, 300 * 5 / 2);
}

TEST(SimulatedRouterTest, WorkersWithoutAMeasurementAreChosenAsByChoosePair) {
  std::mt19937_64 random(2);
  SimulatedRouter router(Workers(4, 4, 0), {.rules = {}, .path_bytes_per_second = 1e9});
  for (size_t worker = 0; worker < 8; worker += 2) router.OnReport(0, worker, RandomReport(random));
  const PlacementNeed need{.prompt_tokens = 500, .total_tokens = 600};
  for (uint64_t turn = 0; turn < 5; ++turn)
    EXPECT_EQ(router.Choose(0.03, need, turn), router.ChooseOfAll(0.03, need, turn));
}

TEST(SimulatedRouterTest, WorkThatIsNotInAReportYetCounts) {
  SimulatedRouter router(Workers(2, 2, 0), {.rules = {}, .path_bytes_per_second = 1e9});
  for (size_t worker = 0; worker < 4; ++worker) {
    router.OnReport(0, worker, {.prefill_tokens_per_second = 1e4, .step_seconds = 0.01});
  }
  const PlacementNeed need{.prompt_tokens = 500, .total_tokens = 600};
  const PlaceAnswer first = router.Place(0.0, need);
  const PlaceAnswer second = router.Place(0.01, need);
  ASSERT_EQ(first.kind, PlaceAnswer::Kind::kPlaced);
  ASSERT_EQ(second.kind, PlaceAnswer::Kind::kPlaced);
  EXPECT_NE(first.pair.prefill, second.pair.prefill);
  EXPECT_NE(first.pair.decode, second.pair.decode);
}

TEST(SimulatedRouterTest, RefusesALateRequestAsARouterDoes) {
  SimulatedRouter router(Workers(1, 1, 0), {.rules = {}, .path_bytes_per_second = 1e9});
  for (size_t worker = 0; worker < 2; ++worker) {
    router.OnReport(0, worker, {.waiting_tokens = 10000, .prefill_tokens_per_second = 1e4, .step_seconds = 0.01});
  }
  const PlacementNeed need{.prompt_tokens = 500, .total_tokens = 600, .ttft_slo = 0.5};
  EXPECT_EQ(router.Place(0, need).kind, PlaceAnswer::Kind::kLate);
  EXPECT_EQ(router.Place(0, need, /*has_begun=*/true).kind, PlaceAnswer::Kind::kPlaced);
  router.OnReport(2, 0, {.waiting_tokens = 0, .prefill_tokens_per_second = 1e4, .step_seconds = 0.01});
  EXPECT_EQ(router.Place(2, need).kind, PlaceAnswer::Kind::kPlaced);
}

TEST(SimulatedRouterTest, HoldsAsManyPairsAsARealRouter) {
  EXPECT_EQ(SimulatedRouter(Workers(8, 8, 0), {}).pairs().size(), 64);
  EXPECT_EQ(SimulatedRouter(Workers(100, 100, 0), {}).pairs().size(), 800);
  EXPECT_EQ(SimulatedRouter(Workers(0, 0, 3), {}).pairs().size(), 3);
  EXPECT_EQ(SimulatedRouter(Workers(2, 0, 3), {}).pairs().size(), 9);
}

}  // namespace
}  // namespace baton::plan
