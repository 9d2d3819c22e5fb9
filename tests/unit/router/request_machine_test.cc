#include "router/request_machine.h"

#include <gtest/gtest.h>

#include <memory>

#include "fake_tokenizer.h"
#include "tests/status_matchers.h"

namespace baton::router {
namespace {

using testing::Fails;

constexpr TokenId kEnd = 26;
constexpr absl::Time kStart = absl::UnixEpoch();

// Tokens 0 to 25 are the letters; then an end token and two halves of "é".
FakeTokenizer Letters() {
  std::vector<std::string> tokens;
  for (char c = 'a'; c <= 'z'; ++c) tokens.emplace_back(1, c);
  tokens.insert(tokens.end(), {"<end>", "\xc3", "\xa9"});
  return FakeTokenizer(std::move(tokens), kEnd + 100);
}

// A request with its machine, and the router and workers around it played by the test.
class RequestMachineTest : public ::testing::Test {
 protected:
  RequestMachineTest() {
    spec_.model = "m";
    spec_.prompt = {1, 2, 3};
    spec_.sampling.set_max_tokens(10);
    spec_.sampling.set_seed(5);
    spec_.sampling.add_stop_token_ids(kEnd);
  }

  // Starts the request and places its first attempt on p1 and d1.
  void Begin() {
    Start();
    PlaceOn("p1", "d1");
  }
  void Start() {
    machine_ = std::make_unique<RequestMachine>(spec_, tokenizer_, policy_, kStart);
    machine_->Start();
    Run();
    ASSERT_EQ(Count<action::Place>(), 1);
  }
  // ... and gets it accepted.
  void BeginAccepted() {
    Begin();
    Accept(1);
  }
  // ... and prefilled: the first token is 'a', the sequence is the decode worker's.
  void BeginDecoding() {
    BeginAccepted();
    Prefill(1, FirstToken(0, 0));
    Decode(1, Started());
    Prefill(1, HandedOver());
  }

  void PlaceOn(const std::string& prefill, const std::string& decode) {
    PlacementResult result;
    result.kind = PlacementResult::Kind::kPlaced;
    result.placement.pair = 77;
    result.placement.local = prefill == decode;
    result.placement.prefill.key = {prefill, 1};
    result.placement.decode.key = {decode, 1};
    machine_->OnPlaced(now_, result);
    Run();
  }
  void PlaceNowhere(PlacementResult::Kind kind) {
    machine_->OnPlaced(now_, {kind, {}, "nowhere"});
    Run();
  }
  void Accept(uint32_t attempt) {
    v1::DecodeEvent event;
    event.mutable_accepted();
    Decode(attempt, event);
  }
  void Decode(uint32_t attempt, const v1::DecodeEvent& event) {
    machine_->OnDecodeEvent(now_, attempt, event);
    Run();
  }
  void Prefill(uint32_t attempt, const v1::PrefillEvent& event) {
    machine_->OnPrefillEvent(now_, attempt, event);
    Run();
  }
  void DecodeEnds(uint32_t attempt, const absl::Status& status) {
    machine_->OnDecodeEnded(now_, attempt, status);
    Run();
  }
  void PrefillEnds(uint32_t attempt, const absl::Status& status) {
    machine_->OnPrefillEnded(now_, attempt, status);
    Run();
  }
  void Wake() {
    const auto wake = Last<action::WakeAfter>();
    now_ += wake.delay;
    machine_->OnWake(now_, wake.wake);
    Run();
  }

  static v1::PrefillEvent FirstToken(uint32_t index, TokenId token) {
    v1::PrefillEvent event;
    event.mutable_first_token()->set_output_index(index);
    event.mutable_first_token()->set_token_id(token);
    return event;
  }
  static v1::PrefillEvent PrefillStarted() {
    v1::PrefillEvent event;
    event.mutable_started();
    return event;
  }
  static v1::PrefillEvent HandedOver() {
    v1::PrefillEvent event;
    event.mutable_handed_over()->set_kv_bytes(4096);
    event.mutable_handed_over()->set_transport("ucx:shm");
    event.mutable_handed_over()->set_cached_prompt_tokens(2);
    return event;
  }
  static v1::DecodeEvent Started() {
    v1::DecodeEvent event;
    event.mutable_started();
    return event;
  }
  static v1::DecodeEvent Tokens(uint32_t index, const std::vector<TokenId>& tokens) {
    v1::DecodeEvent event;
    for (const TokenId token : tokens) {
      v1::TokenEvent& one = *event.mutable_tokens()->add_tokens();
      one.set_output_index(index++);
      one.set_token_id(token);
    }
    return event;
  }
  static v1::DecodeEvent DecodeFinished(v1::FinishReason reason) {
    v1::DecodeEvent event;
    event.mutable_finished()->set_reason(reason);
    return event;
  }
  static v1::DecodeEvent DecodeFailed(v1::AttemptFailure cause) {
    v1::DecodeEvent event;
    event.mutable_failed()->set_cause(cause);
    event.mutable_failed()->set_message("said the decode worker");
    return event;
  }
  static v1::PrefillEvent PrefillFinished(v1::FinishReason reason) {
    v1::PrefillEvent event;
    event.mutable_finished()->set_reason(reason);
    return event;
  }
  static v1::PrefillEvent PrefillFailed(v1::AttemptFailure cause) {
    v1::PrefillEvent event;
    event.mutable_failed()->set_cause(cause);
    event.mutable_failed()->set_message("said the prefill worker");
    return event;
  }

  template <typename T>
  int Count() const {
    int count = 0;
    for (const Action& action : actions_) count += std::holds_alternative<T>(action) ? 1 : 0;
    return count;
  }
  template <typename T>
  T Last() const {
    for (auto it = actions_.rbegin(); it != actions_.rend(); ++it) {
      if (const T* found = std::get_if<T>(&*it)) return *found;
    }
    ADD_FAILURE() << "no such action";
    return T{};
  }
  // What the client has been sent; checks that it is gapless.
  std::string Text() const {
    std::string text;
    uint32_t next = 0;
    for (const Action& action : actions_) {
      const auto* send = std::get_if<action::Send>(&action);
      if (send == nullptr) continue;
      EXPECT_EQ(send->chunk.output_index(), next);
      next += send->chunk.token_ids_size();
      text += send->chunk.text();
    }
    return text;
  }
  std::vector<TokenId> SentTokens() const {
    std::vector<TokenId> tokens;
    for (const Action& action : actions_) {
      const auto* send = std::get_if<action::Send>(&action);
      if (send != nullptr) tokens.insert(tokens.end(), send->chunk.token_ids().begin(), send->chunk.token_ids().end());
    }
    return tokens;
  }
  absl::Status Failure() const { return Last<action::Fail>().status; }

  const FakeTokenizer tokenizer_ = Letters();
  RequestSpec spec_;
  RetryPolicy policy_;
  absl::Time now_ = kStart;
  std::unique_ptr<RequestMachine> machine_;
  std::vector<Action> actions_;

 private:
  void Run() {
    for (Action& action : machine_->TakeActions()) actions_.push_back(std::move(action));
  }
};

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
  Decode(1, Started());
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
      {"closing",
       [&] {
         BeginDecoding();
         Decode(1, Tokens(1, {kEnd}));
       },
       1, 0},
  };
  for (const bool deadline : {false, true}) {
    for (const Case& one : cases) {
      SCOPED_TRACE(one.name);
      actions_.clear();
      one.begin();
      const int decode_before = Count<action::CancelDecode>();
      deadline ? machine_->OnDeadline(now_) : machine_->OnCancelled(absl::CancelledError("by the test"));
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
      machine_->OnCancelled(absl::CancelledError());
      machine_->OnDeadline(now_);
      PlaceOn("p1", "d1");
      Decode(1, Tokens(1, {1}));
      PrefillEnds(1, absl::CancelledError());
      DecodeEnds(1, absl::CancelledError());
      EXPECT_EQ(actions_.size(), actions);
    }
  }
}

TEST_F(RequestMachineTest, AWorkersDeadlineIsTheRequests) {
  BeginDecoding();
  DecodeEnds(1, absl::DeadlineExceededError("late"));
  EXPECT_TRUE(Fails(Failure(), absl::StatusCode::kDeadlineExceeded, "1 output tokens sent"));
}

}  // namespace
}  // namespace baton::router
