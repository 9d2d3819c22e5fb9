// SPDX-License-Identifier: Apache-2.0
// Live migration, tick by tick.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler_world.h"

namespace baton::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SchedulerMigrationTest : public ::testing::Test {
 protected:
  SchedulerMigrationTest() {
    caller_ = world_.RunLocally(world_.MakeAttempt(1, 6));
    for (int step = 0; step < 3; ++step) world_.Tick();  // 3 tokens are out
  }
  std::shared_ptr<Told> Migrate() {
    return world_.Migrate({.from = World::Key(1), .to = World::Key(1, 2), .prior_output_tokens = 1, .target = {}});
  }
  HandoffSender::Events& handoff() { return world_.sender.of(World::Key(1, 2)); }

  World world_;
  std::shared_ptr<Told> caller_;
};

TEST_F(SchedulerMigrationTest, TheSequenceContinuesUntilItsPagesHaveLanded) {
  const auto told = Migrate();
  handoff().on_granted();
  world_.Tick();
  EXPECT_EQ(caller_->tokens(), 4);
  EXPECT_THAT(world_.sender.calls,
              ElementsAre("reserve 8", "put layer 0 pages 0..1", "put layer 1 pages 0..1", "flush"));
  handoff().on_flushed();
  EXPECT_FALSE(world_.Tick()) << "the sequence rests";
  EXPECT_EQ(world_.sender.calls.back(), "commit 8 9 10") << "the output since the prior output";
  handoff().on_done({});
  world_.Settle();
  EXPECT_EQ(told->last(), "handed over");
  EXPECT_EQ(caller_->last(), "migrated to 2");
  EXPECT_TRUE(world_.HoldsNothing());
}

TEST_F(SchedulerMigrationTest, AfterAFailedHandoffTheSequenceContinuesHere) {
  const auto told = Migrate();
  handoff().on_granted();
  handoff().on_flushed();
  EXPECT_FALSE(world_.Tick());
  handoff().on_failed(Outcome(Cause::kPeerLost, "no heartbeat"));
  EXPECT_TRUE(world_.Tick());
  EXPECT_EQ(told->last(), "failed peer_lost");
  EXPECT_EQ(caller_->tokens(), 4);
}

TEST_F(SchedulerMigrationTest, ACancelAtRestWaitsForTheOtherWorkersAnswer) {
  Migrate();
  handoff().on_granted();
  handoff().on_flushed();
  world_.Tick();
  world_.scheduler->Cancel(World::Key(1));
  world_.Settle();
  EXPECT_FALSE(world_.HoldsNothing());
  handoff().on_failed(Outcome(Cause::kPeerLost, "no heartbeat"));
  world_.Settle();
  EXPECT_TRUE(world_.HoldsNothing());
}

TEST_F(SchedulerMigrationTest, ACancelledMigrationLeavesTheSequenceRunning) {
  const auto told = Migrate();
  handoff().on_granted();
  world_.Tick();
  world_.scheduler->CancelMigration({.from = World::Key(1), .to = World::Key(1, 2), .target = {}});
  EXPECT_EQ(told->last(), "failed cancelled");
  EXPECT_EQ(world_.sender.calls.back(), "abort");
  world_.Tick();
  EXPECT_EQ(caller_->tokens(), 5);
  for (const auto& done : world_.sender.released) done();
  world_.Tick();
  EXPECT_EQ(caller_->tokens(), 6);
}

TEST_F(SchedulerMigrationTest, PagesStayUntilTheTransportNoLongerReadsThem) {
  Migrate();
  handoff().on_granted();
  world_.Tick();
  world_.scheduler->Cancel(World::Key(1));
  EXPECT_FALSE(world_.HoldsNothing());
  world_.ReleaseAborted();
  EXPECT_TRUE(world_.HoldsNothing());
}

TEST_F(SchedulerMigrationTest, SaysWhyASequenceStays) {
  const auto unknown = world_.Migrate({.from = World::Key(7), .to = World::Key(7, 2), .target = {}});
  EXPECT_EQ(unknown->last(), "failed revoked");
  EXPECT_THAT(unknown->why, HasSubstr("the attempt does not run here"));
  const auto ahead =
      world_.Migrate({.from = World::Key(1), .to = World::Key(1, 2), .prior_output_tokens = 9, .target = {}});
  EXPECT_EQ(ahead->last(), "failed revoked");
  EXPECT_THAT(ahead->why, HasSubstr("prior_output_tokens is 9, expected at most 3"));
  Migrate();
  const auto again = Migrate();
  EXPECT_EQ(again->last(), "failed revoked");
  EXPECT_THAT(again->why, HasSubstr("the attempt already migrates"));
  world_.RunLocally(world_.MakeAttempt(2, 2, 100, 20));
  world_.Tick();
  const auto small = world_.Migrate({.from = World::Key(2), .to = World::Key(2, 2), .target = {}});
  EXPECT_THAT(small->why, HasSubstr("the sequence does not fill a page yet"));
  EXPECT_THAT(world_.sender.calls, ElementsAre("reserve 8")) << "one handoff was begun";
}

// While the sequence rests, one step computes the tokens outside of the pages that are handed over.
TEST_F(SchedulerMigrationTest, MoreTokensOutsideOfThePagesThanAStepTakesEndTheMigration) {
  Migrate();
  constexpr int kTokenBudget = 16;
  for (int outside = 1; outside < kTokenBudget; ++outside) world_.Tick();
  handoff().on_granted();
  world_.Tick();
  EXPECT_EQ(world_.sender.calls.back(), "flush");
  world_.scheduler->CancelMigration({.from = World::Key(1), .to = World::Key(1, 2), .target = {}});

  const MigrationOrder again = {.from = World::Key(1), .to = World::Key(1, 3), .target = {}};
  const auto told_again = world_.Migrate(again);  // one more page is full: 1 token is outside
  for (int outside = 1; outside < kTokenBudget + 1; ++outside) world_.Tick();
  world_.sender.of(again.to).on_granted();
  world_.Tick();
  EXPECT_EQ(world_.sender.calls.back(), "abort");
  EXPECT_EQ(told_again->last(), "failed revoked");
  EXPECT_THAT(told_again->why, HasSubstr("17 tokens have come"));
}

TEST_F(SchedulerMigrationTest, ADrainingWorkerAsksOnceForTheMigrationOfASequenceThatFillsAPage) {
  const auto small = world_.RunLocally(world_.MakeAttempt(2, 2, 100, 20));
  world_.Tick();
  world_.scheduler->StartDraining();
  for (int step = 0; step < 3; ++step) world_.Tick();
  EXPECT_EQ(std::count(caller_->words.begin(), caller_->words.end(), "draining"), 1);
  EXPECT_EQ(std::count(small->words.begin(), small->words.end(), "draining"), 1) << "once it fills a page";
  EXPECT_EQ(small->tokens(), 4);
}

TEST_F(SchedulerMigrationTest, AfterAnEndOfTheDrainOnlyALaterDrainAsksAgain) {
  world_.scheduler->StartDraining();
  world_.Tick();
  world_.scheduler->StopDraining();
  const auto later = world_.RunLocally(world_.MakeAttempt(2, 8, 100, 20));
  for (int step = 0; step < 3; ++step) world_.Tick();
  EXPECT_EQ(std::count(caller_->words.begin(), caller_->words.end(), "draining"), 1);
  EXPECT_EQ(std::count(later->words.begin(), later->words.end(), "draining"), 0);
  world_.scheduler->StartDraining();
  world_.Tick();
  EXPECT_EQ(std::count(caller_->words.begin(), caller_->words.end(), "draining"), 2);
  EXPECT_EQ(std::count(later->words.begin(), later->words.end(), "draining"), 1);
}

}  // namespace
}  // namespace baton::testing
