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

// 1 ms per step and prompt token, nothing else.
StepTimes Times(int steps_without_prompt = 0) {
  return {.cost = {.step = 1e-3, .prompt_token = 1e-3, .decode_row = 0}, .steps_without_prompt = steps_without_prompt};
}
Candidate Decoding(uint64_t n, absl::Duration tpot_slo) { return {At(n, 1), 1, 10, tpot_slo}; }
Candidate Prompt(uint64_t n, int tokens) { return {At(n, 1), tokens, 0, absl::Milliseconds(1)}; }
constexpr ScheduleLimits kWide = {.token_budget = 1000, .chunk_tokens = 1000, .max_sequences = 10};

TEST(PlanStep, ChunksLeaveTheObjectivesOfSequencesThatDecode) {
  const auto tokens_of_prompts = [](std::vector<Candidate> candidates, const StepTimes& times) {
    int tokens = 0;
    for (const Share& share : PlanStep(std::move(candidates), kWide, times))
      tokens += share.tokens > 1 ? share.tokens : 0;
    return tokens;
  };
  EXPECT_EQ(tokens_of_prompts({Prompt(1, 500)}, Times()), 500) << "nobody decodes";
  EXPECT_EQ(tokens_of_prompts({Prompt(1, 500), Decoding(2, absl::ZeroDuration())}, Times()), 500) << "no objective";
  const Candidate strict = Decoding(2, absl::Milliseconds(100));
  const Candidate lax = Decoding(3, absl::Milliseconds(200));
  EXPECT_EQ(tokens_of_prompts({Prompt(1, 500), strict, lax}, Times()), 89) << "90 ms, less the step's own";
  EXPECT_EQ(tokens_of_prompts({Prompt(1, 50), Prompt(4, 500), strict}, Times()), 89) << "together";
  EXPECT_EQ(tokens_of_prompts({Prompt(1, 500), strict}, {}), 500) << "no cost is known yet";
}

TEST(PlanStep, APromptWithoutTimeWaitsButNotForEver) {
  const Candidate strict = Decoding(2, absl::Milliseconds(10));
  for (const int steps : {0, kPatientSteps - 1}) {
    EXPECT_THAT(PlanStep({Prompt(1, 500), strict}, kWide, Times(steps)), ElementsAre(Share{Key(2), 1})) << steps;
  }
  EXPECT_THAT(PlanStep({Prompt(1, 500), Prompt(3, 500), strict}, kWide, Times(kPatientSteps)),
              ElementsAre(Share{Key(2), 1}, Share{Key(1), kLeastChunk}));
  EXPECT_THAT(PlanStep({Prompt(1, 5), strict}, kWide, Times()), ElementsAre(Share{Key(2), 1}, Share{Key(1), 5}))
      << "a short rest fits";
}

TEST(MayStartPrompts, ContinuousBatchingNeverWaits) {
  EXPECT_TRUE(MayStartPrompts({}, {.in_progress = 5, .waiting = 1}));
}

TEST(MayStartPrompts, AStaticBatchWaitsForTheLastSequenceOfTheOneBefore) {
  const ScheduleLimits limits{.batching = Batching::kStatic};
  EXPECT_FALSE(MayStartPrompts(limits, {.in_progress = 1, .waiting = 9}));
  EXPECT_TRUE(MayStartPrompts(limits, {.in_progress = 0, .waiting = 1}));
}

TEST(MayStartPrompts, AWindowCollectsPromptsForAWhileOrUntilTheBatchIsFull) {
  const ScheduleLimits limits{
      .max_sequences = 4, .batching = Batching::kWindow, .batch_window = absl::Milliseconds(50)};
  EXPECT_FALSE(MayStartPrompts(limits, {.waiting = 3, .oldest_wait = absl::Milliseconds(49)}));
  EXPECT_TRUE(MayStartPrompts(limits, {.waiting = 3, .oldest_wait = absl::Milliseconds(50)}));
  EXPECT_TRUE(MayStartPrompts(limits, {.waiting = 4}));
  EXPECT_FALSE(MayStartPrompts(limits, {.in_progress = 1, .waiting = 4, .oldest_wait = absl::Seconds(9)}));
}

Candidate OfTenant(uint64_t request, size_t tenant) {
  return {.age = At(request, static_cast<int64_t>(request)), .pending_tokens = 100, .tenant = tenant};
}

TEST(PlanStep, TheTenantThatHasGotTheFewestTokensGoesFirst) {
  const ScheduleLimits limits{.token_budget = 100, .chunk_tokens = 100, .max_sequences = 10};
  const std::vector<Candidate> prompts = {OfTenant(1, 0), OfTenant(2, 0), OfTenant(3, 1)};
  EXPECT_THAT(PlanStep(prompts, limits, {.tenant_tokens = {0, 0}}), ElementsAre(Share{Key(1), 100}));
  EXPECT_THAT(PlanStep(prompts, limits, {.tenant_tokens = {100, 0}}), ElementsAre(Share{Key(3), 100}));
  EXPECT_THAT(PlanStep(prompts, limits, {.tenant_tokens = {100, 200}}), ElementsAre(Share{Key(1), 100}));
}

TEST(PlanStep, TenantsTakeTurnsWithinAStep) {
  const ScheduleLimits limits{.token_budget = 300, .chunk_tokens = 100, .max_sequences = 10};
  const std::vector<Candidate> prompts = {OfTenant(1, 0), OfTenant(2, 0), OfTenant(3, 0), OfTenant(4, 1)};
  EXPECT_THAT(PlanStep(prompts, limits, {.tenant_tokens = {0, 0}}),
              ElementsAre(Share{Key(1), 100}, Share{Key(4), 100}, Share{Key(2), 100}));
}

TEST(PlanStep, ABatchPromptThatCanWaitGoesLastWhateverItsTenantHasGot) {
  const ScheduleLimits limits{.token_budget = 100, .chunk_tokens = 100, .max_sequences = 10};
  std::vector<Candidate> prompts = {OfTenant(1, 0), OfTenant(2, 1)};
  prompts[0].can_wait = true;
  EXPECT_THAT(PlanStep(prompts, limits, {.tenant_tokens = {0, 500}}), ElementsAre(Share{Key(2), 100}));
  prompts[0].can_wait = false;
  EXPECT_THAT(PlanStep(prompts, limits, {.tenant_tokens = {0, 500}}), ElementsAre(Share{Key(1), 100}));
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
