// SPDX-License-Identifier: Apache-2.0
// An attempt ends in each of its phases, and everything that it holds goes back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "scheduler_world.h"

namespace baton::testing {
namespace {

struct Stage {
  const char* name;
  std::shared_ptr<Told> (*reach)(World& world);  // brings attempt 1 there
  const char* last_call;                         // to the sender when the attempt ends
  bool closes;                                   // the attempt at the receiver
};

std::shared_ptr<Told> ReachAwaiting(World& world) { return world.Receive(world.MakeAttempt(1, 6)); }
std::shared_ptr<Told> ReachWaiting(World& world) { return world.HandOver(world.MakeAttempt(1, 6)); }
std::shared_ptr<Told> ReachClaiming(World& world) {
  world.RunLocally(world.MakeAttempt(5, 4, 100, 20));
  world.Tick();
  auto told = world.RunLocally(world.MakeAttempt(1, 6));
  world.Tick();
  world.scheduler->Cancel(World::Key(5));
  return told;
}
std::shared_ptr<Told> ReachReserving(World& world) {
  auto told = world.HandOver(world.MakeAttempt(1, 6));
  world.Tick();
  return told;
}
std::shared_ptr<Told> ReachQueued(World& world) {
  auto told = ReachReserving(world);
  world.sender.of(World::Key(1)).on_queued();
  world.Tick();
  return told;
}
std::shared_ptr<Told> ReachReclaiming(World& world) {
  auto told = ReachQueued(world);
  world.RunLocally(world.MakeAttempt(5, 4, 100, 20));
  world.Tick();  // takes the only slot
  world.sender.of(World::Key(1)).on_granted();
  world.Tick();
  world.scheduler->Cancel(World::Key(5));
  return told;
}
std::shared_ptr<Told> ReachComputing(World& world) {
  auto told = world.HandOver(world.MakeAttempt(1, 12));
  world.Tick();
  world.sender.of(World::Key(1)).on_granted();
  world.Tick();  // the first chunk
  return told;
}
std::shared_ptr<Told> ReachDecoding(World& world) {
  auto told = world.RunLocally(world.MakeAttempt(1, 6));
  world.Tick();
  return told;
}
std::shared_ptr<Told> ReachReceivedDecoding(World& world) {
  auto told = ReachAwaiting(world);
  world.DeliverReceived(World::Key(1), 6, {7});
  world.Tick();
  return told;
}
std::shared_ptr<Told> ReachCommitting(World& world) {
  auto told = ReachComputing(world);
  world.Tick();
  return told;
}

std::shared_ptr<Told> ReachLoading(World& world) {
  Attempt attempt = world.MakeAttempt(1, 9);
  attempt.page_hash_root = PageHash{};
  world.PutInTiers(attempt, 2);
  auto told = world.HandOver(attempt);
  world.Tick();
  EXPECT_EQ(world.tiers.loads.size(), 1u);
  return told;
}
std::shared_ptr<Told> ReachReloading(World& world) {
  Attempt attempt = world.MakeAttempt(1, 9);
  attempt.page_hash_root = PageHash{};
  auto told = world.HandOver(attempt);
  world.Tick();
  world.sender.of(World::Key(1)).on_queued();
  world.Tick();
  world.PutInTiers(attempt, 2);
  world.sender.of(World::Key(1)).on_granted();
  world.Tick();
  EXPECT_EQ(world.tiers.loads.size(), 1u);
  return told;
}

const Stage kStages[] = {
    {"Awaiting", ReachAwaiting, "", true},
    {"Waiting", ReachWaiting, "", false},
    {"Claiming", ReachClaiming, "", false},
    {"Loading", ReachLoading, "", false},
    {"Reloading", ReachReloading, "abort", false},
    {"Reserving", ReachReserving, "abort", false},
    {"Queued", ReachQueued, "abort", false},
    {"Reclaiming", ReachReclaiming, "abort", false},
    {"Computing", ReachComputing, "abort", false},
    {"Decoding", ReachDecoding, "", false},
    {"ReceivedDecoding", ReachReceivedDecoding, "", true},
    {"Committing", ReachCommitting, "abort", false},
};

class EveryPhaseTest : public ::testing::TestWithParam<Stage> {
 protected:
  void ExpectAllGivenBack() {
    const std::string last_call = world_.sender.calls.empty() ? "" : world_.sender.calls.back();
    if (*GetParam().last_call != '\0') {
      EXPECT_EQ(last_call, GetParam().last_call);
    }
    world_.ReleaseAborted();
    // The loader still writes to the load's pages: they return when the load is over, and not before.
    if (!world_.tiers.loads.empty()) {
      EXPECT_TRUE(world_.tiers.loads.front().first->given_up);
      EXPECT_EQ(world_.pool->counts().used, 2u);
      world_.tiers.Finish(/*pages=*/1);
      world_.Settle();
    }
    EXPECT_TRUE(world_.HoldsNothing());
    EXPECT_EQ(world_.receiver.closed.size(), GetParam().closes ? 1u : 0u);
  }

  World world_{{.schedule = {.token_budget = 8, .chunk_tokens = 8, .max_sequences = 1}, .tiers = true}};
};

TEST_P(EveryPhaseTest, CancelGivesEverythingBackAndReportsNothing) {
  const auto told = GetParam().reach(world_);
  const size_t words = told->words.size();
  world_.scheduler->Cancel(World::Key(1));
  ExpectAllGivenBack();
  EXPECT_EQ(told->words.size(), words);
  world_.scheduler->Cancel(World::Key(1));  // unknown now
}

TEST_P(EveryPhaseTest, TheEndOfTheDrainTimeoutFailsTheAttempt) {
  const auto told = GetParam().reach(world_);
  world_.scheduler->FailAll("the worker stops");
  ExpectAllGivenBack();
  EXPECT_EQ(told->last(), "failed draining");
}

TEST_P(EveryPhaseTest, ReportsOfTheEndpointsThatComeTooLateChangeNothing) {
  const auto told = GetParam().reach(world_);
  world_.scheduler->Cancel(World::Key(1));
  const size_t words = told->words.size();
  for (auto& [key, events] : world_.sender.handoffs) {
    events.on_queued();
    events.on_granted();
    events.on_flushed();
    events.on_failed(Outcome(Cause::kPeerLost, "no heartbeat"));
    events.on_done({});
  }
  world_.scheduler->OnReceiveFailed(World::Key(1), Outcome(Cause::kPeerLost, "no heartbeat"));
  if (GetParam().closes) world_.DeliverReceived(World::Key(1), 6, {7});
  world_.Settle();
  ExpectAllGivenBack();
  EXPECT_EQ(told->words.size(), words);
}

INSTANTIATE_TEST_SUITE_P(All, EveryPhaseTest, ::testing::ValuesIn(kStages),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(SchedulerEndTest, PromptsThatHaveNotBegunCanBeEndedAlone) {
  World world({.pages = 8, .schedule = {.token_budget = 16, .chunk_tokens = 16, .max_sequences = 1}});
  const auto begun = world.RunLocally(world.MakeAttempt(1, 6));
  world.Tick();
  const auto waits = world.RunLocally(world.MakeAttempt(2, 6, 100, 20));
  const auto hands_over = world.HandOver(world.MakeAttempt(3, 6, 100, 30));
  const auto receives = world.Receive(world.MakeAttempt(4, 6, 100, 40));
  world.Tick();
  world.scheduler->FailWaiting("for the test");
  EXPECT_EQ(waits->last(), "failed draining");
  EXPECT_EQ(waits->why, "for the test");
  EXPECT_EQ(hands_over->last(), "failed draining");
  EXPECT_EQ(receives->last(), "accepted");
  world.Tick();
  EXPECT_EQ(begun->tokens(), 3);
}

}  // namespace
}  // namespace baton::testing
