// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/simulated_router.h"

#include <gtest/gtest.h>

#include "plan_fixture.h"

namespace baton::plan {
namespace {

using router::PlacementNeed;

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
  EXPECT_EQ(SimulatedRouter(Workers(8, 8, 0), {}).pairs(), 64);
  EXPECT_EQ(SimulatedRouter(Workers(100, 100, 0), {}).pairs(), 800);
  EXPECT_EQ(SimulatedRouter(Workers(0, 0, 3), {}).pairs(), 3);
  EXPECT_EQ(SimulatedRouter(Workers(2, 0, 3), {}).pairs(), 9);
}

}  // namespace
}  // namespace baton::plan
