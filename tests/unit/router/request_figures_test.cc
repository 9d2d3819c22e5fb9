// SPDX-License-Identifier: Apache-2.0
// The figures of an answer: usage, timings, and those of each attempt.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "request_machine_fixture.h"

namespace baton::router {
namespace {

v1::PrefillEvent QueuedFor(double seconds) {
  v1::PrefillEvent event;
  event.mutable_started()->set_queue_seconds(seconds);
  return event;
}

v1::PrefillEvent Prefilled(double seconds, uint32_t cached_tokens) {
  v1::PrefillEvent event;
  event.mutable_handed_over()->set_prefill_seconds(seconds);
  event.mutable_handed_over()->set_cached_prompt_tokens(cached_tokens);
  return event;
}

v1::PrefillEvent Transferred(v1::PrefillEvent event, double seconds, uint64_t bytes, const std::string& transport) {
  event.mutable_handed_over()->set_transfer_seconds(seconds);
  event.mutable_handed_over()->set_transfer_exposed_seconds(seconds / 2);
  event.mutable_handed_over()->set_kv_bytes(bytes);
  event.mutable_handed_over()->set_transport(transport);
  return event;
}

v1::DecodeEvent StartedWithCached(uint32_t tokens) {
  v1::DecodeEvent event;
  event.mutable_started()->set_cached_prompt_tokens(tokens);
  return event;
}

TEST_F(RequestMachineTest, TimesAreThoseOfAllAttemptsAndCachedTokensThoseOfTheFirst) {
  Begin();
  now_ += absl::Seconds(2);
  Accept(1);
  Prefill(1, QueuedFor(0.5));
  Prefill(1, FirstToken(0, 0));
  Prefill(1, Transferred(Prefilled(1, 2), 0.25, 4096, "ucx:tcp"));
  Decode(1, StartedWithCached(1));
  DecodeEnds(1, absl::UnavailableError("gone"));
  PlaceOn("p2", "d2");
  now_ += absl::Seconds(1);
  Accept(2);
  Prefill(2, QueuedFor(0.25));
  Prefill(2, FirstToken(1, 1));
  Prefill(2, Transferred(Prefilled(2, 3), 0.5, 8192, "ucx:shm"));
  Decode(2, StartedWithCached(3));
  Decode(2, Tokens(2, {kEnd}));
  Decode(2, DecodeFinished(v1::FINISH_REASON_STOP));

  const v1::Finish finish = Last<action::Finish>().finish;
  EXPECT_EQ(finish.usage().cached_prompt_tokens(), 2u);
  EXPECT_EQ(finish.usage().decode_cached_prompt_tokens(), 1u);
  EXPECT_DOUBLE_EQ(finish.timings().queue_seconds(), 2 + 0.5 + 0.25) << "in the router, then at each prefill worker";
  EXPECT_DOUBLE_EQ(finish.timings().prefill_seconds(), 1 + 2);
  EXPECT_DOUBLE_EQ(finish.timings().transfer_seconds(), 0.25 + 0.5);
  EXPECT_DOUBLE_EQ(finish.timings().transfer_exposed_seconds(), 0.125 + 0.25);
  ASSERT_EQ(finish.attempts_size(), 2);
  EXPECT_EQ(finish.attempts(0).attempt(), 1u);
  EXPECT_EQ(finish.attempts(0).ended_by(), "decode_lost");
  EXPECT_EQ(finish.attempts(0).kv_bytes(), 4096u);
  EXPECT_EQ(finish.attempts(0).transport(), "ucx:tcp");
  EXPECT_EQ(finish.attempts(1).attempt(), 2u);
  EXPECT_EQ(finish.attempts(1).ended_by(), "finished");
  EXPECT_EQ(finish.attempts(1).kv_bytes(), 8192u);
  EXPECT_EQ(finish.attempts(1).transport(), "ucx:shm");
}

TEST_F(RequestMachineTest, AWorkerThatPrefillsItselfReportsItsOwnTimes) {
  Start();
  PlaceOn("d1", "d1");
  now_ += absl::Seconds(2);
  Accept(1);
  v1::DecodeEvent started = StartedWithCached(2);
  started.mutable_started()->set_queue_seconds(0.5);
  started.mutable_started()->set_prefill_seconds(0.25);
  Decode(1, started);
  Decode(1, Tokens(0, {kEnd}));
  Decode(1, DecodeFinished(v1::FINISH_REASON_STOP));
  const v1::Finish finish = Last<action::Finish>().finish;
  EXPECT_DOUBLE_EQ(finish.timings().queue_seconds(), 2 + 0.5);
  EXPECT_DOUBLE_EQ(finish.timings().prefill_seconds(), 0.25);
  EXPECT_EQ(finish.usage().cached_prompt_tokens(), 2u);
  EXPECT_EQ(finish.usage().decode_cached_prompt_tokens(), 0u) << "nothing was handed over";
}

// After a retry, output of the attempt before belongs to what a worker prefills and may have cached.
TEST_F(RequestMachineTest, NoMoreTokensOfThePromptAreCachedThanItHas) {
  BeginAccepted();
  Prefill(1, FirstToken(0, 0));
  Prefill(1, Prefilled(1, 7));
  Decode(1, StartedWithCached(8));
  Decode(1, Tokens(1, {kEnd}));
  Decode(1, DecodeFinished(v1::FINISH_REASON_STOP));
  const v1::Usage usage = Last<action::Finish>().finish.usage();
  EXPECT_EQ(usage.prompt_tokens(), 3u);
  EXPECT_EQ(usage.cached_prompt_tokens(), 3u);
  EXPECT_EQ(usage.decode_cached_prompt_tokens(), 3u);
}

TEST_F(RequestMachineTest, AWorkerThatEndsTheOutputNamesTheStopTokenIfThereIsOne) {
  for (const bool has_stop_token : {false, true}) {
    actions_.clear();
    BeginDecoding();
    Decode(1, Tokens(1, {3}));
    v1::DecodeEvent finished = DecodeFinished(v1::FINISH_REASON_STOP);
    if (has_stop_token) finished.mutable_finished()->set_stop_token_id(3);
    Decode(1, finished);
    const v1::Finish finish = Last<action::Finish>().finish;
    EXPECT_EQ(finish.has_stop_token_id(), has_stop_token);
    EXPECT_EQ(finish.stop_token_id(), has_stop_token ? 3 : 0);
  }
}

// The first token comes after 2 s; the second 30 ms later.
TEST_F(RequestMachineTest, TheAnswerSaysWhichObjectivesItMet) {
  struct Case {
    Objectives objectives;
    bool ttft_met;
    bool tpot_met;
  };
  const Case cases[] = {{{absl::Seconds(2), absl::Milliseconds(30)}, true, true},
                        {{absl::Milliseconds(1999), absl::Milliseconds(30)}, false, true},
                        {{absl::Seconds(2), absl::Milliseconds(29)}, true, false},
                        {{absl::ZeroDuration(), absl::Milliseconds(29)}, true, false}};
  for (const Case& c : cases) {
    actions_.clear();
    now_ = kStart;
    spec_.objectives = c.objectives;
    BeginAccepted();
    now_ += absl::Seconds(2);
    Prefill(1, FirstToken(0, 0));
    Decode(1, Started());
    Prefill(1, HandedOver());
    now_ += absl::Milliseconds(30);
    Decode(1, Tokens(1, {kEnd}));
    Decode(1, DecodeFinished(v1::FINISH_REASON_STOP));
    const v1::Finish finish = Last<action::Finish>().finish;
    EXPECT_EQ(finish.slo().ttft_met(), c.ttft_met);
    EXPECT_EQ(finish.slo().tpot_met(), c.tpot_met);
    EXPECT_EQ(finish.slo().tpot_slo_seconds(), absl::ToDoubleSeconds(c.objectives.tpot));
  }
  spec_.objectives = {};
  actions_.clear();
  BeginDecoding();
  Decode(1, Tokens(1, {kEnd}));
  Decode(1, DecodeFinished(v1::FINISH_REASON_STOP));
  EXPECT_FALSE(Last<action::Finish>().finish.has_slo());
}

}  // namespace
}  // namespace baton::router
