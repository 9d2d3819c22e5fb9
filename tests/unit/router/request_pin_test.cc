// SPDX-License-Identifier: Apache-2.0
// Pinned requests: a migration that the pin asks for, and attempts that stay with their pair.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "request_migration_fixture.h"
#include "tests/status_matchers.h"

namespace baton::router {
namespace {

// The pin names p1 and d1, and d2 after 3 output tokens.
class RequestPinTest : public RequestMigrationTest {
 protected:
  RequestPinTest() { spec_.pin = Pin{.prefill = "p1", .decode = "d1", .migrate_to = "d2", .migrate_after_tokens = 3}; }
  void BeginPinnedMigration() {
    BeginDecoding();
    Decode(1, Tokens(1, {1, 2}));
    PlaceMigrationOn("d2");
    Accept(2);
    ASSERT_EQ(Count<action::Migrate>(), 1);
  }
};

TEST_F(RequestPinTest, TheSequenceMigratesAfterItsTokens) {
  BeginDecoding();
  Decode(1, Tokens(1, {1}));
  EXPECT_EQ(Count<action::PlaceMigration>(), 0) << "two tokens have come";
  Decode(1, Tokens(2, {2}));
  ASSERT_EQ(Count<action::PlaceMigration>(), 1);
  EXPECT_EQ(Last<action::PlaceMigration>().avoid, (std::vector<WorkerKey>{{"d1", 1}}));
  PlaceMigrationOn("d2");
  Accept(2);
  EXPECT_EQ(Last<action::Migrate>().prior_output_tokens, 3u);
  Decode(1, Tokens(3, {3}));
  Decode(2, StartedFrom(4));
  Decode(2, Tokens(4, {4, 5}));
  EXPECT_EQ(Count<action::PlaceMigration>(), 1) << "once";
  Prefill(2, HandedOver());
  Finish(2);
  EXPECT_EQ(Text(), "abcdefghij");
  EXPECT_EQ(Ends(), (std::vector<std::string>{"1 migrated", "2 finished"}));
}

TEST_F(RequestPinTest, NoMigrationBeginsBeforeTheDecodeWorkerHasTheSequence) {
  spec_.pin->migrate_after_tokens = 1;
  BeginAccepted();
  Prefill(1, FirstToken(0, 0));
  EXPECT_EQ(Count<action::PlaceMigration>(), 0);
  Decode(1, Started());
  Decode(1, Tokens(1, {1}));
  EXPECT_EQ(Count<action::PlaceMigration>(), 1);
}

TEST_F(RequestPinTest, AFullTargetIsAskedAgainAfterAPauseAndNotWithEveryToken) {
  BeginDecoding();
  Decode(1, Tokens(1, {1, 2}));
  PlaceMigrationNowhere();
  const absl::Duration pause = Last<action::WakeAfter>().delay;
  EXPECT_GT(pause, absl::ZeroDuration());
  Decode(1, Tokens(3, {3}));
  Decode(1, Tokens(4, {4}));
  EXPECT_EQ(Count<action::PlaceMigration>(), 1);
  Wake();
  EXPECT_EQ(Count<action::PlaceMigration>(), 2);
  PlaceMigrationNowhere();
  EXPECT_GT(Last<action::WakeAfter>().delay, pause);
  Wake();
  PlaceMigrationOn("d2");
  Accept(2);
  Decode(2, StartedFrom(5));
  Prefill(2, HandedOver());
  Finish(2);
  EXPECT_EQ(Text(), "abcdefghij");
  EXPECT_EQ(Ends(), (std::vector<std::string>{"1 migrated", "2 finished"}));
}

TEST_F(RequestPinTest, ALostTargetCostsNothing) {
  BeginPinnedMigration();
  DecodeEnds(2, absl::UnavailableError("gone"));
  EXPECT_EQ(Ends(), std::vector<std::string>{"2 decode_lost"});
  Decode(1, Tokens(3, {3}));
  EXPECT_EQ(Count<action::PlaceMigration>(), 1);
  Wake();
  EXPECT_EQ(Count<action::PlaceMigration>(), 2);
  PlaceMigrationNowhere();
  Finish(1);
  EXPECT_EQ(Text(), "abcdefghij");
  EXPECT_EQ(Count<action::Finish>(), 1);
  EXPECT_EQ(Count<action::Place>(), 1) << "no other attempt";
}

TEST_F(RequestPinTest, AfterTheMigrationTheNextAttemptRunsOnThePairAndStays) {
  BeginPinnedMigration();
  Decode(2, StartedFrom(3));
  EXPECT_EQ(Ends(), std::vector<std::string>{"1 migrated"});
  DecodeEnds(2, absl::UnavailableError("gone"));
  EXPECT_EQ(Count<action::Place>(), 2);
  PlaceOn("p1", "d1");
  Accept(3);
  Prefill(3, FirstToken(3, 3));
  Decode(3, Started());
  Decode(3, Tokens(4, {4}));
  Decode(3, Draining());
  EXPECT_EQ(Count<action::PlaceMigration>(), 1) << "the sequence has migrated once";
  Prefill(3, HandedOver());
  Finish(3);
  EXPECT_EQ(Text(), "abcdefghij");
}

TEST_F(RequestPinTest, AnAttemptThatEndsBeforeItsMigrationIsFollowedByOneThatMigrates) {
  BeginDecoding();
  Decode(1, Tokens(1, {1, 2}));
  DecodeEnds(1, absl::UnavailableError("gone"));
  PlaceOn("p1", "d1");
  Accept(2);
  Prefill(2, FirstToken(3, 3));
  EXPECT_EQ(Count<action::PlaceMigration>(), 1) << "attempt 1's";
  Decode(2, Started());
  Decode(2, Tokens(4, {4}));
  EXPECT_EQ(Count<action::PlaceMigration>(), 2);
}

TEST_F(RequestPinTest, AnOutputThatEndsFirstNeedsNoTarget) {
  BeginPinnedMigration();
  Finish(1);
  EXPECT_EQ(Count<action::Finish>(), 1);
  EXPECT_EQ(Ends(), (std::vector<std::string>{"2 cancelled", "1 finished"}));

  actions_.clear();
  BeginDecoding();
  Decode(1, Tokens(1, {1, 2}));
  Finish(1);
  Prefill(1, HandedOver());
  PlaceMigrationOn("d2");
  EXPECT_EQ(Count<action::OpenDecode>(), 1) << "the search for the target came too late";
  EXPECT_EQ(Count<action::Finish>(), 1);
}

TEST_F(RequestPinTest, WithoutATargetTheSequenceStaysThoughItsWorkerDrains) {
  spec_.pin->migrate_to.clear();
  BeginDecoding();
  Decode(1, Tokens(1, {1, 2}));
  Decode(1, Draining());
  EXPECT_EQ(Count<action::PlaceMigration>(), 0);
  Finish(1);
  EXPECT_EQ(Text(), "abcdefghij");
}

TEST_F(RequestPinTest, ADrainingWorkerBringsTheMigrationForward) {
  BeginDecoding();
  Decode(1, Draining());
  EXPECT_EQ(Count<action::PlaceMigration>(), 1);
}

TEST_F(RequestPinTest, TheRefusalOfAFullPairNamesThePin) {
  policy_.overload_wait = absl::ZeroDuration();
  Begin();
  Decode(1, DecodeFailed(Cause::kOverloaded));
  PlaceNowhere(PlacementResult::Kind::kOnlyAvoided);
  EXPECT_TRUE(testing::Fails(Failure(), absl::StatusCode::kResourceExhausted, "the pinned pair of model m is full"));
}

}  // namespace
}  // namespace baton::router
