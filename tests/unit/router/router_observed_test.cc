// SPDX-License-Identifier: Apache-2.0
// Timings, metrics and logs of a request.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "router_fixture.h"
#include "tests/metrics_page.h"

namespace baton::router {
namespace {

TEST_F(RouterTest, TimeSpentWaitingForRoomIsQueueTime) {
  options_.metrics_listen = "127.0.0.1:0";
  options_.overload_wait = kPatience;
  FakeWorker& worker = AddWorker("b1", v1::WORKER_ROLE_BOTH);
  StartReadyRouter();
  constexpr int kRefusals = 3;  // after the second there are pauses
  std::atomic<int> refusals = 0;
  worker.SetDecodeScript([&](const v1::DecodeRequest& request, const std::shared_ptr<DecodeStream>& stream) {
    v1::DecodeEvent event = FakeWorker::Tokens(0, request.header().sampling().max_tokens());
    if (++refusals <= kRefusals) {
      event.mutable_failed()->set_cause(v1::CAUSE_OVERLOADED);
    } else {
      stream->Send(event);
      event = FakeWorker::Finished();
    }
    stream->Send(event);
    stream->End();
  });
  ExpectCanned(Generate(Request(5)), 5);
  ASSERT_OK_AND_ASSIGN(const testing::MetricsPage page, testing::MetricsPage::Fetch(router_->metrics_port()));
  EXPECT_GE(page.Sum("baton_request_queue_seconds_sum", {{"model", "demo"}}), 0.05);
}

// Given a message of 3 tokens and, at least 20 ms later, one of 4.
TEST_F(RouterTest, TokensOfOneMessageShareTheGapBeforeIt) {
  options_.metrics_listen = "127.0.0.1:0";
  FakeWorker& worker = AddWorker("b1", v1::WORKER_ROLE_BOTH);
  StartReadyRouter();
  std::shared_ptr<DecodeStream> answer;
  worker.SetDecodeScript([&](const v1::DecodeRequest&, const std::shared_ptr<DecodeStream>& stream) {
    answer = stream;
    stream->Send(FakeWorker::Tokens(0, 3));
  });
  grpc::ClientContext context;
  context.set_deadline(GrpcDeadline(kPatience));
  const Answer whole = Generate(Request(7), context, [&](size_t tokens) {
    if (tokens != 3) return;
    absl::SleepFor(absl::Milliseconds(20));
    answer->Send(FakeWorker::Tokens(3, 7));
    answer->Send(FakeWorker::Finished());
    answer->End();
  });
  ExpectCanned(whole, 7);
  ASSERT_OK_AND_ASSIGN(const testing::MetricsPage page, testing::MetricsPage::Fetch(router_->metrics_port()));
  EXPECT_EQ(page.Sum("baton_time_to_first_token_seconds_count"), 1);
  EXPECT_EQ(page.Sum("baton_inter_token_latency_seconds_count"), 4);
  EXPECT_GE(page.Sum("baton_inter_token_latency_seconds_sum"), 0.02);
  EXPECT_LT(page.Sum("baton_inter_token_latency_seconds_sum"), 2 * whole.finish->timings().total_seconds());
  EXPECT_EQ(page.Sum("baton_inter_token_latency_seconds_bucket", {{"le", "0.0037"}}), 0);
}

TEST_F(RouterTest, AProbeCountsForNothing) {
  options_.metrics_listen = "127.0.0.1:0";
  AddWorker("b1", v1::WORKER_ROLE_BOTH);
  StartReadyRouter();
  ASSERT_OK_AND_ASSIGN(const testing::MetricsPage page, testing::MetricsPage::Fetch(router_->metrics_port()));
  EXPECT_EQ(page.Sum("baton_ready_pairs"), 1);
  for (const testing::MetricsSeries& series : page.series()) {
    EXPECT_EQ(series.name.rfind("baton_", 0) == 0 && series.name.find("_total") != std::string::npos, false)
        << series.name;
  }
}

TEST_F(RouterTest, ARequestLogsOneLine) {
  AddWorker("b1", v1::WORKER_ROLE_BOTH);
  StartReadyRouter();
  ::testing::internal::CaptureStderr();
  v1::GenerateRequest request = Request(5);
  request.set_request_label("label-of-a-client");
  const Answer answer = Generate(request);
  const std::string log = ::testing::internal::GetCapturedStderr();
  ExpectCanned(answer, 5);
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
  for (const char* part : {"INFO", "request.finished", "request=", "label=label-of-a-client", "model=demo",
                           "outcome=length", "attempts=1", "output_tokens=5", "ttft_seconds=", "total_seconds="}) {
    EXPECT_THAT(log, ::testing::HasSubstr(part));
  }
}

TEST_F(RouterTest, ARequestThatFailsLogsItsOutcomeOnce) {
  options_.metrics_listen = "127.0.0.1:0";
  FakeWorker& worker = AddWorker("b1", v1::WORKER_ROLE_BOTH);
  StartReadyRouter();
  worker.SetDecodeScript([&](const v1::DecodeRequest&, const std::shared_ptr<DecodeStream>& stream) {
    stream->Send(FakeWorker::Tokens(0, 3));  // and then nothing
  });
  grpc::ClientContext context;
  ::testing::internal::CaptureStderr();
  const Answer answer = Generate(Request(20), context, [&](size_t) { context.TryCancel(); });
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(WaitFor([&] {
    const auto page = testing::MetricsPage::Fetch(router_->metrics_port());
    return page.ok() && page->Sum("baton_requests_total", {{"outcome", "CANCELLED"}}) == 1;
  }));
  const std::string log = ::testing::internal::GetCapturedStderr();
  size_t lines = 0;
  for (size_t at = log.find("request="); at != std::string::npos; at = log.find("request=", at + 1)) ++lines;
  EXPECT_EQ(lines, 1u) << log;
  EXPECT_THAT(log, ::testing::HasSubstr("outcome=CANCELLED"));
}

TEST_F(RouterTest, ARequestHasTheObjectivesOfItsModel) {
  options_.ttft_slo = absl::Seconds(9);
  options_.model_slos = {"other=7s/8s", "demo=50s/60s"};
  AddWorker("b1", v1::WORKER_ROLE_BOTH);
  StartReadyRouter();
  v1::GenerateRequest request = Request(2);
  const Answer of_model = Generate(request);
  ASSERT_TRUE(of_model.finish.has_value());
  EXPECT_EQ(of_model.finish->slo().ttft_slo_seconds(), 50);
  EXPECT_EQ(of_model.finish->slo().tpot_slo_seconds(), 60);
  request.set_ttft_slo_seconds(40);
  const Answer of_request = Generate(request);
  ASSERT_TRUE(of_request.finish.has_value());
  EXPECT_EQ(of_request.finish->slo().ttft_slo_seconds(), 40);
  EXPECT_EQ(of_request.finish->slo().tpot_slo_seconds(), 60);
}

TEST_F(RouterTest, ALateRequestCountsWithWhatWasDone) {
  options_.metrics_listen = "127.0.0.1:0";
  FakeWorker& worker = AddWorker("b1", v1::WORKER_ROLE_BOTH);
  StartReadyRouter();
  v1::WorkerLoad load;
  load.set_waiting_requests(9);
  load.set_waiting_tokens(10000);
  load.set_prefill_tokens_per_second(1000);  // a new prompt waits for 10 s
  worker.SetLoad(load);
  ASSERT_TRUE(WaitFor([&] { return Status().workers(0).waiting_requests() == 9; }));
  const auto late_requests = [&](const std::string& treatment) {
    const auto page = testing::MetricsPage::Fetch(router_->metrics_port());
    EXPECT_OK(page);
    return page.ok() ? page->Sum("baton_late_requests_total", {{"model", "demo"}, {"treatment", treatment}}) : -1;
  };
  const auto log_of = [&](const v1::GenerateRequest& request, grpc::StatusCode code) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(Generate(request).status.error_code(), code);
    return ::testing::internal::GetCapturedStderr();
  };

  v1::GenerateRequest request = Request(5);
  EXPECT_THAT(log_of(request, grpc::StatusCode::OK), ::testing::HasSubstr("priority=interactive"));
  request.set_priority(v1::PRIORITY_BATCH);
  EXPECT_THAT(log_of(request, grpc::StatusCode::OK), ::testing::HasSubstr("priority=batch"));
  EXPECT_EQ(late_requests("refused"), 0);
  EXPECT_EQ(late_requests("batch"), 0) << "the client asked for it";

  request.set_priority(v1::PRIORITY_INTERACTIVE);
  request.set_ttft_slo_seconds(1);
  EXPECT_THAT(log_of(request, grpc::StatusCode::RESOURCE_EXHAUSTED), ::testing::HasSubstr("priority=interactive"));
  EXPECT_EQ(late_requests("refused"), 1);
  EXPECT_EQ(late_requests("batch"), 0);

  request.set_when_late(v1::WHEN_LATE_SERVE);
  EXPECT_THAT(log_of(request, grpc::StatusCode::OK), ::testing::HasSubstr("priority=batch"));
  EXPECT_EQ(late_requests("refused"), 1);
  EXPECT_EQ(late_requests("batch"), 1);
}

}  // namespace
}  // namespace baton::router
