// SPDX-License-Identifier: Apache-2.0
// Workers join and leave while routers serve.
#include <gmock/gmock.h>

#include <algorithm>
#include <iostream>

#include "background_load.h"
#include "cluster_test.h"
#include "golden.h"

namespace baton::testing {
namespace {

// Ten times the time within which a worker that joins takes requests.
constexpr absl::Duration kJoinPatience = absl::Seconds(20);

std::vector<v1::GenerateRequest> Requests(int count, uint32_t max_tokens) {
  return std::vector<v1::GenerateRequest>(count, GreedyRequest(GoldenCases()[0].prompt, max_tokens));
}

bool Knows(const v1::GetStatusResponse& status, const std::string& worker) {
  return std::ranges::any_of(status.workers(), [&](const v1::WorkerInfo& info) { return info.worker_id() == worker; });
}

void ExpectSameAnswers(const std::vector<Reply>& replies) {
  for (const Reply& reply : replies) {
    ASSERT_TRUE(Succeeded(reply));
    EXPECT_TRUE(reply.answer == replies[0].answer);
  }
}

TEST(MembershipTest, AWorkerThatJoinsUnderLoadTakesRequestsSoon) {
  ASSERT_OK_AND_ASSIGN(const auto cluster,
                       Cluster::Start({.workers = {Prefill("p0"), Decode("d0")}, .workers_file = true}));
  BackgroundLoad load(cluster->client(), Requests(400, 30), /*at_once=*/8);
  ASSERT_TRUE(load.WaitForTokens(100, kPatience));

  ASSERT_OK(cluster->Join(Decode("d1")));
  ASSERT_OK(cluster->WorkerStatus("d1"));  // the worker serves
  const SteadyTime serves = SteadyTime::Now();
  const auto has_sampled = [&] {
    const absl::StatusOr<MetricsPage> page = cluster->Metrics("d1");
    return page.ok() && page->Sum("baton_worker_output_tokens_sampled_total") > 0;
  };
  while (!has_sampled() && SteadyTime::Now() - serves < kJoinPatience) absl::SleepFor(absl::Milliseconds(20));
  EXPECT_TRUE(has_sampled());
  RecordProperty("join_ms", static_cast<int>(absl::ToInt64Milliseconds(SteadyTime::Now() - serves)));
  ExpectSameAnswers(load.Replies());
  EXPECT_OK(cluster->WaitIdle());
}

TEST(MembershipTest, AWorkerThatLeavesFinishesItsRequestsAndGetsNoMore) {
  ASSERT_OK_AND_ASSIGN(const auto cluster, Cluster::Start({.workers = {Prefill("p0"), Decode("d0"), Decode("d1")},
                                                           .router_flags = {"--discovery-interval=100ms"},
                                                           .workers_file = true}));
  BackgroundLoad load(cluster->client(), Requests(16, 400));
  ASSERT_TRUE(load.WaitForTokens(100, kPatience));

  cluster->Leave("d0");

  const std::vector<Reply> replies = load.Replies();
  ExpectSameAnswers(replies);
  int finished_there = 0;
  for (const Reply& reply : replies) {
    EXPECT_EQ(reply.finish.attempts_size(), 1) << "no request moves";
    finished_there += reply.finish.attempts(0).decode_worker() == "d0" ? 1 : 0;
  }
  EXPECT_GT(finished_there, 0);
  ASSERT_OK(cluster->WaitFor("the router forgets d0", [](const auto& status) { return !Knows(status, "d0"); }));
  const Reply after = cluster->client().Generate(GreedyRequest("a", 4));
  ASSERT_TRUE(Succeeded(after));
  EXPECT_EQ(after.finish.attempts(0).decode_worker(), "d1");
  EXPECT_OK(cluster->WaitIdle());
}

}  // namespace
}  // namespace baton::testing
