// SIGTERM: no new work, what runs may finish, exit 0.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include "background_load.h"
#include "cluster_test.h"
#include "golden.h"

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

TEST(DrainTest, TheDrainTimeoutEndsWhatWouldTakeLonger) {
  ASSERT_OK_AND_ASSIGN(const auto cluster, Cluster::Start({.workers = {Prefill("p0"), Decode("d0"), Decode("d1")},
                                                           .worker_flags = {"--drain-timeout=100ms"}}));
  BackgroundLoad load(cluster->client(), LongRequests(3, 900));
  ASSERT_TRUE(load.WaitForTokens(50, kPatience));

  ExpectCleanExit(cluster->Terminate("d0"));

  // Those it served go on elsewhere.
  ExpectAllSucceeded(load.Replies());
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
