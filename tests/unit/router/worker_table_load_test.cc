// SPDX-License-Identifier: Apache-2.0
// Requests under load: late, without room, of priority batch.
#include <gtest/gtest.h>

#include "worker_table_fixture.h"

namespace baton::router {
namespace {

using Kind = PlacementResult::Kind;

class WorkerTableLoadTest : public WorkerTableTest {
 protected:
  WorkerTableLoadTest() {
    BringUpPair();
    query_.model = "m";
    query_.assets_fingerprint = "f1";
    query_.prompt_tokens = 10;
    query_.total_tokens = 20;
    query_.ttft_slo = absl::Seconds(1);
    query_.tpot_slo = absl::Milliseconds(20);
  }

  // The prefill worker computes 1000 tokens/s.
  void ReportWaiting(uint64_t tokens, uint64_t batch_tokens = 0) {
    v1::WorkerStatus status = StatusOf("p1", v1::WORKER_ROLE_PREFILL);
    status.mutable_load()->set_prefill_tokens_per_second(1000);
    status.mutable_load()->set_waiting_tokens(tokens);
    status.mutable_load()->set_waiting_batch_tokens(batch_tokens);
    Hear(0, status);
  }
  // A step takes 10 ms and 1 ms for each sequence. All sequences have an objective of 20 ms.
  void ReportDecoding(uint32_t sequences) {
    v1::WorkerStatus status = StatusOf("d1", v1::WORKER_ROLE_DECODE);
    status.mutable_capacity()->set_max_sequences(100);
    v1::WorkerLoad& load = *status.mutable_load();
    load.set_running_sequences(sequences);
    load.set_tpot_objectives(sequences);
    load.set_tpot_slo_seconds(0.020);
    load.mutable_step_cost()->set_step_seconds(0.010);
    load.mutable_step_cost()->set_decode_row_seconds(0.001);
    Hear(1, status);
  }

  PlacementResult Place() { return table_.Place(now_, query_); }

  PlacementQuery query_;
};

TEST_F(WorkerTableLoadTest, ALateRequestIsNotPlacedAndGetsAnEstimate) {
  ReportWaiting(3000);
  const PlacementResult late = Place();
  EXPECT_EQ(late.kind, Kind::kLate);
  EXPECT_NE(late.detail.find("too late"), std::string::npos);
  EXPECT_GT(late.retry_after, absl::Seconds(2));
  EXPECT_LT(late.retry_after, absl::Seconds(3));
}

TEST_F(WorkerTableLoadTest, ALateRequestThatAsksForItIsServedAsABatchRequest) {
  query_.when_late = WhenLate::kServe;
  ReportWaiting(100);
  EXPECT_FALSE(Place().placement.is_batch) << "not late";
  ReportWaiting(3000);
  const PlacementResult placed = Place();
  EXPECT_EQ(placed.kind, Kind::kPlaced);
  EXPECT_TRUE(placed.placement.is_batch);
}

TEST_F(WorkerTableLoadTest, ARequestThatHasBegunIsNeverLate) {
  query_.has_begun = true;
  ReportWaiting(3000);
  ReportDecoding(50);
  EXPECT_EQ(Place().kind, Kind::kPlaced);
}

TEST_F(WorkerTableLoadTest, AnObjectiveThatNoIdleWorkerMeetsMakesABatchRequest) {
  ReportWaiting(0);
  query_.prompt_tokens = 900;
  query_.total_tokens = 950;
  query_.ttft_slo = absl::Milliseconds(500);
  const PlacementResult placed = Place();
  EXPECT_EQ(placed.kind, Kind::kPlaced);
  EXPECT_TRUE(placed.placement.is_batch);
}

TEST_F(WorkerTableLoadTest, PromptsSentByThisRouterCountBeforeTheWorkerReportsThem) {
  ReportWaiting(0);
  query_.prompt_tokens = 600;
  query_.total_tokens = 610;
  EXPECT_EQ(Place().kind, Kind::kPlaced);
  EXPECT_EQ(Place().kind, Kind::kLate);
  query_.is_batch = true;
  query_.ttft_slo = query_.tpot_slo = absl::ZeroDuration();
  EXPECT_EQ(Place().kind, Kind::kPlaced);
}

TEST_F(WorkerTableLoadTest, AWorkerComputesBetweenTwoReports) {
  ReportWaiting(1500);
  EXPECT_EQ(Place().kind, Kind::kLate);
  now_ += absl::Seconds(1);
  EXPECT_EQ(Place().kind, Kind::kPlaced) << "500 tokens are left";
}

TEST_F(WorkerTableLoadTest, AReportSaysWhichAttemptsItCounts) {
  ReportWaiting(0);
  query_.request = RequestId{0, 77};
  query_.prompt_tokens = 600;
  query_.total_tokens = 610;
  EXPECT_EQ(Place().kind, Kind::kPlaced);
  v1::WorkerStatus status = StatusOf("p1", v1::WORKER_ROLE_PREFILL);
  status.mutable_load()->set_prefill_tokens_per_second(1000);
  status.mutable_load()->add_recent_requests(5);
  Hear(0, status);
  query_.request = RequestId{0, 78};
  EXPECT_EQ(Place().kind, Kind::kLate) << "the report lacks the prompt";
  status.mutable_load()->add_recent_requests(77);
  Hear(0, status);
  EXPECT_EQ(Place().kind, Kind::kPlaced) << "the figures have the prompt, and say that nothing waits";
}

TEST_F(WorkerTableLoadTest, AReportDuringAStepIsAsOldAsTheStep) {
  v1::WorkerStatus status = StatusOf("p1", v1::WORKER_ROLE_PREFILL);
  status.mutable_load()->set_prefill_tokens_per_second(1000);
  status.mutable_load()->set_waiting_tokens(1500);
  Hear(0, status);
  EXPECT_EQ(Place().kind, Kind::kLate);
  status.mutable_load()->set_age_seconds(1);
  Hear(0, status);
  EXPECT_EQ(Place().kind, Kind::kPlaced) << "the worker has computed for a second since";
}

TEST_F(WorkerTableLoadTest, BatchPromptsDelayNoInteractiveRequest) {
  ReportWaiting(3000, 3000);
  EXPECT_EQ(Place().kind, Kind::kPlaced);
}

TEST_F(WorkerTableLoadTest, ATenantWaitsForItsOwnPromptsAndAsMuchOfAnother) {
  v1::WorkerStatus status = StatusOf("p1", v1::WORKER_ROLE_PREFILL);
  status.mutable_load()->set_prefill_tokens_per_second(1000);
  status.mutable_load()->set_waiting_tokens(3000);
  v1::TenantLoad& heavy = *status.mutable_load()->add_tenants();
  heavy.set_tenant("heavy");
  heavy.set_waiting_tokens(3000);
  Hear(0, status);
  query_.tenant = "heavy";
  EXPECT_EQ(Place().kind, Kind::kLate);
  query_.tenant = "light";
  EXPECT_EQ(Place().kind, Kind::kPlaced);
  query_.tenant = "";
  EXPECT_EQ(Place().kind, Kind::kPlaced) << "without a tenant is one more tenant";
  status.mutable_load()->clear_tenants();
  Hear(0, status);
  EXPECT_EQ(Place().kind, Kind::kLate) << "the prompts that wait have no tenant, as this one";
  query_.tenant = "light";
  EXPECT_EQ(Place().kind, Kind::kPlaced);
}

TEST_F(WorkerTableLoadTest, PromptsOfATenantThatThisRouterSentCountForThisTenant) {
  ReportWaiting(0);
  query_.tenant = "heavy";
  query_.prompt_tokens = 600;
  query_.total_tokens = 610;
  EXPECT_EQ(Place().kind, Kind::kPlaced);
  EXPECT_EQ(Place().kind, Kind::kLate);
  query_.tenant = "light";
  query_.prompt_tokens = 100;
  EXPECT_EQ(Place().kind, Kind::kPlaced);
}

TEST_F(WorkerTableLoadTest, WithoutTimePerTokenARequestWaitsOnlyIfItIsTold) {
  ReportWaiting(0);
  ReportDecoding(5);
  EXPECT_EQ(Place().kind, Kind::kPlaced);
  ReportDecoding(9);
  PlacementResult full = Place();
  EXPECT_EQ(full.kind, Kind::kNoRoom);
  EXPECT_TRUE(full.may_wait) << "the first token's objective ends the wait";
  EXPECT_GT(full.retry_after, absl::ZeroDuration());
  query_.ttft_slo = absl::ZeroDuration();
  EXPECT_FALSE(Place().may_wait);
  query_.is_batch = true;
  EXPECT_TRUE(Place().may_wait);
}

TEST_F(WorkerTableLoadTest, OfThoseThatWaitForRoomTheOneDueFirstGetsIt) {
  ReportWaiting(0);
  ReportDecoding(9);
  query_.request = RequestId{0, 1};
  query_.due = absl::FromUnixSeconds(10);
  EXPECT_EQ(Place().kind, Kind::kNoRoom);
  ReportDecoding(5);
  PlacementQuery newcomer = query_;
  newcomer.request = RequestId{0, 2};
  newcomer.due = absl::FromUnixSeconds(11);
  EXPECT_EQ(table_.Place(now_, newcomer).kind, Kind::kNoRoom) << "an older request waits";
  EXPECT_EQ(Place().kind, Kind::kPlaced);
  EXPECT_EQ(table_.Place(now_, newcomer).kind, Kind::kPlaced);
}

TEST_F(WorkerTableLoadTest, ARequestThatNoLongerAsksForRoomHoldsUpNobody) {
  ReportWaiting(0);
  ReportDecoding(9);
  query_.request = RequestId{0, 1};
  EXPECT_EQ(Place().kind, Kind::kNoRoom);
  ReportDecoding(5);
  query_.request = RequestId{0, 2};
  query_.due = absl::FromUnixSeconds(11);
  EXPECT_EQ(Place().kind, Kind::kNoRoom);
  now_ += absl::Milliseconds(150);
  EXPECT_EQ(Place().kind, Kind::kPlaced);
}

TEST_F(WorkerTableLoadTest, ARequestWithoutRoomIsNotServedAsABatchRequestForThat) {
  query_.when_late = WhenLate::kServe;
  ReportWaiting(0);
  ReportDecoding(9);
  EXPECT_EQ(Place().kind, Kind::kNoRoom);
}

TEST_F(WorkerTableLoadTest, AMigrationKeepsThePriority) {
  query_.migrates = true;
  query_.is_batch = true;
  query_.has_begun = true;
  v1::WorkerStatus status = StatusOf("d1", v1::WORKER_ROLE_DECODE);
  status.set_handoff_address("there");
  Hear(1, status);
  const PlacementResult placed = Place();
  ASSERT_EQ(placed.kind, Kind::kPlaced) << placed.detail;
  EXPECT_TRUE(placed.placement.is_batch);
}

TEST_F(WorkerTableLoadTest, TenantsThatTheWorkerDoesNotReportCount) {
  v1::WorkerStatus status = StatusOf("p1", v1::WORKER_ROLE_PREFILL);
  status.mutable_load()->set_prefill_tokens_per_second(1000);
  status.mutable_load()->set_waiting_tokens(4000);
  for (int i = 0; i < 10; ++i) {
    v1::TenantLoad& load = *status.mutable_load()->add_tenants();
    load.set_tenant(absl::StrCat("t", i));
    load.set_waiting_tokens(40);
  }
  Hear(0, status);
  query_.tenant = "new";
  query_.prompt_tokens = 40;
  query_.total_tokens = 50;
  EXPECT_EQ(Place().kind, Kind::kLate) << "a hundred tenants with a prompt each";
}

TEST_F(WorkerTableLoadTest, SequencesSentByThisRouterKeepTheirTimePerToken) {
  ReportWaiting(0);
  ReportDecoding(0);
  int placed = 0;
  while (placed < 30 && Place().kind == Kind::kPlaced) ++placed;
  EXPECT_GE(placed, 7);
  EXPECT_LE(placed, 10) << "ten sequences take 20 ms a step";
}

TEST_F(WorkerTableLoadTest, IfAllWorkersAreFullTheHintIsAnEstimate) {
  v1::WorkerStatus status = StatusOf("d1", v1::WORKER_ROLE_DECODE);
  status.mutable_load()->set_running_sequences(8);
  status.mutable_load()->set_sequence_seconds(4);
  Hear(1, status);
  query_.avoid = {{"d1", 1}};
  const PlacementResult nowhere = Place();
  EXPECT_EQ(nowhere.kind, Kind::kOnlyAvoided);
  EXPECT_EQ(nowhere.retry_after, absl::Milliseconds(500)) << "eight sequences of four seconds each";
}

}  // namespace
}  // namespace baton::router
