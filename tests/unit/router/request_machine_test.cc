// SPDX-License-Identifier: Apache-2.0
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

TEST_F(RequestMachineTest, SurplusTokensAreDroppedUnread) {
  spec_.sampling.set_max_tokens(3);
  BeginAccepted();
  Decode(1, Started());
  Decode(1, Tokens(3, {5}));
  Decode(1, Tokens(3, {6}));
  EXPECT_EQ(Count<action::Disagreement>(), 0);
  EXPECT_EQ(Count<action::Fail>(), 0);
}

TEST_F(RequestMachineTest, ATokenThatNeverComesEndsTheAttempt) {
  BeginAccepted();
  Decode(1, Started());
  Decode(1, Tokens(1, {1}));
  Prefill(1, HandedOver());
  Decode(1, DecodeFinished(v1::FINISH_REASON_LENGTH));
  EXPECT_EQ(Last<action::AttemptEnded>().outcome.cause, Cause::kInternal);
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

TEST_F(RequestMachineTest, ADecodeCallThatEndsWellBeforeItAcceptedIsNotWaitedFor) {
  Begin();
  Decode(1, DecodeFinished(v1::FINISH_REASON_STOP));
  EXPECT_EQ(Last<action::AttemptEnded>().outcome.cause, Cause::kInternal) << "no prefill call would ever follow";
  EXPECT_EQ(Count<action::CancelPrefill>(), 0) << "none was opened";
  EXPECT_EQ(Count<action::Place>(), 2);
}

TEST_F(RequestMachineTest, APrefillEventBeforeThePrefillCallIsNoPartOfTheAttempt) {
  Begin();
  Prefill(1, FirstToken(0, 7));
  Accept(1);
  Prefill(1, FirstToken(0, 0));
  EXPECT_EQ(Text(), "a");
}

}  // namespace
}  // namespace baton::router
