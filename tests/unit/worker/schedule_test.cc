// SPDX-License-Identifier: Apache-2.0
#include "worker/schedule.h"

#include <gmock/gmock.h>

namespace baton {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

AttemptKey Key(uint64_t n) { return {{0, n}, 1}; }
Age At(uint64_t n, int seconds) { return {absl::FromUnixSeconds(seconds), Key(n)}; }

TEST(PlanStep, DecodesGoFirstThenPromptsByAge) {
  const auto plan = PlanStep({{At(1, 30), 100}, {At(2, 10), 1}, {At(3, 20), 50}, {At(4, 40), 1}},
                             {.token_budget = 1000, .chunk_tokens = 1000, .max_sequences = 10});
  EXPECT_THAT(plan, ElementsAre(Share{Key(2), 1}, Share{Key(4), 1}, Share{Key(3), 50}, Share{Key(1), 100}));
}

TEST(PlanStep, CutsAPromptAtTheBudgetAndAtTheChunk) {
  EXPECT_THAT(
      PlanStep({{At(1, 1), 100}, {At(2, 2), 100}}, {.token_budget = 130, .chunk_tokens = 1000, .max_sequences = 10}),
      ElementsAre(Share{Key(1), 100}, Share{Key(2), 30}));
  EXPECT_THAT(
      PlanStep({{At(1, 1), 100}, {At(2, 2), 100}}, {.token_budget = 130, .chunk_tokens = 60, .max_sequences = 10}),
      ElementsAre(Share{Key(1), 60}, Share{Key(2), 60}));
}

TEST(PlanStep, DecodesThatExceedTheBudgetRunOldestFirst) {
  EXPECT_THAT(PlanStep({{At(1, 3), 1}, {At(2, 1), 1}, {At(3, 2), 1}},
                       {.token_budget = 2, .chunk_tokens = 2, .max_sequences = 10}),
              ElementsAre(Share{Key(2), 1}, Share{Key(3), 1}));
}

TEST(PlanStep, TakesNoMoreSequencesThanTheLimit) {
  EXPECT_THAT(PlanStep({{At(1, 1), 1}, {At(2, 2), 1}, {At(3, 3), 9}},
                       {.token_budget = 100, .chunk_tokens = 100, .max_sequences = 2}),
              ElementsAre(Share{Key(1), 1}, Share{Key(2), 1}));
}

TEST(PlanStep, EqualArrivalsAreOrderedByKey) {
  EXPECT_THAT(PlanStep({{At(9, 1), 5}, {At(3, 1), 5}}, {.token_budget = 5, .chunk_tokens = 5, .max_sequences = 2}),
              ElementsAre(Share{Key(3), 5}));
}

TEST(PlanStep, NothingToDoIsAnEmptyPlan) { EXPECT_THAT(PlanStep({}, {}), IsEmpty()); }

TEST(PickVictim, IsTheYoungestAndNeverTheOldest) {
  const std::vector<Age> running = {At(1, 1), At(2, 2), At(3, 3)};
  EXPECT_EQ(PickVictim(running), Key(3));
  EXPECT_EQ(PickVictim(std::span(running).first(2)), Key(2));
  EXPECT_EQ(PickVictim(std::vector<Age>{At(1, 1)}), std::nullopt);
}

}  // namespace
}  // namespace baton
