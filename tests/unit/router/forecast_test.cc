// SPDX-License-Identifier: Apache-2.0
#include "router/forecast.h"

#include <gtest/gtest.h>

namespace baton::router {
namespace {

// Computes 1000 tokens/s. A step takes 10 ms and 1 ms for each sequence; sequences run for 2 s.
WorkerView WorkerWithCost() {
  WorkerView worker;
  worker.prefill_tokens_per_second = 1000;
  worker.max_sequences = 100;
  worker.pages_total = worker.pages_free = 1001;
  worker.page_tokens = 16;
  worker.max_context_tokens = 4096;
  worker.sequence_seconds = 2;
  worker.cost = {.step = 0.010, .prompt_token = 0.001, .decode_row = 0.001};
  return worker;
}
PairView PairWithCost() { return {0, false, WorkerWithCost(), WorkerWithCost(), {}}; }

constexpr AssumedSpeed kAssumed{.prefill_tokens_per_second = 1000, .is_measured = true};

// A prompt that takes 0.1 s, and objectives of 1 s and of 20 ms a token.
PlacementNeed Need() { return {.prompt_tokens = 100, .total_tokens = 200, .ttft_slo = 1, .tpot_slo = 0.020}; }
PlacementNeed BatchNeed() { return {.prompt_tokens = 100, .total_tokens = 200, .is_batch = true}; }

void Decode(WorkerView& decode, uint32_t sequences, double tpot_slo) {
  decode.running_sequences = decode.objectives = sequences;
  decode.tpot_slo = tpot_slo;
}

TEST(ForecastTest, AnIdlePairServesTheRequest) {
  EXPECT_EQ(Judge(PairWithCost(), Need(), kAssumed).verdict, Verdict::kServe);
}

TEST(ForecastTest, ARequestBehindALongQueueIsLateAndTheHintIsTheTimeUntilTheQueueIsShortEnough) {
  PairView pair = PairWithCost();
  pair.prefill.waiting_tokens = 600;
  EXPECT_EQ(Judge(pair, Need(), kAssumed).verdict, Verdict::kServe);
  pair.prefill.waiting_tokens = 3000;
  const Judgement late = Judge(pair, Need(), kAssumed);
  EXPECT_EQ(late.verdict, Verdict::kLate);
  pair.prefill.waiting_tokens = 3000 - static_cast<uint64_t>(1000 * (late.retry_after - 0.01));
  EXPECT_EQ(Judge(pair, Need(), kAssumed).verdict, Verdict::kLate) << "10 ms before the time of the hint";
  pair.prefill.waiting_tokens -= 20;
  EXPECT_EQ(Judge(pair, Need(), kAssumed).verdict, Verdict::kServe) << "10 ms after";
}

TEST(ForecastTest, TheTimeThatARequestHasWaitedCounts) {
  PairView pair = PairWithCost();
  pair.prefill.waiting_tokens = 500;
  PlacementNeed need = Need();
  EXPECT_EQ(Judge(pair, need, kAssumed).verdict, Verdict::kServe);
  need.waited = 0.4;
  EXPECT_EQ(Judge(pair, need, kAssumed).verdict, Verdict::kLate);
}

TEST(ForecastTest, ARequestThatCannotMeetItsDeadlineIsLateWithoutAnyObjective) {
  PairView pair = PairWithCost();
  pair.prefill.waiting_tokens = 3000;
  PlacementNeed need{.prompt_tokens = 100, .total_tokens = 200};
  EXPECT_EQ(Judge(pair, need, kAssumed).verdict, Verdict::kServe) << "no deadline";
  need.time_left = 3;
  const Judgement late = Judge(pair, need, kAssumed);
  EXPECT_EQ(late.verdict, Verdict::kLate);
  EXPECT_NEAR(late.retry_after, 0.1, 0.01);
  need.time_left = 4;
  EXPECT_EQ(Judge(pair, need, kAssumed).verdict, Verdict::kServe);
}

TEST(ForecastTest, APromptThatTakesLongerThanTheObjectiveIsHopelessAndNotLate) {
  PlacementNeed need = Need();
  need.prompt_tokens = 1001;
  EXPECT_EQ(Judge(PairWithCost(), need, kAssumed).verdict, Verdict::kHopeless);
  PairView pair = PairWithCost();
  pair.prefill.waiting_tokens = 3000;
  EXPECT_EQ(Judge(pair, need, kAssumed).verdict, Verdict::kHopeless) << "the load is not to blame";
  need.prompt_tokens = 950;
  EXPECT_EQ(Judge(PairWithCost(), need, kAssumed).verdict, Verdict::kServe) << "on an idle worker, it is in time";
  EXPECT_EQ(Judge(pair, need, kAssumed).verdict, Verdict::kLate);
}

TEST(ForecastTest, TheTransferDelaysDecodingAndNotTheFirstToken) {
  PairView pair = PairWithCost();
  pair.prefill.kv_token_bytes = 1'000'000;
  pair.path.bytes_per_second = 2e8;  // half a second for 100 tokens
  PlacementNeed need = Need();
  need.ttft_slo = 0.2;
  EXPECT_EQ(Judge(pair, need, kAssumed).verdict, Verdict::kServe);
  EXPECT_NEAR(ForecastOf(pair, need, kAssumed).first_token, 0.1, 0.01);
  EXPECT_NEAR(ForecastOf(pair, need, kAssumed).decoding, 0.5, 0.02);
}

TEST(ForecastTest, AGuessRefusesNobody) {
  PairView pair = PairWithCost();
  pair.prefill.prefill_tokens_per_second = 0;
  PlacementNeed need = Need();
  need.prompt_tokens = 5000;
  need.time_left = 1;
  const AssumedSpeed guessed{.prefill_tokens_per_second = 1000};
  EXPECT_EQ(Judge(pair, need, guessed).verdict, Verdict::kServe);
  EXPECT_EQ(Judge(pair, need, kAssumed).verdict, Verdict::kLate) << "another worker has measured";
  need = {.prompt_tokens = 100, .total_tokens = 200, .time_left = 1};
  pair.decode.running_sequences = pair.decode.max_sequences;
  pair.decode.sequence_seconds = 0;
  EXPECT_EQ(Judge(pair, need, kAssumed).verdict, Verdict::kServe) << "nobody knows how long sequences run there";
  pair.decode.sequence_seconds = 500;
  EXPECT_EQ(Judge(pair, need, kAssumed).verdict, Verdict::kLate);
}

TEST(ForecastTest, ASequenceThatMakesOthersMissTheirTimePerTokenFindsNoRoom) {
  PairView pair = PairWithCost();
  Decode(pair.decode, 6, 0.020);
  EXPECT_EQ(Judge(pair, Need(), kAssumed).verdict, Verdict::kServe);
  Decode(pair.decode, 9, 0.020);
  EXPECT_EQ(Judge(pair, Need(), kAssumed).verdict, Verdict::kNoRoom);
  EXPECT_NEAR(Judge(pair, Need(), kAssumed).retry_after, 2. / 9, 0.01) << "nine sequences end every two seconds";
  PlacementNeed without = Need();
  without.tpot_slo = 0;
  EXPECT_EQ(Judge(pair, without, kAssumed).verdict, Verdict::kNoRoom) << "the others have objectives";
  Decode(pair.decode, 9, 0);
  EXPECT_EQ(Judge(pair, without, kAssumed).verdict, Verdict::kServe);
}

TEST(ForecastTest, AnObjectiveThatNoDecodeWorkerCanKeepRefusesNobody) {
  PairView pair = PairWithCost();
  Decode(pair.decode, 3, 0.005);
  PlacementNeed need = Need();
  need.tpot_slo = 0.005;
  EXPECT_EQ(Judge(pair, need, kAssumed).verdict, Verdict::kServe) << "a step alone takes 11 ms";
}

TEST(ForecastTest, ABatchRequestLeavesOthersTheirObjectivesUntilItHasWaitedForAMinute) {
  PairView pair = PairWithCost();
  Decode(pair.decode, 4, 0.020);
  EXPECT_EQ(Judge(pair, BatchNeed(), kAssumed).verdict, Verdict::kServe);
  Decode(pair.decode, 8, 0.020);
  EXPECT_EQ(Judge(pair, BatchNeed(), kAssumed).verdict, Verdict::kNoRoom);
  PlacementNeed need = BatchNeed();
  need.waited = 59;
  EXPECT_EQ(Judge(pair, need, kAssumed).verdict, Verdict::kNoRoom);
  need.waited = 60;
  EXPECT_EQ(Judge(pair, need, kAssumed).verdict, Verdict::kServe);
}

TEST(ForecastTest, InteractiveRequestsGoBeforeBatchPrompts) {
  PairView pair = PairWithCost();
  pair.prefill.waiting_tokens = 5000;
  pair.prefill.waiting_batch_tokens = 4900;
  EXPECT_EQ(Judge(pair, Need(), kAssumed).verdict, Verdict::kServe);
  EXPECT_NEAR(ForecastOf(pair, Need(), kAssumed).first_token, 0.2, 0.01);
  EXPECT_NEAR(ForecastOf(pair, BatchNeed(), kAssumed).first_token, 5.1, 0.01);
}

TEST(ForecastTest, TenantsTakeTurnsByTokens) {
  PairView pair = PairWithCost();
  pair.prefill.waiting_tokens = 5300;
  pair.prefill.tenant_tokens = 200;
  pair.prefill.other_tenants = {5000, 100};
  // 200 of its own, 300 of the second tenant, all of the third, and the prompt itself.
  EXPECT_NEAR(ForecastOf(pair, Need(), kAssumed).first_token, 0.2 + 0.3 + 0.1 + 0.1, 0.01);
  EXPECT_NEAR(ForecastOf(pair, BatchNeed(), kAssumed).first_token, 5.4, 0.01);
}

TEST(ForecastTest, WithoutASlotTheWaitIsThatForTheEndOfSequences) {
  PairView pair = PairWithCost();
  pair.decode.max_sequences = 10;
  pair.decode.running_sequences = 10;
  const PlacementNeed need{.prompt_tokens = 100, .total_tokens = 200};
  EXPECT_NEAR(ForecastOf(pair, need, kAssumed).first_token, 0.1 + 0.2, 0.01);
  pair.decode.running_sequences = 14;
  EXPECT_NEAR(ForecastOf(pair, need, kAssumed).first_token, 0.1 + 5 * 0.2, 0.01) << "four wait there already";
  pair.decode.sequence_seconds = 0;
  pair.decode.running_sequences = 10;
  EXPECT_NEAR(ForecastOf(pair, need, kAssumed).first_token, 5.1, 0.01) << "not measured yet";
  EXPECT_NEAR(ForecastOf(pair, need, kAssumed).guessed, 5, 0.01);
}

TEST(ForecastTest, RoomComesWhenOneOfTheWaitingPromptsAndOneSequenceHaveEnded) {
  PairView pair = PairWithCost();
  pair.prefill.waiting_tokens = 3000;
  pair.prefill.waiting_requests = 3;
  pair.decode.running_sequences = 10;
  EXPECT_NEAR(SecondsUntilRoom(pair, kAssumed), 1, 1e-9);
  pair.decode.running_sequences = 1;
  EXPECT_NEAR(SecondsUntilRoom(pair, kAssumed), 2, 1e-9);
}

}  // namespace
}  // namespace baton::router
