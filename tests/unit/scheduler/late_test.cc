// SPDX-License-Identifier: Apache-2.0
// Prompts whose first token would come too late, and what routers learn of batch prompts and objectives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "scheduler_world.h"

namespace baton::testing {
namespace {

using ::testing::Each;
using ::testing::Ne;

class SchedulerLateTest : public ::testing::Test {
 protected:
  // One slot, so that the second attempt waits for the first.
  SchedulerLateTest() : world_({.schedule = {.token_budget = 16, .chunk_tokens = 8, .max_sequences = 1}}) {}

  Attempt Hurried(uint64_t request, absl::Duration within) {
    Attempt attempt = world_.MakeAttempt(request, 8, 100, static_cast<TokenId>(10 * request));
    attempt.first_token_within = within;
    return attempt;
  }

  World world_;
};

TEST_F(SchedulerLateTest, APromptThatWaitsTooLongFailsAndFreesWhatItWaitedFor) {
  world_.RunLocally(world_.MakeAttempt(1, 8, 100));
  world_.Tick();
  const auto late = world_.RunLocally(Hurried(2, absl::Milliseconds(10)));
  for (int i = 0; i < 5; ++i) world_.Tick();
  EXPECT_EQ(late->last(), "accepted");
  for (int i = 0; i < 10; ++i) world_.Tick();
  EXPECT_EQ(late->last(), "failed too_late");
  EXPECT_THAT(late->why, ::testing::HasSubstr("of the 10ms left for the first token"));
  EXPECT_EQ(world_.ledger.counts().waiting_local, 0);
  world_.Settle();
  EXPECT_TRUE(world_.HoldsNothing());
}

TEST_F(SchedulerLateTest, APromptThatHasBegunIsNeverLate) {
  Attempt attempt = world_.MakeAttempt(1, 40);
  attempt.first_token_within = absl::Milliseconds(3);
  const auto told = world_.RunLocally(attempt);
  for (int i = 0; i < 4; ++i) world_.Tick();
  EXPECT_EQ(told->last(), "prompt started") << "five chunks take five steps";
  for (int i = 0; i < 10; ++i) world_.Tick();
  EXPECT_THAT(told->words, Each(Ne("failed too_late")));
  EXPECT_GT(told->tokens(), 5);
}

TEST(SchedulerLate, APromptThatHasItsSlotAndPagesButNoStepYetIsLate) {
  World world({.schedule = {.token_budget = 8, .chunk_tokens = 8, .max_sequences = 4}});
  world.RunLocally(world.MakeAttempt(1, 60));
  Attempt attempt = world.MakeAttempt(2, 8, 100, 20);
  attempt.first_token_within = absl::Milliseconds(4);
  const auto late = world.RunLocally(attempt);
  for (int i = 0; i < 6; ++i) world.Tick();
  EXPECT_EQ(late->last(), "failed too_late");
  EXPECT_EQ(world.ledger.counts().slots_used, 1);
}

TEST(SchedulerLate, APromptThatWaitsForAnothersPrefixNeedsNoTimeForIt) {
  World world({.schedule = {.token_budget = 8, .chunk_tokens = 8, .max_sequences = 4}});
  world.model.during_layer = [&](int) { world.clock += absl::Milliseconds(1); };
  for (uint64_t request = 1; request <= 6; ++request) {
    world.RunLocally(world.MakeAttempt(request, static_cast<int>(request) * 3, 2, static_cast<TokenId>(request)));
    world.Settle();
  }
  world.clock += absl::Seconds(1);
  Attempt first = world.MakeAttempt(10, 40, 2, 5);
  Attempt second = world.MakeAttempt(11, 40, 2, 5);
  first.page_hash_root = second.page_hash_root = PageHashRoot("model", "", "");
  second.first_token_within = absl::Milliseconds(20);  // five steps of 3 ms, and one more
  world.RunLocally(first);
  const auto told = world.RunLocally(second);
  world.Settle();
  EXPECT_EQ(told->last(), "finished by length");
}

TEST_F(SchedulerLateTest, TheTimeToComputeThePromptCounts) {
  // Each step takes 2 ms and each token 1 ms more, so that a prompt of 8 tokens takes 10 ms.
  world_.model.during_layer = [this](int layer) {
    if (layer == 0)
      world_.clock += absl::Milliseconds(
          2 + std::accumulate(world_.model.steps.back().begin(), world_.model.steps.back().end(), 0));
  };
  for (uint64_t request = 1; request <= 8; ++request) {
    world_.RunLocally(world_.MakeAttempt(request, static_cast<int>(request) * 2, 2, static_cast<TokenId>(request)));
    world_.Settle();
  }
  world_.clock += absl::Seconds(1);
  world_.RunLocally(world_.MakeAttempt(20, 2, 10));
  world_.Tick();
  ASSERT_NEAR(world_.load.cost().prompt_token, 0.001, 2e-4);
  const auto late = world_.RunLocally(Hurried(21, absl::Milliseconds(8)));
  const auto in_time = world_.RunLocally(Hurried(22, absl::Milliseconds(40)));
  world_.Tick();
  EXPECT_EQ(late->last(), "failed too_late") << "8 ms are left, but the prompt takes more";
  EXPECT_EQ(in_time->last(), "accepted");
  EXPECT_THAT(late->why, ::testing::HasSubstr("computing it takes about"));
}

TEST_F(SchedulerLateTest, APromptThatWaitsForTheDecodeWorkerIsLateToo) {
  const Attempt attempt = Hurried(1, absl::Milliseconds(10));
  const auto told = world_.HandOver(attempt);
  world_.Tick();
  world_.sender.of(attempt.key).on_queued();
  for (int i = 0; i < 15; ++i) world_.Tick();
  EXPECT_EQ(told->last(), "failed too_late");
  EXPECT_EQ(world_.sender.calls.back(), "abort");
  world_.ReleaseAborted();
  EXPECT_TRUE(world_.HoldsNothing());
}

TEST_F(SchedulerLateTest, RoutersLearnOfBatchPromptsObjectivesAndHowLongSequencesDecode) {
  Attempt running = world_.MakeAttempt(1, 4, 5);
  running.tpot_slo = absl::Milliseconds(30);
  world_.RunLocally(running);
  world_.Tick();
  Attempt batch = world_.MakeAttempt(2, 8, 5, 20);
  batch.priority = Priority::kBatch;
  world_.RunLocally(batch);
  Attempt waiting = world_.MakeAttempt(3, 6, 5, 40);
  waiting.tpot_slo = absl::Milliseconds(20);
  world_.RunLocally(waiting);
  world_.Tick();
  EXPECT_EQ(world_.load.waiting_tokens, 14u);
  EXPECT_EQ(world_.load.waiting_batch_tokens, 8u);
  EXPECT_EQ(world_.load.tpot_objectives, 2u);
  EXPECT_DOUBLE_EQ(world_.load.tpot_slo_seconds, 0.020);
  EXPECT_EQ(world_.load.sequence_seconds, 0);
  world_.Settle();
  EXPECT_EQ(world_.load.waiting_batch_tokens, 0u);
  EXPECT_EQ(world_.load.tpot_objectives, 0u);
  EXPECT_EQ(world_.load.tpot_slo_seconds, 0);
  EXPECT_NEAR(world_.load.sequence_seconds, 0.004, 1e-9) << "four further tokens, a millisecond each";
}

TEST(SchedulerBatching, AWindowStartsItsPromptsTogetherAndAsksForAWake) {
  World world({.schedule = {.token_budget = 64,
                            .chunk_tokens = 8,
                            .max_sequences = 4,
                            .batching = Batching::kWindow,
                            .batch_window = absl::Milliseconds(10)}});
  EXPECT_EQ(world.scheduler->next_wake(), SteadyTime::InfiniteFuture());
  const auto first = world.RunLocally(world.MakeAttempt(1, 4, 3, 10));
  const SteadyTime start = world.clock;
  EXPECT_FALSE(world.Tick());
  const auto second = world.RunLocally(world.MakeAttempt(2, 4, 3, 20));
  EXPECT_FALSE(world.Tick());
  EXPECT_EQ(world.scheduler->next_wake(), start + absl::Milliseconds(10));
  while (world.clock < start + absl::Milliseconds(9)) world.Tick();
  EXPECT_EQ(first->tokens(), 0);
  world.Tick();
  EXPECT_EQ(first->tokens(), 1);
  EXPECT_EQ(second->tokens(), 1);
  const auto late = world.RunLocally(world.MakeAttempt(3, 4, 3, 30));
  for (int i = 0; i < 20 && second->last() != "finished by length"; ++i) {
    world.Tick();
    EXPECT_EQ(late->tokens(), 0);
  }
  for (int i = 0; i < 12; ++i) world.Tick();
  EXPECT_GT(late->tokens(), 0);
}

TEST_F(SchedulerLateTest, ATickIsDueWhenAPromptBecomesLate) {
  world_.HandOver(Hurried(1, absl::Milliseconds(10)));
  EXPECT_EQ(world_.scheduler->next_wake(), world_.clock + absl::Milliseconds(10));
}

TEST_F(SchedulerLateTest, RoutersLearnWhichAttemptsTheFiguresCount) {
  world_.RunLocally(world_.MakeAttempt(7, 8));
  EXPECT_TRUE(world_.load.recent().empty()) << "the figures are those of before";
  world_.Tick();
  world_.RunLocally(world_.MakeAttempt(9, 8));
  world_.Tick();
  EXPECT_EQ(world_.load.recent(), (std::vector<uint64_t>{7, 9}));
  world_.clock += absl::Milliseconds(498);
  world_.Tick();
  EXPECT_EQ(world_.load.recent(), (std::vector<uint64_t>{9}));
}

TEST(SchedulerTenants, EachGetsTheSameShareOfThePromptTokens) {
  World world({.pages = 200, .schedule = {.token_budget = 8, .chunk_tokens = 8, .max_sequences = 30}});
  std::vector<std::shared_ptr<Told>> heavy;
  for (uint64_t request = 1; request <= 10; ++request) {
    Attempt attempt = world.MakeAttempt(request, 8, 1, static_cast<TokenId>(request));
    attempt.tenant = "heavy";
    heavy.push_back(world.RunLocally(attempt));
  }
  for (int i = 0; i < 4; ++i) world.Tick();
  EXPECT_EQ(heavy[3]->last(), "finished by length");
  std::vector<std::shared_ptr<Told>> light;
  for (uint64_t request = 21; request <= 22; ++request) {
    Attempt attempt = world.MakeAttempt(request, 8, 1, static_cast<TokenId>(request));
    attempt.tenant = "light";
    light.push_back(world.RunLocally(attempt));
  }
  for (int i = 0; i < 4; ++i) world.Tick();
  EXPECT_EQ(light[1]->last(), "finished by length")
      << "its two prompts take two of four steps, though they are younger";
  EXPECT_EQ(heavy[5]->last(), "finished by length");
  EXPECT_NE(heavy[6]->last(), "finished by length");
  EXPECT_EQ(world.load.tenants(), (std::map<std::string, uint64_t>{{"heavy", 32}}));
  world.Settle();
  EXPECT_EQ(heavy[9]->last(), "finished by length");
  EXPECT_TRUE(world.load.tenants().empty());
}

}  // namespace
}  // namespace baton::testing
