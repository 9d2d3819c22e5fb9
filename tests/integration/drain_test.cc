// SPDX-License-Identifier: Apache-2.0
// After SIGTERM a process refuses new requests, lets running requests finish, and exits with 0.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <algorithm>

#include "background_load.h"
#include "cluster_test.h"
#include "common/steady_time.h"
#include "golden.h"
#include "server_info.h"

namespace baton::testing {
namespace {

std::vector<v1::GenerateRequest> LongRequests(int count, uint32_t max_tokens) {
  return std::vector<v1::GenerateRequest>(count, GreedyRequest(GoldenCases()[0].prompt, max_tokens));
}

void ExpectCleanExit(const absl::StatusOr<int>& wait_status) {
  ASSERT_OK(wait_status);
  EXPECT_TRUE(WIFEXITED(*wait_status) && WEXITSTATUS(*wait_status) == 0) << "wait status " << *wait_status;
}

void ExpectAllSucceeded(const std::vector<Reply>& replies) {
  for (const Reply& reply : replies) EXPECT_TRUE(Succeeded(reply));
}

TEST(DrainTest, ARouterFinishesWhatRunsAndRefusesWhatIsNew) {
  ASSERT_OK_AND_ASSIGN(const auto cluster, Cluster::Start({.workers = {Prefill("p0"), Decode("d0")}}));
  BackgroundLoad load(cluster->client(), LongRequests(4, 400));
  ASSERT_TRUE(load.WaitForTokens(20, kPatience));

  ExpectCleanExit(cluster->Terminate("router"));

  ExpectAllSucceeded(load.Replies());
  EXPECT_EQ(cluster->client().Generate(GreedyRequest("a", 1)).status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_OK(cluster->WaitIdle());
}

TEST(DrainTest, ARouterWithADelayServesOnWhileHealthChecksFail) {
  ASSERT_OK_AND_ASSIGN(const auto cluster, Cluster::Start({.workers = {Prefill("p0"), Decode("d0")},
                                                           .router_flags = {"--drain-delay=10m"}}));
  cluster->Drain("router");
  std::string health = kServing;
  for (const SteadyTime end = SteadyTime::Now() + kPatience; health == kServing && SteadyTime::Now() < end;) {
    health = CheckHealth(cluster->target()).value_or("no answer");
  }
  EXPECT_EQ(health, kNotServing);
  EXPECT_TRUE(Succeeded(cluster->client().Generate(GreedyRequest("a", 4))));
  ExpectCleanExit(cluster->Terminate("router"));  // the second signal
}

TEST(DrainTest, WorkersFinishWhatRunsAndOthersTakeWhatIsNew) {
  ASSERT_OK_AND_ASSIGN(const auto cluster,
                       Cluster::Start({.workers = {Prefill("p0"), Prefill("p1"), Decode("d0"), Decode("d1")}}));
  BackgroundLoad load(cluster->client(), LongRequests(12, 300));
  ASSERT_TRUE(load.WaitForTokens(100, kPatience));

  ExpectCleanExit(cluster->Terminate("d0"));
  ExpectCleanExit(cluster->Terminate("p0"));

  ExpectAllSucceeded(load.Replies());
  const Reply reply = cluster->client().Generate(GreedyRequest("a", 4));
  ASSERT_TRUE(Succeeded(reply));
  EXPECT_EQ(reply.finish.attempts(0).decode_worker(), "d1");
  EXPECT_EQ(reply.finish.attempts(0).prefill_worker(), "p1");
  EXPECT_OK(cluster->WaitIdle());
}

TEST(DrainTest, ARequestWaitsForTheSuccessorOfTheOnlyDecodeWorker) {
  ASSERT_OK_AND_ASSIGN(const auto cluster,
                       Cluster::Start({.workers = {Prefill("p0"), Decode("d0")},
                                       .router_flags = {"--peer-timeout=1m", "--placement-wait=1m"}}));
  cluster->Drain("d0");
  EXPECT_OK(cluster->WaitFor("d0 leaves", [](const v1::GetStatusResponse& status) {
    return std::ranges::none_of(status.workers(), [](const v1::WorkerInfo& worker) {
      return worker.worker_id() == "d0" && worker.state() == "serving";
    });
  }));
  BackgroundLoad load(cluster->client(), LongRequests(2, 4));
  ASSERT_OK(cluster->Restart("d0"));
  const std::vector<Reply> replies = load.Replies();
  ExpectAllSucceeded(replies);
  for (const Reply& reply : replies) EXPECT_EQ(reply.finish.attempts_size(), 1);
  EXPECT_OK(cluster->WaitIdle());
}

// Running sequences move to the other decode worker with their output, and no token is computed again.
TEST(DrainTest, RunningSequencesMoveToAnotherDecodeWorker) {
  ASSERT_OK_AND_ASSIGN(const auto cluster,
                       Cluster::Start({.workers = {Prefill("p0"), Decode("d0"), Decode("d1")},
                                       .worker_flags = {"--drain-timeout=50s", "--prefix-cache=off"}}));
  const auto computed = [&](const char* worker) {
    const absl::StatusOr<MetricsPage> page = cluster->Metrics(worker);
    return page.ok() ? page->Sum("baton_worker_prompt_tokens_computed_total") : -1;
  };
  std::vector<v1::GenerateRequest> requests = LongRequests(8, 350);
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].mutable_sampling()->set_temperature(i % 2 == 0 ? 0 : 0.9f);
    requests[i].mutable_sampling()->set_seed(i);
    requests[i].mutable_sampling()->set_logprobs(2);
    requests[i].mutable_sampling()->set_ignore_eos(true);
  }
  const std::vector<Reply> reference = cluster->client().GenerateAll(requests);
  const double before = computed("p0");

  BackgroundLoad load(cluster->client(), requests);
  ASSERT_TRUE(load.WaitForTokens(8 * 30, kPatience));
  // The router may have placed all requests on one of the two.
  ASSERT_OK_AND_ASSIGN(const v1::WorkerStatus d1, cluster->WorkerStatus("d1"));
  const std::string leaver = d1.load().running_sequences() > 0 ? "d1" : "d0";
  const std::string other = leaver == "d1" ? "d0" : "d1";
  ExpectCleanExit(cluster->Terminate(leaver));

  const std::vector<Reply> replies = load.Replies();
  int moved = 0;
  for (size_t i = 0; i < replies.size(); ++i) {
    ASSERT_TRUE(Succeeded(replies[i]));
    EXPECT_TRUE(replies[i].answer == reference[i].answer) << "request " << i;
    const v1::Finish& finish = replies[i].finish;
    EXPECT_EQ(finish.attempts().rbegin()->ended_by(), "finished");
    if (finish.attempts_size() == 1) continue;
    const v1::AttemptInfo& last = *finish.attempts().rbegin();
    EXPECT_EQ(finish.attempts(finish.attempts_size() - 2).ended_by(), "migrated");
    EXPECT_EQ(last.prefill_worker(), leaver);
    EXPECT_EQ(last.decode_worker(), other);
    EXPECT_GT(last.kv_bytes(), 0u);
    EXPECT_GT(last.pause_seconds(), 0);
    ++moved;
  }
  EXPECT_GT(moved, 0);
  const double prompts = 8 * reference[0].finish.usage().prompt_tokens();
  EXPECT_EQ(computed("p0") - before, prompts) << "each prompt once";
  EXPECT_EQ(computed(other.c_str()), 0);
  const absl::StatusOr<MetricsPage> router = cluster->Metrics("router");
  ASSERT_OK(router);
  EXPECT_EQ(router->Sum("baton_pause_seconds_count", {{"cause", "migrated"}}), moved);
  EXPECT_OK(cluster->WaitIdle());
}

TEST(DrainTest, TheDrainTimeoutEndsWhatWouldTakeLonger) {
  // Nothing can move from one to the other.
  WorkerSpec stranger = Both("b0");
  stranger.secret = "another one, for nobody else";
  ASSERT_OK_AND_ASSIGN(const auto cluster, Cluster::Start({.workers = {Prefill("p0"), Decode("d0"), stranger},
                                                           .worker_flags = {"--drain-timeout=100ms"},
                                                           // The stranger is left alone as long as d0 is there.
                                                           .router_flags = {"--max-local-prefill-tokens=0"},
                                                           .wait_until_ready = false}));
  ASSERT_OK(cluster->WaitFor("two ready pairs", [](const v1::GetStatusResponse& status) {
    return std::ranges::count_if(status.pairs(), [](const v1::PairInfo& pair) { return pair.state() == "ready"; }) == 2;
  }));
  BackgroundLoad load(cluster->client(), LongRequests(3, 900));
  ASSERT_TRUE(load.WaitForTokens(50, kPatience));

  ExpectCleanExit(cluster->Terminate("d0"));

  // The requests of the drained worker go on elsewhere.
  const std::vector<Reply> replies = load.Replies();
  ExpectAllSucceeded(replies);
  EXPECT_TRUE(std::ranges::any_of(replies, [](const Reply& reply) {
    return reply.finish.attempts_size() > 1 && reply.finish.attempts(0).ended_by() == "draining";
  })) << "all were done in time";
  EXPECT_OK(cluster->WaitIdle());
}

TEST(DrainTest, ClientsOfARouterThatEndsAreToldWhy) {
  ASSERT_OK_AND_ASSIGN(const auto cluster, Cluster::Start({.workers = {Prefill("p0"), Decode("d0")},
                                                           .router_flags = {"--drain-timeout=100ms"}}));
  BackgroundLoad load(cluster->client(), LongRequests(8, 900));
  ASSERT_TRUE(load.WaitForTokens(50, kPatience));

  ExpectCleanExit(cluster->Terminate("router"));

  int told = 0;
  for (const Reply& reply : load.Replies()) {
    if (reply.status.ok()) continue;
    ++told;
    EXPECT_TRUE(Refused(reply, grpc::StatusCode::UNAVAILABLE, "drain-timeout is over"));
  }
  EXPECT_GT(told, 0) << "all were done in time";
  EXPECT_OK(cluster->WaitIdle());
}

}  // namespace
}  // namespace baton::testing
