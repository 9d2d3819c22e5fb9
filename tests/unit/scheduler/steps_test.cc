// SPDX-License-Identifier: Apache-2.0
// The contents of a step: order, budgets, growth, preemption, shared prefixes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler_world.h"

namespace baton::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(SchedulerSteps, APromptRunsInChunksAndThenDecodesATokenAStep) {
  World world;
  const auto told = world.RunLocally(world.MakeAttempt(1, /*tokens=*/10, /*max_tokens=*/3));
  world.Settle();
  EXPECT_THAT(world.model.steps, ElementsAre(ElementsAre(8), ElementsAre(2), ElementsAre(1), ElementsAre(1)));
  EXPECT_THAT(told->words, ElementsAre("accepted", "prompt started", "decode started at 0", "token 11", "token 12",
                                       "token 13", "finished by length"));
  EXPECT_TRUE(world.HoldsNothing());
}

TEST(SchedulerSteps, SequencesThatDecodeGoBeforePromptsAndPromptsGoByAge) {
  World world({.schedule = {.token_budget = 10, .chunk_tokens = 8, .max_sequences = 4}});
  world.RunLocally(world.MakeAttempt(9, 4));
  world.Tick();
  world.model.steps.clear();
  world.RunLocally(world.MakeAttempt(2, 16, 100, /*first=*/20));
  world.RunLocally(world.MakeAttempt(1, 8, 100, /*first=*/30));
  world.Tick();
  world.Tick();
  // First the youngest, which decodes; then request 1, which is older than request 2.
  EXPECT_THAT(world.model.steps, ElementsAre(ElementsAre(1, 8, 1), ElementsAre(1, 1, 8)));
}

TEST(SchedulerSteps, ALongPromptStopsNobodyWhoDecodes) {
  World world;
  const auto decoding = world.RunLocally(world.MakeAttempt(1, 4));
  world.Tick();
  world.RunLocally(world.MakeAttempt(2, 40));
  for (int step = 0; step < 5; ++step) world.Tick();
  EXPECT_EQ(decoding->tokens(), 6);
}

TEST(SchedulerSteps, NoMoreSequencesThanSlotsAndTheOldestFirst) {
  World world({.schedule = {.token_budget = 64, .chunk_tokens = 8, .max_sequences = 2}});
  const auto third = world.RunLocally(world.MakeAttempt(3, 4, 100, 30));
  const auto second = world.RunLocally(world.MakeAttempt(2, 4, 100, 20));
  const auto first = world.RunLocally(world.MakeAttempt(1, 4, 2, 10));
  world.Tick();
  EXPECT_EQ(first->tokens(), 1);
  EXPECT_EQ(second->tokens(), 1);
  EXPECT_EQ(third->tokens(), 0);
  EXPECT_EQ(world.load.running_sequences, 2u);
  EXPECT_EQ(world.load.waiting_requests, 1u);
  EXPECT_EQ(world.load.waiting_tokens, 4u);
  world.Tick();  // the first ends: its slot is the third's
  world.Tick();
  EXPECT_EQ(third->tokens(), 1);
}

TEST(SchedulerSteps, WhenPagesRunOutTheYoungestIsPreemptedAndTheOldestNever) {
  World world({.pages = 6});
  const auto old = world.RunLocally(world.MakeAttempt(1, 7, 17));
  const auto young = world.RunLocally(world.MakeAttempt(2, 7, 17, 20));
  world.Settle();
  EXPECT_EQ(old->last(), "finished by length");
  EXPECT_EQ(old->tokens(), 17);
  EXPECT_EQ(young->last(), "failed preempted");
  EXPECT_TRUE(world.HoldsNothing());
}

TEST(SchedulerSteps, TheOldestIsNotPreemptedForPagesThatWillCome) {
  World world({.pages = 4});
  const auto told = world.RunLocally(world.MakeAttempt(1, 7, 20));
  std::vector<PageRef> of_a_writer = *world.pool->Allocate(1);
  world.Settle();
  EXPECT_EQ(told->tokens(), 6) << "its third page is full";
  of_a_writer.clear();
  world.Settle();
  EXPECT_EQ(told->tokens(), 10) << "the pool is used up";
  EXPECT_EQ(told->last(), "failed preempted");
}

TEST(SchedulerSteps, ASequenceThatNeedsPagesInQuarantineIsPreempted) {
  World world({.pages = 4});
  const auto told = world.RunLocally(world.MakeAttempt(1, 7, 20));
  std::vector<PageRef> lost = *world.pool->Allocate(2);
  for (PageRef& page : lost) page.SetQuarantined(true);
  world.Settle();
  EXPECT_EQ(told->last(), "failed preempted");
  for (PageRef& page : lost) page.SetQuarantined(false);
}

TEST(SchedulerSteps, APromptThatNeedsPagesInQuarantineFailsAtOnce) {
  World world({.pages = 4});
  std::vector<PageRef> lost = *world.pool->Allocate(2);
  for (PageRef& page : lost) page.SetQuarantined(true);
  const auto told = world.RunLocally(world.MakeAttempt(1, 12));
  world.Tick();
  EXPECT_EQ(told->last(), "failed quarantined");
  for (PageRef& page : lost) page.SetQuarantined(false);
}

TEST(SchedulerSteps, APromptWaitsForAPrefixThatAnotherPromptComputes) {
  World world;
  Attempt first = world.MakeAttempt(1, 9, 100);
  Attempt second = world.MakeAttempt(2, 9, 100);
  first.page_hash_root = second.page_hash_root = PageHashRoot("model", "", "");
  world.RunLocally(first);
  const auto told = world.RunLocally(second);
  world.Tick();
  EXPECT_THAT(world.model.steps.back(), ElementsAre(8)) << "the second waits";
  world.Tick();
  EXPECT_THAT(world.model.steps.back(), ElementsAre(1, 1)) << "and computes its last token only";
  EXPECT_EQ(told->figures.cached_tokens, 8);
}

TEST(SchedulerSteps, APromptRunsAfterTheRefusalOfThePromptThatWasToComputeItsPrefix) {
  World world({.pages = 8});
  std::vector<PageRef> of_a_writer = *world.pool->Allocate(4);
  Attempt first = world.MakeAttempt(1, 23);
  Attempt second = world.MakeAttempt(2, 9, 2);
  first.page_hash_root = second.page_hash_root = PageHashRoot("model", "", "");
  const auto refused = world.RunLocally(first);
  const auto told = world.RunLocally(second);
  world.Settle();
  EXPECT_EQ(told->last(), "accepted") << "it waits for the prefix";
  for (PageRef& page : of_a_writer) page.SetQuarantined(true);
  EXPECT_TRUE(world.ledger.TakeDecisions(CapacityLedger::Claimant::kReservation).empty());  // as the receiver does
  world.Settle();
  EXPECT_EQ(refused->last(), "failed quarantined");
  EXPECT_EQ(told->last(), "finished by length");
  for (PageRef& page : of_a_writer) page.SetQuarantined(false);
}

TEST(SchedulerSteps, AnAttemptThatIsHereAlreadyIsRefused) {
  World world;
  const auto first = world.RunLocally(world.MakeAttempt(1, 4));
  const auto second = world.Receive(world.MakeAttempt(1, 4));
  EXPECT_THAT(second->words, ElementsAre("failed invalid"));
  EXPECT_THAT(world.receiver.closed, ElementsAre(World::Key(1)));
  world.Tick();
  EXPECT_EQ(first->tokens(), 1);
}

TEST(SchedulerSteps, AFailedStepEndsItsSequencesAndNoOther) {
  World world({.schedule = {.token_budget = 64, .chunk_tokens = 8, .max_sequences = 1}});
  const auto running = world.RunLocally(world.MakeAttempt(1, 4));
  const auto waiting = world.RunLocally(world.MakeAttempt(2, 4, 2, 20));
  world.model.next_status = absl::InternalError("broken");
  world.Tick();
  EXPECT_EQ(running->last(), "failed internal");
  world.Settle();
  EXPECT_EQ(waiting->last(), "finished by length");
}

TEST(SchedulerSteps, AStepThatNobodyNeedsEndsEarly) {
  World world;
  const auto told = world.RunLocally(world.MakeAttempt(1, 4));
  int layers = 0;
  world.model.during_layer = [&](int) {
    ++layers;
    told->is_cancelled = true;
  };
  world.Tick();
  EXPECT_EQ(layers, 1);
  EXPECT_TRUE(world.HoldsNothing());
}

TEST(SchedulerSteps, AReceivedSequenceDecodesFromItsOutputIndexOn) {
  World world;
  const auto told = world.Receive(world.MakeAttempt(1, 6, 4));
  world.Settle();
  EXPECT_THAT(world.model.steps, IsEmpty());
  world.DeliverReceived(World::Key(1), /*tokens=*/6, /*output=*/{7});
  world.Settle();
  EXPECT_THAT(told->words,
              ElementsAre("accepted", "decode started at 1", "token 8", "token 9", "token 10", "finished by length"));
  EXPECT_THAT(world.receiver.closed, ElementsAre(World::Key(1)));
  EXPECT_TRUE(world.HoldsNothing());
}

struct BadDelivery {
  const char* name;
  int tokens;
  std::vector<TokenId> output;
};

class BadDeliveryTest : public ::testing::TestWithParam<BadDelivery> {};

TEST_P(BadDeliveryTest, FailsTheAttempt) {
  World world;
  const auto told = world.Receive(world.MakeAttempt(1, 6, 4));
  world.DeliverReceived(World::Key(1), GetParam().tokens, GetParam().output);
  EXPECT_EQ(told->last(), "failed internal");
  EXPECT_TRUE(world.HoldsNothing());
  EXPECT_THAT(world.receiver.closed, SizeIs(1));
}

INSTANTIATE_TEST_SUITE_P(All, BadDeliveryTest,
                         ::testing::Values(BadDelivery{"nothing_left", 6, {}}, BadDelivery{"no_tokens", 0, {7}},
                                           BadDelivery{"too_much_output", 6, {7, 8, 9, 10}},
                                           BadDelivery{"unknown_token", 6, {kVocab}}),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace baton::testing
