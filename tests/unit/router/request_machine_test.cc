#include "router/request_machine.h"

#include <gtest/gtest.h>

#include <memory>

#include "request_machine_fixture.h"
#include "tests/status_matchers.h"

namespace baton::router {
namespace {

using testing::Fails;

// ------------------------------------------------------------------------------------------------------- the good path

TEST_F(RequestMachineTest, PrefillIsSubmittedOnlyAfterTheDecodeWorkerAccepted) {
  Begin();
  EXPECT_EQ(Count<action::OpenDecode>(), 1);
  EXPECT_EQ(Count<action::SubmitPrefill>(), 0);
  Accept(1);
  EXPECT_EQ(Count<action::SubmitPrefill>(), 1);
  Accept(1);
  EXPECT_EQ(Count<action::SubmitPrefill>(), 1) << "once";
}

TEST_F(RequestMachineTest, ServesAPromptFromFirstTokenToFinish) {
  BeginAccepted();
  now_ += absl::Seconds(1);
  Prefill(1, FirstToken(0, 0));
  EXPECT_EQ(Text(), "a") << "the first token does not wait for the transfer";
  Prefill(1, HandedOver());
  v1::DecodeEvent started = Started();
  started.mutable_started()->set_cached_prompt_tokens(1);
  Decode(1, started);
  now_ += absl::Seconds(1);
  Decode(1, Tokens(1, {1, 2}));
  now_ += absl::Seconds(1);
  Decode(1, Tokens(3, {kEnd}));
  EXPECT_EQ(Count<action::Finish>(), 0) << "the worker's own word is still to come";
  Decode(1, DecodeFinished(v1::FINISH_REASON_STOP));

  EXPECT_EQ(Text(), "abc");
  EXPECT_EQ(SentTokens(), (std::vector<TokenId>{0, 1, 2, kEnd})) << "the end token counts, without text";
  const v1::Finish finish = Last<action::Finish>().finish;
  EXPECT_EQ(finish.reason(), v1::FINISH_REASON_STOP);
  EXPECT_EQ(finish.stop_token_id(), kEnd);
  EXPECT_EQ(finish.usage().prompt_tokens(), 3u);
  EXPECT_EQ(finish.usage().cached_prompt_tokens(), 2u);
  EXPECT_EQ(finish.usage().decode_cached_prompt_tokens(), 1u);
  EXPECT_EQ(finish.usage().completion_tokens(), 4u);
  EXPECT_EQ(finish.seed(), 5u);
  EXPECT_DOUBLE_EQ(finish.timings().ttft_seconds(), 1);
  EXPECT_DOUBLE_EQ(finish.timings().tpot_seconds(), 2.0 / 3);
  EXPECT_DOUBLE_EQ(finish.timings().total_seconds(), 3);
  ASSERT_EQ(finish.attempts_size(), 1);
  EXPECT_EQ(finish.attempts(0).prefill_worker(), "p1");
  EXPECT_EQ(finish.attempts(0).decode_worker(), "d1");
  EXPECT_EQ(finish.attempts(0).kv_bytes(), 4096u);
  EXPECT_EQ(finish.attempts(0).ended_by(), "finished");
  EXPECT_EQ(Count<action::CancelDecode>() + Count<action::CancelPrefill>(), 0) << "both calls ended by themselves";
}

TEST_F(RequestMachineTest, MaxTokensEndTheOutput) {
  spec_.sampling.set_max_tokens(3);
  BeginDecoding();
  Decode(1, Tokens(1, {1, 2, 3}));
  Decode(1, DecodeFinished(v1::FINISH_REASON_LENGTH));
  EXPECT_EQ(Text(), "abc") << "surplus is neither sent nor billed";
  EXPECT_EQ(Last<action::Finish>().finish.reason(), v1::FINISH_REASON_LENGTH);
  EXPECT_EQ(Last<action::Finish>().finish.usage().completion_tokens(), 3u);
}

TEST_F(RequestMachineTest, TheFirstTokenMayBeTheLast) {
  spec_.sampling.set_max_tokens(1);
  BeginAccepted();
  Prefill(1, FirstToken(0, 0));
  v1::PrefillEvent finished = PrefillFinished(v1::FINISH_REASON_LENGTH);
  finished.mutable_finished()->set_prefill_seconds(0.25);
  finished.mutable_finished()->set_cached_prompt_tokens(1);
  Prefill(1, finished);
  EXPECT_EQ(Count<action::CancelDecode>(), 1) << "nothing will be handed over";
  const v1::Finish finish = Last<action::Finish>().finish;
  EXPECT_EQ(finish.usage().completion_tokens(), 1u);
  EXPECT_EQ(finish.usage().cached_prompt_tokens(), 1u);
  EXPECT_DOUBLE_EQ(finish.timings().prefill_seconds(), 0.25);
}

TEST_F(RequestMachineTest, ADecodeWorkerThatPrefillsItselfNeedsNoOther) {
  Begin();
  machine_ = std::make_unique<RequestMachine>(spec_, tokenizer_, policy_, kStart);
  machine_->Start();
  PlaceOn("d1", "d1");
  Accept(1);
  EXPECT_EQ(Count<action::SubmitPrefill>(), 0);
  v1::DecodeEvent started = Started();
  started.mutable_started()->set_cached_prompt_tokens(1);
  started.mutable_started()->set_prefill_seconds(0.5);
  Decode(1, started);
  Decode(1, Tokens(0, {0, kEnd}));
  Decode(1, DecodeFinished(v1::FINISH_REASON_STOP));
  const v1::Finish finish = Last<action::Finish>().finish;
  EXPECT_EQ(finish.attempts(0).prefill_worker(), "");
  EXPECT_EQ(finish.usage().cached_prompt_tokens(), 1u);
  EXPECT_DOUBLE_EQ(finish.timings().prefill_seconds(), 0.5);
}

TEST_F(RequestMachineTest, AFullContextEndsTheOutputByTheWorkersWord) {
  BeginDecoding();
  Decode(1, Tokens(1, {1}));
  Decode(1, DecodeFinished(v1::FINISH_REASON_LENGTH));
  EXPECT_EQ(Last<action::Finish>().finish.reason(), v1::FINISH_REASON_LENGTH);
  EXPECT_EQ(Last<action::Finish>().finish.usage().completion_tokens(), 2u);
}

TEST_F(RequestMachineTest, ReportsThatNeverComeDoNotHoldTheAnswerForEver) {
  BeginAccepted();
  Prefill(1, FirstToken(0, 0));
  Decode(1, Started());
  Decode(1, Tokens(1, {kEnd}));
  EXPECT_EQ(Count<action::Finish>(), 0);
  Wake();
  EXPECT_EQ(Count<action::Finish>(), 1);
  EXPECT_EQ(Count<action::CancelDecode>(), 1);
  EXPECT_EQ(Count<action::CancelPrefill>(), 1);
}

TEST_F(RequestMachineTest, AWorkerLostAfterTheLastTokenLosesNothing) {
  BeginDecoding();
  Decode(1, Tokens(1, {kEnd}));
  DecodeEnds(1, absl::UnavailableError("gone"));
  EXPECT_EQ(Count<action::Finish>(), 1);
  EXPECT_EQ(Count<action::OpenDecode>(), 1) << "no second attempt";
}

// -------------------------------------------------------------------------------------------------- order of tokens

TEST_F(RequestMachineTest, TokensLeaveInOrderWhateverStreamIsFaster) {
  BeginAccepted();
  Decode(1, Started());
  Decode(1, Tokens(1, {1, 2}));
  EXPECT_EQ(Text(), "") << "the first token has not come yet";
  Prefill(1, FirstToken(0, 0));
  EXPECT_EQ(Text(), "abc");
}

TEST_F(RequestMachineTest, FinishedWaitsForTheTokenThatTheOtherStreamOwes) {
  BeginAccepted();
  Decode(1, Started());
  Decode(1, Tokens(1, {1, kEnd}));
  Decode(1, DecodeFinished(v1::FINISH_REASON_STOP));
  EXPECT_EQ(Count<action::Finish>(), 0);
  Prefill(1, FirstToken(0, 0));
  Prefill(1, HandedOver());
  EXPECT_EQ(Text(), "ab");
  EXPECT_EQ(Count<action::Finish>(), 1);
}

TEST_F(RequestMachineTest, DuplicatesAreDropped) {
  BeginDecoding();
  Decode(1, Tokens(0, {0, 1}));
  Decode(1, Tokens(1, {1, 2}));
  EXPECT_EQ(Text(), "abc");
  EXPECT_EQ(Count<action::Disagreement>(), 0);
}

TEST_F(RequestMachineTest, ADisagreementIsAnErrorThatIsCounted) {
  BeginDecoding();
  Decode(1, Tokens(0, {5}));
  const auto disagreement = Last<action::Disagreement>();
  EXPECT_EQ(disagreement.output_index, 0u);
  EXPECT_EQ(disagreement.had, 0);
  EXPECT_EQ(disagreement.got, 5);
  EXPECT_TRUE(Fails(Failure(), absl::StatusCode::kInternal, "output token 0"));
  EXPECT_EQ(Count<action::CancelDecode>(), 1);
}

TEST_F(RequestMachineTest, ADisagreementAboutATokenNotYetSentIsOneToo) {
  BeginAccepted();
  Decode(1, Tokens(1, {1}));
  Decode(1, Tokens(1, {2}));
  EXPECT_EQ(Count<action::Disagreement>(), 1);
  EXPECT_TRUE(Fails(Failure(), absl::StatusCode::kInternal, ""));
}

TEST_F(RequestMachineTest, ATokenThatNeverComesEndsTheAttempt) {
  BeginAccepted();
  Decode(1, Started());
  Decode(1, Tokens(1, {1}));
  Prefill(1, HandedOver());
  Decode(1, DecodeFinished(v1::FINISH_REASON_LENGTH));
  EXPECT_EQ(Last<action::AttemptEnded>().end, AttemptEnd::kInternal);
  EXPECT_EQ(Count<action::Place>(), 2) << "and another one is tried";
}

TEST_F(RequestMachineTest, LogprobsCarryTheTokensBytes) {
  spec_.sampling.set_logprobs(1);
  BeginAccepted();
  v1::PrefillEvent event = FirstToken(0, 0);
  v1::TokenLogprobs& logprobs = *event.mutable_first_token()->mutable_logprobs();
  logprobs.mutable_chosen()->set_token_id(0);
  logprobs.mutable_chosen()->set_logprob(-0.5f);
  logprobs.add_top()->set_token_id(27);
  Prefill(1, event);
  const v1::Chunk chunk = Last<action::Send>().chunk;
  ASSERT_EQ(chunk.logprobs_size(), 1);
  EXPECT_EQ(chunk.logprobs(0).chosen().token(), "a");
  EXPECT_EQ(chunk.logprobs(0).chosen().logprob(), -0.5f);
  EXPECT_EQ(chunk.logprobs(0).top(0).token(), "\xc3");
}

// ---------------------------------------------------------------------------------------------------- where text ends

TEST_F(RequestMachineTest, AStopStringCancelsDecodeAndBillsUpToItsLastToken) {
  spec_.stop = {"cd"};
  BeginDecoding();
  Decode(1, Tokens(1, {1, 2}));
  EXPECT_EQ(Text(), "ab") << "c may become cd";
  Decode(1, Tokens(3, {3, 4, 5}));
  EXPECT_EQ(Text(), "ab");
  EXPECT_EQ(SentTokens(), (std::vector<TokenId>{0, 1, 2, 3}));
  EXPECT_EQ(Count<action::CancelDecode>(), 1);
  const v1::Finish finish = Last<action::Finish>().finish;
  EXPECT_EQ(finish.reason(), v1::FINISH_REASON_STOP);
  EXPECT_EQ(finish.stop_string(), "cd");
  EXPECT_EQ(finish.usage().completion_tokens(), 4u);
}

TEST_F(RequestMachineTest, AStopStringInTheFirstTokenCancelsBothWorkers) {
  spec_.stop = {"a"};
  BeginAccepted();
  Prefill(1, FirstToken(0, 0));
  EXPECT_EQ(Text(), "");
  EXPECT_EQ(Count<action::CancelDecode>(), 1);
  EXPECT_EQ(Count<action::CancelPrefill>(), 1);
  EXPECT_EQ(Count<action::Finish>(), 1);
}

TEST_F(RequestMachineTest, AStopStringWaitsForTheFiguresOfTheTransfer) {
  spec_.stop = {"b"};
  BeginAccepted();
  Prefill(1, FirstToken(0, 0));
  Decode(1, Started());
  Decode(1, Tokens(1, {1}));
  EXPECT_EQ(Count<action::Finish>(), 0);
  EXPECT_EQ(Count<action::CancelPrefill>(), 0);
  Prefill(1, HandedOver());
  EXPECT_EQ(Last<action::Finish>().finish.attempts(0).kv_bytes(), 4096u);
}

TEST_F(RequestMachineTest, HeldTextIsSentWhenTheOutputEndsOtherwise) {
  spec_.stop = {"cd"};
  BeginDecoding();
  Decode(1, Tokens(1, {2, kEnd}));
  EXPECT_EQ(Text(), "ac");
}

TEST_F(RequestMachineTest, AHalfCodePointIsHeldUntilItsOtherHalf) {
  BeginDecoding();
  Decode(1, Tokens(1, {27}));
  EXPECT_EQ(Text(), "a");
  Decode(1, Tokens(2, {28}));
  EXPECT_EQ(Text(), "aé");
}

TEST_F(RequestMachineTest, MinTokensComeBeforeStopTokensAndStopStrings) {
  spec_.sampling.set_min_tokens(3);
  spec_.stop = {"b"};
  BeginDecoding();
  Decode(1, Tokens(1, {1, kEnd, 0}));
  EXPECT_EQ(Count<action::CancelDecode>(), 0);
  EXPECT_EQ(SentTokens().size(), 4u);
  Decode(1, Tokens(4, {1}));
  EXPECT_EQ(Last<action::Finish>().finish.stop_string(), "b");
}

// ------------------------------------------------------------------------------------------------------- second tries

TEST_F(RequestMachineTest, ADecodeWorkersDeathGoesOnFromTheOutputSoFar) {
  BeginDecoding();
  Decode(1, Tokens(1, {1}));
  DecodeEnds(1, absl::UnavailableError("connection reset"));
  EXPECT_EQ(Last<action::AttemptEnded>().end, AttemptEnd::kDecodeLost);
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

TEST_F(RequestMachineTest, AnAttemptIsCancelledBeforeTheNextAndIgnoredAfter) {
  BeginAccepted();
  PrefillEnds(1, absl::UnavailableError("gone"));
  EXPECT_EQ(Last<action::AttemptEnded>().end, AttemptEnd::kPrefillLost);
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

TEST_F(RequestMachineTest, ThePrefillWorkersDeathWithAnUnknownFirstTokenIsALoss) {
  BeginAccepted();
  Decode(1, Started());
  Decode(1, Tokens(1, {1}));
  PrefillEnds(1, absl::UnavailableError("gone"));
  EXPECT_EQ(Last<action::AttemptEnded>().end, AttemptEnd::kPrefillLost);
  EXPECT_EQ(Text(), "");
}

TEST_F(RequestMachineTest, PreemptionOpensTheNextAttemptAndIsNotCountedAsAFailure) {
  policy_.max_attempts = 1;
  BeginDecoding();
  for (uint32_t attempt = 1; attempt < 6; ++attempt) {
    Decode(attempt, Tokens(attempt, {0}));
    Decode(attempt, DecodeFailed(v1::ATTEMPT_FAILURE_PREEMPTED));
    EXPECT_EQ(Last<action::AttemptEnded>().end, AttemptEnd::kPreempted);
    PlaceOn("p1", "d1");
    Accept(attempt + 1);
  }
  EXPECT_EQ(Count<action::Fail>(), 0);
  EXPECT_TRUE(Last<action::Place>().avoid.empty());
}

TEST_F(RequestMachineTest, PreemptionWithoutProgressBacksOff) {
  BeginAccepted();
  Decode(1, DecodeFailed(v1::ATTEMPT_FAILURE_PREEMPTED));
  EXPECT_EQ(Count<action::Place>(), 2) << "at once the first time";
  PlaceOn("p1", "d1");
  Decode(2, DecodeFailed(v1::ATTEMPT_FAILURE_PREEMPTED));
  EXPECT_EQ(Count<action::Place>(), 2);
  Wake();
  EXPECT_EQ(Count<action::Place>(), 3);
}

TEST_F(RequestMachineTest, ALostPeerMarksThePairAndAvoidsTheOtherWorker) {
  BeginAccepted();
  Prefill(1, PrefillFailed(v1::ATTEMPT_FAILURE_PEER_LOST));
  EXPECT_EQ(Last<action::AttemptEnded>().end, AttemptEnd::kPeerLost);
  EXPECT_EQ(Last<action::AttemptEnded>().broken_pair, 77u);
  EXPECT_EQ(Last<action::Place>().avoid, (std::vector<WorkerKey>{{"d1", 1}}));
}

TEST_F(RequestMachineTest, TheCausesOfWorkersAreKept) {
  for (const auto& [failure, end] : {std::pair{v1::ATTEMPT_FAILURE_DRAINING, AttemptEnd::kDraining},
                                     std::pair{v1::ATTEMPT_FAILURE_REVOKED, AttemptEnd::kRevoked},
                                     std::pair{v1::ATTEMPT_FAILURE_INTERNAL, AttemptEnd::kInternal}}) {
    actions_.clear();
    BeginAccepted();
    Decode(1, DecodeFailed(failure));
    EXPECT_EQ(Last<action::AttemptEnded>().end, end);
    EXPECT_EQ(Last<action::AttemptEnded>().detail, "said the decode worker");
    EXPECT_EQ(Count<action::Place>(), 2);
  }
}

TEST_F(RequestMachineTest, ARequestThatCanNeverRunFailsAtOnce) {
  BeginAccepted();
  Prefill(1, PrefillFailed(v1::ATTEMPT_FAILURE_INVALID));
  EXPECT_TRUE(Fails(Failure(), absl::StatusCode::kInvalidArgument, "said the prefill worker"));
  EXPECT_EQ(Count<action::CancelDecode>(), 1);
}

TEST_F(RequestMachineTest, ACallThatIsNotTakenIsTriedElsewhere) {
  Begin();
  DecodeEnds(1, absl::FailedPreconditionError("protocol 2"));
  EXPECT_EQ(Last<action::AttemptEnded>().end, AttemptEnd::kRefused);
  EXPECT_EQ(Last<action::Place>().avoid, (std::vector<WorkerKey>{{"d1", 1}}));
}

TEST_F(RequestMachineTest, ACallThatEndsWithoutATerminalEventIsALoss) {
  BeginDecoding();
  DecodeEnds(1, absl::OkStatus());
  EXPECT_EQ(Last<action::AttemptEnded>().end, AttemptEnd::kDecodeLost);
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
  EXPECT_TRUE(Fails(Failure(), absl::StatusCode::kUnavailable, "3 attempts failed, the last one by decode_lost"));
  EXPECT_TRUE(Fails(Failure(), absl::StatusCode::kUnavailable, "third"));
}

// ---------------------------------------------------------------------------------------------- nowhere to be placed

TEST_F(RequestMachineTest, OverloadLooksForAnotherPairThenWaitsThenGivesAHint) {
  policy_.overload_wait = absl::Milliseconds(200);
  BeginAccepted();
  Prefill(1, PrefillFailed(v1::ATTEMPT_FAILURE_OVERLOADED));
  EXPECT_EQ(Last<action::Place>().avoid, (std::vector<WorkerKey>{{"p1", 1}}));
  PlaceNowhere(PlacementResult::Kind::kOnlyAvoided);
  uint32_t attempt = 1;
  while (Count<action::Fail>() == 0 && attempt < 20) {
    Wake();
    EXPECT_TRUE(Last<action::Place>().avoid.empty()) << "after a wait everyone is asked again";
    PlaceOn("p1", "d1");
    Accept(++attempt);
    Prefill(attempt, PrefillFailed(v1::ATTEMPT_FAILURE_OVERLOADED));
    PlaceNowhere(PlacementResult::Kind::kOnlyAvoided);
  }
  EXPECT_TRUE(Fails(Failure(), absl::StatusCode::kResourceExhausted, "retry after"));
  EXPECT_GT(Last<action::Fail>().retry_after, absl::ZeroDuration());
  EXPECT_GE(now_ - kStart, policy_.overload_wait);
}

TEST_F(RequestMachineTest, TheOneThatIsFullIsAvoided) {
  BeginAccepted();
  Prefill(1, PrefillFailed(v1::ATTEMPT_FAILURE_PEER_OVERLOADED));
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

TEST_F(RequestMachineTest, TimeInWhichAWorkerWorkedIsNoWait) {
  policy_.placement_wait = absl::Seconds(2);
  policy_.overload_wait = absl::Seconds(2);
  for (const bool local : {false, true}) {
    for (const bool overloaded : {false, true}) {
      SCOPED_TRACE(absl::StrCat("local ", local, " overloaded ", overloaded));
      const auto nowhere = overloaded ? PlacementResult::Kind::kOnlyAvoided : PlacementResult::Kind::kNoneReady;
      const auto failure = overloaded ? v1::ATTEMPT_FAILURE_OVERLOADED : v1::ATTEMPT_FAILURE_INTERNAL;
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

TEST_F(RequestMachineTest, AStaleWakeDoesNothing) {
  BeginAccepted();
  machine_->OnWake(now_, 0);
  machine_->OnWake(now_, 99);
  EXPECT_TRUE(machine_->TakeActions().empty());
}

// ----------------------------------------------------------------------------------------------- cancel and deadline

TEST_F(RequestMachineTest, CancelReleasesBothWorkersInEveryState) {
  struct Case {
    const char* name;
    std::function<void()> begin;
    int decode;  // cancelled calls
    int prefill;
  };
  const std::vector<Case> cases = {
      {"placing",
       [&] {
         machine_ = std::make_unique<RequestMachine>(spec_, tokenizer_, policy_, kStart);
         machine_->Start();
       },
       0, 0},
      {"opened", [&] { Begin(); }, 1, 0},
      {"accepted", [&] { BeginAccepted(); }, 1, 1},
      {"handed over", [&] { BeginDecoding(); }, 1, 0},
      {"waiting",
       [&] {
         Begin();
         DecodeEnds(1, absl::UnavailableError(""));
         PlaceNowhere(PlacementResult::Kind::kNoneReady);
       },
       0, 0},
  };
  for (const bool deadline : {false, true}) {
    for (const Case& one : cases) {
      SCOPED_TRACE(one.name);
      actions_.clear();
      one.begin();
      const int decode_before = Count<action::CancelDecode>();
      deadline ? machine_->OnDeadline(now_) : machine_->OnCancelled(now_, absl::CancelledError("by the test"));
      for (Action& action : machine_->TakeActions()) actions_.push_back(std::move(action));
      EXPECT_EQ(Count<action::CancelDecode>() - decode_before, one.decode);
      EXPECT_EQ(Count<action::CancelPrefill>(), one.prefill);
      EXPECT_TRUE(machine_->done());
      if (!deadline) {
        EXPECT_EQ(Failure().message(), "by the test");
      }
      EXPECT_EQ(Failure().code(), deadline ? absl::StatusCode::kDeadlineExceeded : absl::StatusCode::kCancelled);
      // Whatever comes later is ignored.
      const size_t actions = actions_.size();
      machine_->OnCancelled(now_, absl::CancelledError());
      machine_->OnDeadline(now_);
      PlaceOn("p1", "d1");
      Decode(1, Tokens(1, {1}));
      PrefillEnds(1, absl::CancelledError());
      DecodeEnds(1, absl::CancelledError());
      EXPECT_EQ(actions_.size(), actions);
    }
  }
}

TEST_F(RequestMachineTest, ACompleteAnswerDoesNotFailAnyMore) {
  for (const bool deadline : {false, true}) {
    actions_.clear();
    BeginDecoding();
    Decode(1, Tokens(1, {kEnd}));  // the workers' figures are awaited
    deadline ? machine_->OnDeadline(now_) : machine_->OnCancelled(now_, absl::CancelledError("the router stops"));
    for (Action& action : machine_->TakeActions()) actions_.push_back(std::move(action));
    EXPECT_TRUE(machine_->done());
    EXPECT_EQ(Count<action::CancelDecode>(), 1);
    EXPECT_EQ(Count<action::Fail>(), 0);
    EXPECT_EQ(Last<action::Finish>().finish.usage().completion_tokens(), 2U);
  }
}

TEST_F(RequestMachineTest, AWorkersDeadlineIsTheRequests) {
  BeginDecoding();
  DecodeEnds(1, absl::DeadlineExceededError("late"));
  EXPECT_TRUE(Fails(Failure(), absl::StatusCode::kDeadlineExceeded, "1 output tokens sent"));
}

}  // namespace
}  // namespace baton::router
