// SPDX-License-Identifier: Apache-2.0
// Prompts whose pages come from tiers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler_world.h"

namespace baton::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SchedulerTiers : public ::testing::Test {
 protected:
  // A prompt of three pages and two tokens. Tiers have its first `pages` pages.
  Attempt InTiers(int pages, uint64_t request = 1, int tokens = 14) {
    Attempt attempt = world_.MakeAttempt(request, tokens, /*max_tokens=*/2);
    attempt.page_hash_root = PageHash{};
    world_.PutInTiers(attempt, pages);
    return attempt;
  }

  // Runs a prompt whose steps take `step`, so that the scheduler knows the time of a step.
  void LearnCost(absl::Duration step) {
    world_.RunLocally(world_.MakeAttempt(9, 8, 2, /*first=*/30));
    world_.model.during_layer = [this, step](int) { world_.clock += step / kLayers; };
    world_.Settle();
    world_.model.during_layer = nullptr;
    world_.model.steps.clear();
  }

  World world_{{.tiers = true}};
};

TEST_F(SchedulerTiers, APromptComputesOnlyWhatNoTierHas) {
  const auto told = world_.RunLocally(InTiers(3));
  world_.Tick();
  ASSERT_THAT(world_.tiers.loads, SizeIs(1));
  EXPECT_THAT(world_.tiers.loads[0].first->pages, SizeIs(3));
  EXPECT_THAT(world_.model.steps, IsEmpty());
  EXPECT_EQ(world_.load.waiting_tokens, 2u);
  world_.tiers.Finish();
  world_.Settle();
  EXPECT_THAT(world_.model.steps, ElementsAre(ElementsAre(2), ElementsAre(1)));
  EXPECT_THAT(told->words, ElementsAre("accepted", "prompt started", "decode started at 0", "token 15", "token 16",
                                       "finished by length"));
  EXPECT_EQ(told->figures.cached_tokens, 12);
  EXPECT_TRUE(world_.HoldsNothing());
}

TEST_F(SchedulerTiers, LoadedPagesArePublishedForOthers) {
  world_.RunLocally(InTiers(3));
  world_.Tick();
  world_.tiers.Finish();
  world_.Settle();
  world_.model.steps.clear();
  world_.tiers.names.clear();
  world_.RunLocally(InTiers(0, 2));
  world_.Settle();
  EXPECT_THAT(world_.model.steps[0], ElementsAre(2)) << "all three pages were in the pool";
}

TEST_F(SchedulerTiers, OthersGoOnDuringALoad) {
  world_.RunLocally(InTiers(3));
  world_.Tick();
  const auto other = world_.RunLocally(world_.MakeAttempt(2, 4, 2, /*first=*/30));
  for (int i = 0; i < 3; ++i) world_.Tick();
  EXPECT_EQ(other->last(), "finished by length");
  EXPECT_THAT(world_.tiers.loads, SizeIs(1));
}

TEST_F(SchedulerTiers, APromptOfTheSamePrefixWaitsForTheLoad) {
  world_.RunLocally(InTiers(3));
  world_.Tick();
  world_.RunLocally(InTiers(3, 2));
  world_.Tick();
  EXPECT_THAT(world_.tiers.loads, SizeIs(1)) << "one load for both";
  world_.tiers.Finish();
  world_.Settle();
  EXPECT_THAT(world_.model.steps[0], ElementsAre(2, 2));
}

TEST_F(SchedulerTiers, PagesInThePoolAreNotLoaded) {
  world_.RunLocally(InTiers(0, 1, /*tokens=*/6));  // publishes one page
  world_.Settle();
  world_.RunLocally(InTiers(3, 2));
  world_.Tick();
  ASSERT_THAT(world_.tiers.loads, SizeIs(1));
  EXPECT_THAT(world_.tiers.loads[0].first->pages, SizeIs(2));
}

TEST_F(SchedulerTiers, ThePageOfTheLastTokenIsComputed) {
  world_.RunLocally(InTiers(3, 1, /*tokens=*/12));
  world_.Tick();
  ASSERT_THAT(world_.tiers.loads, SizeIs(1));
  EXPECT_THAT(world_.tiers.loads[0].first->pages, SizeIs(2));
  world_.tiers.Finish();
  world_.Settle();
  EXPECT_THAT(world_.model.steps[0], ElementsAre(4));
}

TEST_F(SchedulerTiers, WhatALoadDoesNotBringIsComputed) {
  const auto told = world_.RunLocally(InTiers(3));
  world_.Tick();
  world_.tiers.Finish(/*pages=*/1);
  world_.Settle();
  EXPECT_THAT(world_.model.steps[0], ElementsAre(8));  // a chunk of the ten tokens
  EXPECT_THAT(world_.model.steps[1], ElementsAre(2));
  EXPECT_EQ(told->figures.cached_tokens, 4);
  EXPECT_EQ(told->tokens(), 2);
}

TEST_F(SchedulerTiers, AFailedLoadIsComputed) {
  const auto told = world_.RunLocally(InTiers(3));
  world_.Tick();
  world_.tiers.Finish(/*pages=*/0);
  world_.Settle();
  EXPECT_EQ(told->figures.cached_tokens, 0);
  EXPECT_EQ(told->last(), "finished by length");
  EXPECT_TRUE(world_.HoldsNothing());
}

TEST_F(SchedulerTiers, ALoadThatDoesNotPayIsComputed) {
  LearnCost(absl::Milliseconds(2));
  world_.tiers.times.page_seconds = {10, 10};
  const auto told = world_.RunLocally(InTiers(3));
  world_.Settle();
  EXPECT_THAT(world_.tiers.loads, IsEmpty());
  EXPECT_THAT(world_.model.steps[0], ElementsAre(8));
  EXPECT_EQ(told->last(), "finished by length");
}

TEST_F(SchedulerTiers, ALoadMayTakeAsLongAsOlderPromptsDo) {
  LearnCost(absl::Seconds(2));
  Attempt older = world_.MakeAttempt(1, 60, 2, /*first=*/20);
  world_.tiers.times.page_seconds = {5, 5};  // 15 s; the load's tokens take 4 s
  const auto told = world_.RunLocally(InTiers(3, 2));
  world_.Settle();
  EXPECT_EQ(told->figures.cached_tokens, 0);
  world_.RunLocally(older);
  world_.Tick();
  world_.RunLocally([&] {
    Attempt attempt = world_.MakeAttempt(3, 14, 2, /*first=*/10);
    attempt.page_hash_root = PageHash{};
    world_.PutInTiers(attempt, 3);
    return attempt;
  }());
  world_.Tick();
  EXPECT_THAT(world_.tiers.loads, SizeIs(1));
}

TEST_F(SchedulerTiers, ALoadIsLateOnceComputingWouldHaveTakenAsLong) {
  LearnCost(absl::Milliseconds(400));
  world_.RunLocally(InTiers(3));
  world_.Tick();
  world_.clock += absl::Milliseconds(390);  // twelve tokens take two chunks
  world_.Tick();
  EXPECT_FALSE(world_.tiers.loads[0].first->given_up);
  world_.clock += absl::Seconds(1);
  world_.Tick();
  EXPECT_TRUE(world_.tiers.loads[0].first->given_up);
}

TEST_F(SchedulerTiers, ALoadOfUnknownWorthHasTenSeconds) {
  world_.RunLocally(InTiers(3));
  world_.Tick();
  world_.clock += absl::Milliseconds(9900);
  world_.Tick();
  EXPECT_FALSE(world_.tiers.loads[0].first->given_up);
  world_.clock += absl::Milliseconds(100);
  world_.Tick();
  EXPECT_TRUE(world_.tiers.loads[0].first->given_up);
}

TEST_F(SchedulerTiers, ALateLoadStopsAndItsPagesCount) {
  LearnCost(absl::Milliseconds(2));
  world_.RunLocally(InTiers(3));
  world_.Tick();
  EXPECT_FALSE(world_.tiers.loads[0].first->given_up);
  EXPECT_LE(world_.scheduler->next_wake(), world_.clock + absl::Milliseconds(100));
  world_.clock += absl::Milliseconds(100);
  world_.Tick();
  EXPECT_TRUE(world_.tiers.loads[0].first->given_up);
  EXPECT_THAT(world_.model.steps, IsEmpty());
  world_.tiers.Finish(/*pages=*/2);
  world_.Settle();
  EXPECT_THAT(world_.model.steps[0], ElementsAre(6));
}

TEST_F(SchedulerTiers, AStuckLoadKeepsItsPagesAndThePromptTakesOthers) {
  LearnCost(absl::Milliseconds(2));
  const auto told = world_.RunLocally(InTiers(3));
  world_.Tick();
  const std::weak_ptr<TierLoad> load = world_.tiers.loads[0].first;
  world_.clock += absl::Milliseconds(100);
  world_.Tick();
  EXPECT_EQ(world_.pool->counts().used, 4u);
  EXPECT_LE(world_.scheduler->next_wake(), world_.clock + absl::Seconds(1));
  world_.clock += absl::Seconds(1);
  world_.Settle();
  EXPECT_EQ(told->last(), "finished by length");
  EXPECT_EQ(told->figures.cached_tokens, 0);
  EXPECT_EQ(world_.pool->counts().used, 3u) << "those of the load";
  EXPECT_FALSE(load.expired());
  world_.tiers.Finish();
  world_.Settle();
  EXPECT_TRUE(load.expired());
  EXPECT_TRUE(world_.HoldsNothing());
}

TEST_F(SchedulerTiers, ALoadThatHangsIsJoinedByNoOther) {
  world_.tiers.times.overdue_seconds = 1.5;
  const auto told = world_.RunLocally(InTiers(3));
  world_.Settle();
  EXPECT_THAT(world_.tiers.loads, IsEmpty());
  EXPECT_EQ(told->last(), "finished by length");
}

TEST(SchedulerTiersAndRoom, ALoadBehindOneThatHangsReturnsItsPagesOnceGivenUp) {
  World world({.tiers = true});
  std::vector<std::shared_ptr<Told>> told;
  for (uint64_t request = 1; request <= 3; ++request) {
    Attempt attempt = world.MakeAttempt(request, 14, /*max_tokens=*/2, static_cast<TokenId>(10 * request));
    attempt.page_hash_root = PageHash{};
    world.PutInTiers(attempt, 3);
    told.push_back(world.RunLocally(attempt));
  }
  world.Tick();
  ASSERT_THAT(world.tiers.loads, SizeIs(3));
  const std::weak_ptr<TierLoad> cancelled = world.tiers.loads[1].first;
  world.scheduler->Cancel(World::Key(2));
  world.Tick();
  world.Tick();
  EXPECT_TRUE(cancelled.expired());
  ASSERT_THAT(world.tiers.loads, SizeIs(2));
  world.clock += absl::Seconds(10);
  world.Settle();
  EXPECT_EQ(told[2]->last(), "finished by length") << "needs no other pages";
  EXPECT_THAT(world.tiers.loads, SizeIs(1)) << "the load that hangs";
  world.clock += absl::Seconds(1);
  world.Settle();
  EXPECT_EQ(told[0]->last(), "finished by length");
  world.tiers.Finish();
  world.Settle();
  EXPECT_TRUE(world.HoldsNothing());
}

TEST(SchedulerTiersAndRoom, AStuckLoadWaitsForOtherPages) {
  World world({.pages = 5, .tiers = true});
  Attempt attempt = world.MakeAttempt(1, 14, /*max_tokens=*/2);
  attempt.page_hash_root = PageHash{};
  world.PutInTiers(attempt, 3);
  const auto told = world.RunLocally(attempt);
  world.Tick();
  world.clock += absl::Seconds(10);
  world.Tick();
  world.clock += absl::Seconds(1);
  world.Tick();
  EXPECT_THAT(world.model.steps, IsEmpty()) << "one page is free, three are needed";
  EXPECT_GT(world.scheduler->next_wake(), world.clock);
  world.tiers.Finish();
  world.Settle();
  EXPECT_EQ(told->last(), "finished by length");
  EXPECT_EQ(told->figures.cached_tokens, 12) << "the load came after all";
  EXPECT_TRUE(world.HoldsNothing());
}

TEST_F(SchedulerTiers, AHandoffReservesBehindTheLoad) {
  const auto told = world_.HandOver(InTiers(3));
  world_.Tick();
  EXPECT_THAT(world_.sender.calls, IsEmpty());
  world_.tiers.Finish();
  world_.Tick();
  EXPECT_THAT(world_.sender.calls, ElementsAre("reserve 14"));
  world_.sender.of(World::Key(1)).on_granted();
  world_.Settle();
  EXPECT_THAT(world_.model.steps, ElementsAre(ElementsAre(2)));
  EXPECT_THAT(world_.sender.calls,
              ElementsAre("reserve 14", "put layer 0 pages 0..3", "put layer 1 pages 0..3", "commit 15"));
  world_.sender.of(World::Key(1)).on_done({});
  world_.Settle();
  EXPECT_EQ(told->last(), "handed over");
  EXPECT_TRUE(world_.HoldsNothing());
}

TEST_F(SchedulerTiers, APromptThatWaitedForRoomLoadsBehindTheGrant) {
  Attempt attempt = InTiers(0);
  world_.HandOver(attempt);
  world_.Tick();
  world_.sender.of(World::Key(1)).on_queued();
  world_.Tick();
  EXPECT_EQ(world_.pool->counts().used, 0u);
  world_.PutInTiers(attempt, 3);
  world_.sender.of(World::Key(1)).on_granted();
  world_.Tick();
  ASSERT_THAT(world_.tiers.loads, SizeIs(1));
  world_.tiers.Finish();
  world_.Settle();
  EXPECT_THAT(world_.model.steps, ElementsAre(ElementsAre(2)));
  EXPECT_THAT(world_.sender.calls,
              ElementsAre("reserve 14", "put layer 0 pages 0..3", "put layer 1 pages 0..3", "commit 15"));
}

TEST_F(SchedulerTiers, ALoadOfAnEndedAttemptDoesNotServeItsSuccessor) {
  world_.RunLocally(InTiers(3));
  world_.Tick();
  world_.scheduler->Cancel(World::Key(1));
  const auto told = world_.RunLocally(InTiers(3));  // the same key
  world_.Tick();
  ASSERT_THAT(world_.tiers.loads, SizeIs(2));
  world_.tiers.Finish(/*pages=*/1);
  world_.Tick();
  EXPECT_THAT(world_.model.steps, IsEmpty());
  world_.tiers.Finish();
  world_.Settle();
  EXPECT_THAT(world_.model.steps[0], ElementsAre(2));
  EXPECT_EQ(told->last(), "finished by length");
  EXPECT_TRUE(world_.HoldsNothing());
}

TEST_F(SchedulerTiers, TheWholePrefixCountsAsCachedForADeadline) {
  // A token takes 100 ms: the whole prompt 1.4 s, the tokens that no tier has 0.2 s.
  const auto pass = [this](int) {
    for (const int tokens : world_.model.steps.back()) world_.clock += tokens * absl::Milliseconds(100) / kLayers;
  };
  world_.model.during_layer = pass;
  world_.RunLocally(world_.MakeAttempt(9, 8, 2, /*first=*/30));
  world_.Settle();
  Attempt attempt = InTiers(3);
  attempt.first_token_within = absl::Milliseconds(700);
  const auto told = world_.RunLocally(attempt);
  world_.Tick();
  world_.tiers.Finish();
  world_.Settle();
  EXPECT_EQ(told->last(), "finished by length");
}

}  // namespace
}  // namespace baton::testing
