// SPDX-License-Identifier: Apache-2.0
// Route kHandOver: a prompt that is computed here and decoded at another worker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler_world.h"

namespace baton::testing {
namespace {

using ::testing::ElementsAre;

TEST(SchedulerHandover, PagesLeaveLayerByLayerAndTheFirstTokenBeforeCommit) {
  World world;
  const auto told = world.HandOver(world.MakeAttempt(1, 10));
  world.Tick();
  EXPECT_THAT(world.sender.calls, ElementsAre("reserve 10"));
  world.sender.of(World::Key(1)).on_granted();
  world.Settle();
  EXPECT_THAT(world.sender.calls, ElementsAre("reserve 10", "put layer 0 pages 0..1", "put layer 1 pages 0..1",
                                              "put layer 0 pages 2..2", "put layer 1 pages 2..2", "commit 11"));
  EXPECT_THAT(told->words, ElementsAre("accepted", "prompt started", "token 11"));
  world.sender.of(World::Key(1)).on_done({});
  world.Settle();
  EXPECT_EQ(told->last(), "handed over");
  EXPECT_TRUE(world.HoldsNothing());
}

TEST(SchedulerHandover, WhileTheDecodeWorkerHasNoRoomThePromptHoldsNothing) {
  World world({.pages = 4, .schedule = {.token_budget = 16, .chunk_tokens = 16, .max_sequences = 1}});
  const auto first = world.HandOver(world.MakeAttempt(1, 12));
  world.Tick();
  const auto second = world.HandOver(world.MakeAttempt(2, 12, 100, 20));
  world.Tick();
  EXPECT_THAT(world.sender.calls, ElementsAre("reserve 12")) << "one slot";
  EXPECT_EQ(world.load.blocked_tokens, 0u);
  world.sender.of(World::Key(1)).on_queued();
  world.Settle();
  EXPECT_EQ(world.load.waiting_tokens, 24u);
  EXPECT_EQ(world.load.blocked_tokens, 12u) << "of the first prompt";
  EXPECT_THAT(world.sender.calls, ElementsAre("reserve 12", "reserve 12"));
  world.sender.of(World::Key(2)).on_granted();
  world.Settle();
  EXPECT_EQ(second->last(), "token 32");
  world.sender.of(World::Key(1)).on_granted();
  world.Settle();
  EXPECT_EQ(first->tokens(), 0) << "the second still holds pages and slot";
  world.sender.of(World::Key(2)).on_done({});
  world.Settle();
  EXPECT_EQ(first->last(), "token 13");
}

TEST(SchedulerHandover, AGrantedPromptGoesBeforeAnOlderOneThatHasNoGrant) {
  World world({.pages = 4, .schedule = {.token_budget = 16, .chunk_tokens = 16, .max_sequences = 1}});
  world.HandOver(world.MakeAttempt(2, 12));
  world.Tick();
  world.sender.of(World::Key(2)).on_queued();
  const auto blocker = world.HandOver(world.MakeAttempt(3, 12, 100, 30));
  world.Tick();
  world.HandOver(world.MakeAttempt(1, 12, 100, 10));
  world.sender.of(World::Key(2)).on_granted();
  world.Settle();
  world.sender.calls.clear();
  world.scheduler->Cancel(World::Key(3));
  world.ReleaseAborted();
  EXPECT_THAT(world.sender.calls, ::testing::Contains("commit 13")) << "request 2 was computed";
  EXPECT_THAT(world.sender.calls, ::testing::Not(::testing::Contains("reserve 12"))) << "request 1 waits";
}

TEST(SchedulerHandover, AFirstTokenThatEndsTheRequestEndsTheHandoff) {
  World world;
  const auto told = world.HandOver(world.MakeAttempt(1, 6, /*max_tokens=*/1));
  world.Tick();
  world.sender.of(World::Key(1)).on_granted();
  world.Settle();
  EXPECT_EQ(world.sender.calls.back(), "abort finished");
  EXPECT_EQ(told->last(), "finished by length");
  EXPECT_FALSE(world.HoldsNothing()) << "the transport may still read the pages";
  world.ReleaseAborted();
  EXPECT_TRUE(world.HoldsNothing());
}

TEST(SchedulerHandover, AFailedHandoffFailsTheAttemptOnce) {
  World world;
  const auto told = world.HandOver(world.MakeAttempt(1, 6));
  world.Tick();
  world.sender.of(World::Key(1)).on_failed(Outcome(Cause::kPeerLost, "no heartbeat"));
  world.Settle();
  EXPECT_EQ(told->last(), "failed peer_lost");
  EXPECT_THAT(world.sender.calls, ElementsAre("reserve 6")) << "nothing is left to abort";
  EXPECT_TRUE(world.HoldsNothing());
}

TEST(SchedulerHandover, AFailureThatCrossesACancelReleasesThePagesOnce) {
  World world;
  world.HandOver(world.MakeAttempt(1, 6));
  world.Tick();
  world.sender.of(World::Key(1)).on_failed(Outcome(Cause::kPeerLost, "no heartbeat"));  // posted, not run
  world.scheduler->Cancel(World::Key(1));
  world.Settle();
  EXPECT_FALSE(world.HoldsNothing());
  world.ReleaseAborted();
  EXPECT_TRUE(world.HoldsNothing());
}

TEST(SchedulerHandover, ACallerThatLeavesDuringAStepEndsTheHandoffDuringTheStep) {
  World world;
  const auto told = world.HandOver(world.MakeAttempt(1, 6));
  const auto other = world.RunLocally(world.MakeAttempt(2, 6, 100, 20));
  world.Tick();
  world.sender.of(World::Key(1)).on_granted();
  int layers = 0;
  world.model.during_layer = [&](int layer) {
    ++layers;
    if (layer == 0) told->is_cancelled = true;
    if (layer == 1) {
      EXPECT_EQ(world.sender.calls.back(), "abort");
    }
  };
  world.Tick();
  EXPECT_EQ(layers, kLayers) << "the other sequence needs the step";
  world.model.during_layer = nullptr;
  world.ReleaseAborted();
  EXPECT_EQ(told->tokens(), 0);
  EXPECT_GT(other->tokens(), 1);
}

}  // namespace
}  // namespace baton::testing
