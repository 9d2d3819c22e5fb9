// SPDX-License-Identifier: Apache-2.0
// Live migrations that fail: the sequence goes on where it is, and the move is tried again.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "request_migration_fixture.h"

namespace baton::router {
namespace {

TEST_F(RequestMigrationTest, AnOutputWhoseEndIsKnownIsNotMoved) {
  BeginAccepted();
  Decode(1, Started());
  Decode(1, Tokens(1, {1}));
  Decode(1, Draining());
  PlaceMigrationNowhere();
  Decode(1, DecodeFinished(v1::FINISH_REASON_LENGTH));
  Wake();
  EXPECT_EQ(Count<action::PlaceMigration>(), 1) << "the first token is still to come from the prefill worker";
}

TEST_F(RequestMigrationTest, AFailedMoveCostsNothingAndIsTriedAgain) {
  struct Case {
    const char* name;
    std::function<void()> fail;
  };
  const std::vector<Case> cases = {
      {"the draining worker cannot", [&] { Prefill(2, PrefillFailed(Cause::kRevoked)); }},
      {"the migrate call is lost", [&] { PrefillEnds(2, absl::UnimplementedError("no such method")); }},
      {"the other worker fails it", [&] { Decode(2, DecodeFailed(Cause::kPeerLost)); }},
      {"the other worker is lost", [&] { DecodeEnds(2, absl::UnavailableError("gone")); }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    actions_.clear();
    BeginMigrating();
    c.fail();
    EXPECT_EQ(Ends().size(), 1u);
    EXPECT_EQ(Count<action::Place>(), 1) << "no other attempt";
    Decode(1, Tokens(3, {3}));
    Wake();
    EXPECT_EQ(Count<action::PlaceMigration>(), 2);
    PlaceMigrationNowhere();
    Wake();
    EXPECT_EQ(Count<action::PlaceMigration>(), 3);
    Finish(1);
    EXPECT_EQ(Text(), "abcdefghij");
    EXPECT_EQ(Count<action::Finish>(), 1);
  }
}

TEST_F(RequestMigrationTest, TheNextAttemptsMovesBeginAnew) {
  BeginMigrating();
  DecodeEnds(2, absl::UnavailableError("gone"));
  DecodeEnds(1, absl::UnavailableError("gone"));
  PlaceOn("p1", "d3");
  Accept(3);
  Decode(3, Draining());
  EXPECT_EQ(Last<action::PlaceMigration>().avoid, (std::vector<WorkerKey>{{"d3", 1}}));
  PlaceMigrationNowhere();
  EXPECT_EQ(Last<action::WakeAfter>().delay, absl::Milliseconds(250));
}

TEST_F(RequestMigrationTest, OneMoveAtATime) {
  BeginMigrating();
  Decode(1, Draining());
  EXPECT_EQ(Count<action::PlaceMigration>(), 1);
}

TEST_F(RequestMigrationTest, ThePauseBeforeTheNextTryGrowsToALimit) {
  BeginMigrating();
  absl::Duration last;
  for (int i = 0; i < 10; ++i) {
    const int pauses = Count<action::WakeAfter>();
    i == 0 ? Decode(2, DecodeFailed(Cause::kPeerLost)) : PlaceMigrationNowhere();
    ASSERT_EQ(Count<action::WakeAfter>(), pauses + 1);
    const absl::Duration pause = Last<action::WakeAfter>().delay;
    EXPECT_GT(pause, absl::ZeroDuration());
    EXPECT_TRUE(pause > last || pause == absl::Seconds(4)) << pause;
    last = pause;
    Wake();
  }
  EXPECT_EQ(last, absl::Seconds(4));
}

TEST_F(RequestMigrationTest, WhoFailedAMoveIsAvoidedOnce) {
  const auto avoided = [&] {
    std::vector<std::string> ids;
    for (const WorkerKey& key : Last<action::PlaceMigration>().avoid) ids.push_back(key.id);
    return ids;
  };
  using Ids = std::vector<std::string>;
  BeginMigrating();
  Decode(2, DecodeFailed(Cause::kPeerLost));
  Wake();
  EXPECT_EQ(avoided(), (Ids{"d2", "d1"}));
  PlaceMigrationNowhere();
  Wake();
  EXPECT_EQ(avoided(), Ids{"d1"}) << "everyone is asked again";
  PlaceMigrationOn("d3");
  DecodeEnds(3, absl::UnavailableError("gone"));
  Wake();
  EXPECT_EQ(avoided(), (Ids{"d3", "d1"}));
  PlaceMigrationOn("d2");
  Accept(4);
  Prefill(4, PrefillFailed(Cause::kRevoked));
  Wake();
  EXPECT_EQ(avoided(), Ids{"d1"}) << "the draining worker gave up: that was not d2's fault";
}

TEST_F(RequestMigrationTest, WhatWasLearntOfOneMoveEndsWithIt) {
  BeginMigrating();
  Decode(2, DecodeFailed(Cause::kPeerLost));
  const absl::Duration first_pause = Last<action::WakeAfter>().delay;
  Wake();
  PlaceMigrationOn("d3");
  Accept(3);
  Decode(3, StartedFrom(3));
  Decode(3, Draining());
  ASSERT_EQ(Last<action::PlaceMigration>().avoid.size(), 1u) << "d2 may be asked again";
  EXPECT_EQ(Last<action::PlaceMigration>().avoid[0].id, "d3");
  PlaceMigrationNowhere();
  EXPECT_EQ(Last<action::WakeAfter>().delay, first_pause);
}

TEST_F(RequestMigrationTest, ARetryThatTheNextAttemptOutlivesMovesNothing) {
  BeginMigrating();
  Decode(2, DecodeFailed(Cause::kPeerLost));
  const auto retry = Last<action::WakeAfter>().wake;
  DecodeEnds(1, absl::UnavailableError("gone"));
  PlaceOn("p1", "d2");
  Accept(3);
  OnWake(retry);
  EXPECT_EQ(Count<action::PlaceMigration>(), 1) << "d2 does not drain";
  // When d2 drains, too, only the new retry counts.
  Decode(3, Draining());
  PlaceMigrationNowhere();
  OnWake(retry);
  EXPECT_EQ(Count<action::PlaceMigration>(), 2);
  Wake();
  EXPECT_EQ(Count<action::PlaceMigration>(), 3);
}

TEST_F(RequestMigrationTest, OnlyCallsThatAreOpenAreCancelledWhenAMoveFails) {
  struct Case {
    const char* name;
    std::function<void()> fail;
    int decode;
    int prefill;
  };
  const std::vector<Case> cases = {
      {"the other worker fails it", [&] { Decode(2, DecodeFailed(Cause::kPeerLost)); }, 0, 1},
      {"the other worker's call ends", [&] { DecodeEnds(2, absl::UnavailableError("gone")); }, 0, 1},
      {"the draining worker fails it", [&] { Prefill(2, PrefillFailed(Cause::kRevoked)); }, 1, 0},
      {"the draining worker's call ends", [&] { PrefillEnds(2, absl::UnavailableError("gone")); }, 1, 0},
      {"the other worker fails it after the handover",
       [&] {
         Prefill(2, HandedOver());
         Decode(2, DecodeFailed(Cause::kInternal));
       },
       0, 0},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    actions_.clear();
    BeginMigrating();
    c.fail();
    EXPECT_EQ(Ends().size(), 1u);
    EXPECT_EQ(Count<action::CancelDecode>(), c.decode);
    EXPECT_EQ(Count<action::CancelPrefill>(), c.prefill);
    c.fail();  // said again, of an attempt that is over
    EXPECT_EQ(Ends().size(), 1u);
  }
}

TEST_F(RequestMigrationTest, CallsThatEndAfterTheirLastEventLoseNothing) {
  BeginMigrating();
  Prefill(2, HandedOver());
  PrefillEnds(2, absl::UnavailableError("gone"));
  EXPECT_TRUE(Ends().empty()) << "it had handed over";
  Decode(2, StartedFrom(5));
  Decode(2, Tokens(5, {5, 6}));
  Decode(2, DecodeFinished(v1::FINISH_REASON_LENGTH));
  DecodeEnds(2, absl::UnavailableError("gone"));
  EXPECT_TRUE(Ends().empty()) << "it had finished";
  Decode(1, Tokens(3, {3, 4}));
  EXPECT_EQ(Text(), "abcdefg");
  EXPECT_EQ(Last<action::Finish>().finish.reason(), v1::FINISH_REASON_LENGTH) << "by the worker's word: its context";
}

TEST_F(RequestMigrationTest, OnceTheOtherWorkerHasStartedTheDrainingOnesWordDoesNotMatter) {
  for (const bool call_ends : {false, true}) {
    SCOPED_TRACE(call_ends);
    actions_.clear();
    BeginMigrating();
    Decode(2, StartedFrom(5));
    call_ends ? PrefillEnds(2, absl::UnavailableError("gone")) : Prefill(2, PrefillFailed(Cause::kPeerLost));
    EXPECT_TRUE(Ends().empty());
    Decode(1, Tokens(3, {3, 4}));
    EXPECT_EQ(Ends(), std::vector<std::string>{"1 migrated"});
    Finish(2);
    EXPECT_EQ(Text(), "abcdefghij");
  }
}

TEST_F(RequestMigrationTest, TheEndOfTheDrainingWorkersCallLosesNothingBeforeTheNextToken) {
  BeginMigrating();
  Decode(2, StartedFrom(3));
  EXPECT_EQ(Ends(), std::vector<std::string>{"1 migrated"});
  PrefillEnds(2, absl::UnavailableError("gone"));
  EXPECT_EQ(Ends().size(), 1u) << "the other worker has the sequence";
  Finish(2);
  EXPECT_EQ(Text(), "abcdefghij");
}

TEST_F(RequestMigrationTest, TheLossOfTheOtherWorkerWhileTokensAreStillToComeCostsNothing) {
  BeginMigrating();
  Decode(2, StartedFrom(5));
  DecodeEnds(2, absl::UnavailableError("gone"));
  EXPECT_EQ(Ends(), std::vector<std::string>{"2 decode_lost"});
  Finish(1);
  EXPECT_EQ(Text(), "abcdefghij");
}

TEST_F(RequestMigrationTest, ASequenceThatWentToAnAttemptThatIsOverIsComputedAgain) {
  BeginMigrating();
  Decode(2, DecodeFailed(Cause::kInternal));
  Decode(1, Migrated(2));
  EXPECT_EQ(Ends(), (std::vector<std::string>{"2 internal", "1 revoked"}));
  EXPECT_EQ(Count<action::Place>(), 2);
  PlaceOn("p1", "d3");
  Accept(3);
  Finish(3);
  EXPECT_EQ(Text(), "abcdefghij");
}

}  // namespace
}  // namespace baton::router
