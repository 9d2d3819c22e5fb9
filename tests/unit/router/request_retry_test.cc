// SPDX-License-Identifier: Apache-2.0
// Second tries, and requests that find no place.
#include <gtest/gtest.h>

#include "request_machine_fixture.h"
#include "tests/status_matchers.h"

namespace baton::router {
namespace {

using testing::Fails;

TEST_F(RequestMachineTest, ADecodeWorkersDeathGoesOnFromTheOutputSoFar) {
  BeginDecoding();
  Decode(1, Tokens(1, {1}));
  DecodeEnds(1, absl::UnavailableError("connection reset"));
  EXPECT_EQ(Last<action::AttemptEnded>().outcome.cause, Cause::kDecodeLost);
  EXPECT_EQ(Last<action::Place>().avoid, (std::vector<WorkerKey>{{"d1", 1}}));
  EXPECT_EQ(machine_->output(), (std::vector<TokenId>{0, 1})) << "the prior output of attempt 2";

  PlaceOn("p1", "d2");
  EXPECT_EQ(Last<action::OpenDecode>().attempt, 2u);
  Accept(2);
  Prefill(2, FirstToken(2, 2));
  Decode(2, Started());
  Prefill(2, HandedOver());
  Decode(2, Tokens(3, {3, kEnd}));
  Decode(2, DecodeFinished(v1::FINISH_REASON_STOP));

  EXPECT_EQ(Text(), "abcd");
  const v1::Finish finish = Last<action::Finish>().finish;
  EXPECT_EQ(finish.usage().completion_tokens(), 5u);
  ASSERT_EQ(finish.attempts_size(), 2);
  EXPECT_EQ(finish.attempts(0).ended_by(), "decode_lost");
  EXPECT_EQ(finish.attempts(1).decode_worker(), "d2");
}

// The prefill worker's own report may come later than what the decode worker heard of it.
TEST_F(RequestMachineTest, AWithdrawnHandoffEndsWithThePrefillWorkersReason) {
  BeginAccepted();
  Decode(1, DecodeFailed(Cause::kCancelled));
  EXPECT_EQ(Count<action::AttemptEnded>(), 0);
  Prefill(1, PrefillFailed(Cause::kPreempted));
  EXPECT_EQ(Last<action::AttemptEnded>().outcome.cause, Cause::kPreempted);
}

TEST_F(RequestMachineTest, AWithdrawnHandoffEndsWithTheLossOfThePrefillWorker) {
  BeginAccepted();
  Decode(1, DecodeFailed(Cause::kCancelled));
  PrefillEnds(1, absl::UnavailableError("gone"));
  EXPECT_EQ(Last<action::AttemptEnded>().outcome.cause, Cause::kPrefillLost);
}

TEST_F(RequestMachineTest, AnAttemptIsCancelledBeforeTheNextAndIgnoredAfter) {
  BeginAccepted();
  PrefillEnds(1, absl::UnavailableError("gone"));
  EXPECT_EQ(Last<action::AttemptEnded>().outcome.cause, Cause::kPrefillLost);
  EXPECT_EQ(Last<action::CancelDecode>().attempt, 1u);
  PlaceOn("p2", "d1");
  Accept(2);
  Prefill(1, FirstToken(0, 9));
  Decode(1, Tokens(0, {9, 9}));
  DecodeEnds(1, absl::CancelledError());
  EXPECT_EQ(Text(), "");
  EXPECT_EQ(Count<action::AttemptEnded>(), 1);
  Prefill(2, FirstToken(0, 0));
  EXPECT_EQ(Text(), "a");
}

TEST_F(RequestMachineTest, ThePrefillWorkersDeathAfterTheHandoffDoesNotMatter) {
  BeginAccepted();
  Prefill(1, FirstToken(0, 0));
  Decode(1, Started());
  PrefillEnds(1, absl::UnavailableError("gone"));
  EXPECT_EQ(Count<action::AttemptEnded>(), 0);
  Decode(1, Tokens(1, {kEnd}));
  Decode(1, DecodeFinished(v1::FINISH_REASON_STOP));
  EXPECT_EQ(Count<action::Finish>(), 1);
}

TEST_F(RequestMachineTest, ATokenOfTheDecodeWorkerSaysThatItHasTheSequence) {
  BeginAccepted();
  Prefill(1, FirstToken(0, 0));
  Decode(1, Tokens(1, {1}));
  PrefillEnds(1, absl::UnavailableError("gone"));
  EXPECT_EQ(Count<action::AttemptEnded>(), 0);
}

TEST_F(RequestMachineTest, ThePrefillWorkersDeathWithAnUnknownFirstTokenIsALoss) {
  BeginAccepted();
  Decode(1, Started());
  Decode(1, Tokens(1, {1}));
  PrefillEnds(1, absl::UnavailableError("gone"));
  EXPECT_EQ(Last<action::AttemptEnded>().outcome.cause, Cause::kPrefillLost);
  EXPECT_EQ(Text(), "");
}

TEST_F(RequestMachineTest, PreemptionOpensTheNextAttemptAndIsNotCountedAsAFailure) {
  policy_.max_attempts = 1;
  BeginDecoding();
  for (uint32_t attempt = 1; attempt < 6; ++attempt) {
    Decode(attempt, Tokens(attempt, {0}));
    Decode(attempt, DecodeFailed(Cause::kPreempted));
    EXPECT_EQ(Last<action::AttemptEnded>().outcome.cause, Cause::kPreempted);
    PlaceOn("p1", "d1");
    Accept(attempt + 1);
  }
  EXPECT_EQ(Count<action::Fail>(), 0);
  EXPECT_TRUE(Last<action::Place>().avoid.empty());
}

TEST_F(RequestMachineTest, PreemptionWithoutProgressBacksOff) {
  BeginAccepted();
  Decode(1, DecodeFailed(Cause::kPreempted));
  EXPECT_EQ(Count<action::Place>(), 2) << "at once the first time";
  PlaceOn("p1", "d1");
  Decode(2, DecodeFailed(Cause::kPreempted));
  EXPECT_EQ(Count<action::Place>(), 2);
  Wake();
  EXPECT_EQ(Count<action::Place>(), 3);
}

TEST_F(RequestMachineTest, TheBackoffDoublesUpToASecond) {
  BeginAccepted();
  Decode(1, DecodeFailed(Cause::kPreempted));
  for (uint32_t attempt = 2; const int milliseconds : {50, 100, 200, 400, 800, 1000, 1000}) {
    PlaceOn("p1", "d1");
    Decode(attempt++, DecodeFailed(Cause::kPreempted));
    EXPECT_EQ(Last<action::WakeAfter>().delay, absl::Milliseconds(milliseconds));
    Wake();
  }
}

TEST_F(RequestMachineTest, AnAttemptThatEndsWellWithoutANewTokenIsNoEndOfTheOutput) {
  BeginDecoding();
  DecodeEnds(1, absl::UnavailableError("gone"));
  PlaceOn("p2", "d2");
  Accept(2);
  Decode(2, Started());
  Prefill(2, HandedOver());
  Decode(2, DecodeFinished(v1::FINISH_REASON_LENGTH));
  EXPECT_EQ(Count<action::Finish>(), 0);
  EXPECT_EQ(Last<action::AttemptEnded>().outcome.cause, Cause::kInternal);
}

TEST_F(RequestMachineTest, ALostPeerMarksThePairAndAvoidsTheOtherWorker) {
  BeginAccepted();
  Prefill(1, PrefillFailed(Cause::kPeerLost));
  EXPECT_EQ(Last<action::AttemptEnded>().outcome.cause, Cause::kPeerLost);
  EXPECT_EQ(Last<action::AttemptEnded>().broken_pair, 77u);
  EXPECT_EQ(Last<action::Place>().avoid, (std::vector<WorkerKey>{{"d1", 1}}));
}

TEST_F(RequestMachineTest, TheCausesOfWorkersAreKept) {
  for (const Cause cause : {Cause::kDraining, Cause::kRevoked, Cause::kInternal}) {
    actions_.clear();
    BeginAccepted();
    Decode(1, DecodeFailed(cause));
    EXPECT_EQ(Last<action::AttemptEnded>().outcome.cause, cause);
    EXPECT_EQ(Last<action::AttemptEnded>().outcome.detail, "said the decode worker");
    EXPECT_EQ(Count<action::Place>(), 2);
  }
}

TEST_F(RequestMachineTest, ARequestThatCanNeverRunFailsAtOnce) {
  BeginAccepted();
  Prefill(1, PrefillFailed(Cause::kInvalid));
  EXPECT_TRUE(Fails(Failure(), absl::StatusCode::kInvalidArgument, "said the prefill worker"));
  EXPECT_EQ(Count<action::CancelDecode>(), 1);
}

TEST_F(RequestMachineTest, ACallThatIsNotTakenIsTriedElsewhere) {
  Begin();
  DecodeEnds(1, absl::FailedPreconditionError("protocol 2"));
  EXPECT_EQ(Last<action::AttemptEnded>().outcome.cause, Cause::kRefused);
  EXPECT_EQ(Last<action::Place>().avoid, (std::vector<WorkerKey>{{"d1", 1}}));
}

TEST_F(RequestMachineTest, ACallThatEndsWithoutATerminalEventIsALoss) {
  BeginDecoding();
  DecodeEnds(1, absl::OkStatus());
  EXPECT_EQ(Last<action::AttemptEnded>().outcome.cause, Cause::kDecodeLost);
}

TEST_F(RequestMachineTest, GivesUpAfterMaxAttemptsAndNamesTheLastCause) {
  policy_.max_attempts = 3;
  Begin();
  DecodeEnds(1, absl::UnavailableError("first"));
  PlaceOn("p1", "d1");
  DecodeEnds(2, absl::UnavailableError("second"));
  Wake();  // the second failure in a row backs off
  PlaceOn("p1", "d1");
  DecodeEnds(3, absl::UnavailableError("third"));
  EXPECT_TRUE(Fails(Failure(), absl::StatusCode::kUnavailable, "3 attempts failed, the last attempt by decode_lost"));
  EXPECT_TRUE(Fails(Failure(), absl::StatusCode::kUnavailable, "third"));
}

// ---------------------------------------------------------------------------------------------- nowhere to be placed

TEST_F(RequestMachineTest, OverloadLooksForAnotherPairThenWaitsThenGivesAHint) {
  policy_.overload_wait = absl::Milliseconds(200);
  BeginAccepted();
  Prefill(1, PrefillFailed(Cause::kOverloaded));
  EXPECT_EQ(Last<action::Place>().avoid, (std::vector<WorkerKey>{{"p1", 1}}));
  PlaceNowhere(PlacementResult::Kind::kOnlyAvoided);
  uint32_t attempt = 1;
  while (Count<action::Fail>() == 0 && attempt < 20) {
    Wake();
    EXPECT_TRUE(Last<action::Place>().avoid.empty()) << "after a wait everyone is asked again";
    PlaceOn("p1", "d1");
    Accept(++attempt);
    Prefill(attempt, PrefillFailed(Cause::kOverloaded));
    PlaceNowhere(PlacementResult::Kind::kOnlyAvoided);
  }
  EXPECT_TRUE(Fails(Failure(), absl::StatusCode::kResourceExhausted, "retry after"));
  EXPECT_GT(Last<action::Fail>().retry_after, absl::ZeroDuration());
  EXPECT_GE(now_ - kStart, policy_.overload_wait);
}

TEST_F(RequestMachineTest, TheOneThatIsFullIsAvoided) {
  BeginAccepted();
  Prefill(1, PrefillFailed(Cause::kOverloaded, Fault::kPeer));
  EXPECT_EQ(Last<action::Place>().avoid, (std::vector<WorkerKey>{{"d1", 1}}));
}

TEST_F(RequestMachineTest, WithoutAnOverloadWaitARefusalIsImmediate) {
  policy_.overload_wait = absl::ZeroDuration();
  Begin();
  DecodeEnds(1, absl::ResourceExhaustedError("queue full"));
  PlaceNowhere(PlacementResult::Kind::kOnlyAvoided);
  EXPECT_TRUE(Fails(Failure(), absl::StatusCode::kResourceExhausted, "queue full"));
}

TEST_F(RequestMachineTest, ARequestThatHasBegunToAnswerWaitsOutAnOverload) {
  policy_.overload_wait = absl::ZeroDuration();
  BeginDecoding();
  DecodeEnds(1, absl::UnavailableError("gone"));
  PlaceOn("p1", "d2");
  for (uint32_t attempt = 2; attempt < 40; ++attempt) {
    DecodeEnds(attempt, absl::ResourceExhaustedError("full"));
    PlaceNowhere(PlacementResult::Kind::kOnlyAvoided);
    Wake();
    PlaceOn("p1", "d2");
  }
  EXPECT_EQ(Count<action::Fail>(), 0) << "only its deadline ends it";
}

TEST_F(RequestMachineTest, ALateRequestIsRefusedAtOnceWithTheEstimateAsHint) {
  policy_.overload_wait = absl::Seconds(5);
  Start();
  PlacementResult late{PlacementResult::Kind::kLate, {}, "the queue is long"};
  late.retry_after = absl::Milliseconds(700);
  PlaceNowhere(late);
  EXPECT_TRUE(Fails(Failure(), absl::StatusCode::kResourceExhausted, "the queue is long; retry after 700ms"));
  EXPECT_EQ(Last<action::Fail>().retry_after, absl::Milliseconds(700));
  EXPECT_EQ(Last<action::Fail>().cause, Cause::kTooLate);
}

TEST_F(RequestMachineTest, ARequestThatMayWaitForRoomAsksAgainAndAgain) {
  policy_.overload_wait = absl::ZeroDuration();
  policy_.placement_wait = absl::Seconds(1);
  Start();
  PlacementResult full{PlacementResult::Kind::kNoRoom, {}, "no time per token"};
  full.may_wait = true;
  for (int i = 0; i < 100; ++i) {
    PlaceNowhere(full);
    ASSERT_EQ(Count<action::Fail>(), 0);
    Wake();
    ASSERT_EQ(Count<action::Place>(), i + 2);
  }
  // The wait for room is no wait for a worker that is gone.
  PlaceNowhere(PlacementResult::Kind::kNoneReady);
  EXPECT_EQ(Count<action::Fail>(), 0);
}

TEST_F(RequestMachineTest, ARequestThatMayNotWaitForRoomIsRefusedAfterTheOverloadWait) {
  policy_.overload_wait = absl::Milliseconds(200);
  Start();
  PlacementResult full{PlacementResult::Kind::kNoRoom, {}, "no time per token"};
  full.retry_after = absl::Seconds(3);
  for (int i = 0; i < 20 && Count<action::Fail>() == 0; ++i) {
    PlaceNowhere(full);
    if (Count<action::Fail>() == 0) Wake();
  }
  EXPECT_TRUE(Fails(Failure(), absl::StatusCode::kResourceExhausted, "no time per token; retry after 3s"));
  EXPECT_GE(now_ - kStart, policy_.overload_wait);
}

TEST_F(RequestMachineTest, AWorkerThatSaysTooLateIsAvoidedAndTheHintIsThePlacements) {
  policy_.overload_wait = absl::ZeroDuration();
  BeginAccepted();
  Prefill(1, PrefillFailed(Cause::kTooLate));
  EXPECT_EQ(Last<action::Place>().avoid, (std::vector<WorkerKey>{{"p1", 1}}));
  PlacementResult nowhere{PlacementResult::Kind::kOnlyAvoided, {}, "all avoided"};
  nowhere.retry_after = absl::Seconds(2);
  PlaceNowhere(nowhere);
  EXPECT_TRUE(Fails(Failure(), absl::StatusCode::kResourceExhausted, "retry after 2s"));
  EXPECT_EQ(Last<action::Fail>().retry_after, absl::Seconds(2));
  EXPECT_EQ(Last<action::Fail>().cause, Cause::kTooLate);
}

TEST_F(RequestMachineTest, NoLiveWorkerIsUnavailableAtOnce) {
  Start();
  PlaceNowhere(PlacementResult::Kind::kNoneLive);
  EXPECT_TRUE(Fails(Failure(), absl::StatusCode::kUnavailable, "nowhere"));
}

TEST_F(RequestMachineTest, ARequestThatHasBegunWaitsForWorkersThatMayComeBack) {
  policy_.placement_wait = absl::Seconds(2);
  BeginDecoding();
  DecodeEnds(1, absl::UnavailableError("gone"));
  PlaceNowhere(PlacementResult::Kind::kNoneLive);
  EXPECT_EQ(Count<action::Fail>(), 0);
  Wake();
  PlaceOn("p1", "d1");
  DecodeEnds(2, absl::UnavailableError("gone"));
  while (Count<action::Fail>() == 0) {
    PlaceNowhere(PlacementResult::Kind::kNoneLive);
    if (Count<action::Fail>() == 0) Wake();
    ASSERT_LT(now_ - kStart, absl::Seconds(10));
  }
  EXPECT_TRUE(Fails(Failure(), absl::StatusCode::kUnavailable, "nowhere"));
}

TEST_F(RequestMachineTest, LivePairsThatAreNotReadyAreWaitedForWithinALimit) {
  policy_.placement_wait = absl::Seconds(2);
  BeginDecoding();
  DecodeEnds(1, absl::UnavailableError("gone"));
  PlaceNowhere(PlacementResult::Kind::kNoneReady);
  Wake();
  PlaceOn("p1", "d1");
  DecodeEnds(2, absl::UnavailableError("gone"));
  while (Count<action::Fail>() == 0) {
    Wake();
    PlaceNowhere(PlacementResult::Kind::kNoneReady);
    ASSERT_LT(now_ - kStart, absl::Seconds(5));
  }
  EXPECT_TRUE(Fails(Failure(), absl::StatusCode::kUnavailable, "nowhere"));
}

TEST_F(RequestMachineTest, TheWaitForAPlaceEndsAtItsLimit) {
  policy_.placement_wait = absl::Seconds(2);
  Start();
  PlaceNowhere(PlacementResult::Kind::kNoneReady);
  const auto try_after = [&](absl::Duration waited) {
    now_ = kStart + waited;
    OnWake(Last<action::WakeAfter>().wake);
    PlaceNowhere(PlacementResult::Kind::kNoneReady);
  };
  try_after(policy_.placement_wait - absl::Milliseconds(1));
  EXPECT_EQ(Count<action::Fail>(), 0);
  try_after(policy_.placement_wait);
  EXPECT_EQ(Count<action::Fail>(), 1);
}

TEST_F(RequestMachineTest, TimeInWhichAWorkerWorkedIsNoWait) {
  policy_.placement_wait = absl::Seconds(2);
  policy_.overload_wait = absl::Seconds(2);
  for (const bool local : {false, true}) {
    for (const bool overloaded : {false, true}) {
      SCOPED_TRACE(absl::StrCat("local ", local, " overloaded ", overloaded));
      const auto nowhere = overloaded ? PlacementResult::Kind::kOnlyAvoided : PlacementResult::Kind::kNoneReady;
      const auto failure = overloaded ? Cause::kOverloaded : Cause::kInternal;
      actions_.clear();
      Begin();
      DecodeEnds(1, absl::UnavailableError("gone"));
      PlaceOn("p1", local ? "p1" : "d2");
      Accept(2);
      local ? Decode(2, Started()) : Prefill(2, PrefillStarted());
      now_ += absl::Seconds(5);
      Decode(2, DecodeFailed(failure));
      if (Count<action::Place>() < 3) Wake();
      PlaceNowhere(nowhere);
      EXPECT_EQ(Count<action::Fail>(), 0);
      // Accepted alone is no work: a worker's queue may be what the request waits for.
      Wake();
      PlaceOn("p1", "d2");
      Accept(3);
      now_ += absl::Seconds(5);
      Decode(3, DecodeFailed(failure));
      if (!overloaded) Wake();
      PlaceNowhere(nowhere);
      EXPECT_EQ(Count<action::Fail>(), 1);
    }
  }
}

// A wake-up may come after what it was for is over, whatever the request does by then.
TEST_F(RequestMachineTest, AStaleWakeDoesNothing) {
  Begin();
  DecodeEnds(1, absl::UnavailableError("gone"));
  PlaceNowhere(PlacementResult::Kind::kNoneReady);
  const auto stale = Last<action::WakeAfter>().wake;
  const auto wake_does_nothing = [&] {
    const size_t actions = actions_.size();
    OnWake(stale);
    return actions_.size() == actions;
  };
  Wake();  // the one that was asked for
  EXPECT_EQ(Count<action::Place>(), 3);
  EXPECT_TRUE(wake_does_nothing()) << "while a place is looked for";
  PlaceNowhere(PlacementResult::Kind::kNoneReady);
  EXPECT_TRUE(wake_does_nothing()) << "while the next backoff passes";
  Wake();
  PlaceOn("p1", "d1");
  Accept(2);
  EXPECT_TRUE(wake_does_nothing()) << "while an attempt runs";
  Prefill(2, FirstToken(0, 0));
  Decode(2, Started());
  Decode(2, Tokens(1, {kEnd}));
  EXPECT_TRUE(wake_does_nothing()) << "while the workers' last words are awaited";
  EXPECT_EQ(Count<action::Finish>(), 0);
  Prefill(2, HandedOver());
  Decode(2, DecodeFinished(v1::FINISH_REASON_STOP));
  EXPECT_EQ(Last<action::Finish>().finish.attempts(1).kv_bytes(), 4096u) << "they were waited for";
}

}  // namespace
}  // namespace baton::router
