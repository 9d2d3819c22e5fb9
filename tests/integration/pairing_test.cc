// SPDX-License-Identifier: Apache-2.0
// The router pairs workers of one model and numerics id, and no others.
#include <gmock/gmock.h>

#include "cluster_test.h"
#include "golden.h"

namespace baton::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

const v1::PairInfo* FindPair(const v1::GetStatusResponse& status, const std::string& prefill,
                             const std::string& decode) {
  for (const v1::PairInfo& pair : status.pairs()) {
    if (pair.prefill_worker() == prefill && pair.decode_worker() == decode) return &pair;
  }
  return nullptr;
}

bool PairIs(const v1::GetStatusResponse& status, const std::string& prefill, const std::string& decode,
            const std::string& state) {
  const v1::PairInfo* pair = FindPair(status, prefill, decode);
  return pair != nullptr && pair->state() == state;
}

TEST(PairingTest, AWorkerWithAnotherSecretIsKeptOutAndTheOthersServe) {
  WorkerSpec stranger = Prefill("stranger");
  stranger.secret = "another secret, just as long as it";
  ASSERT_OK_AND_ASSIGN(const auto cluster,
                       Cluster::Start({.workers = {stranger, Prefill("p0"), Decode("d0")}, .wait_until_ready = false}));
  ASSERT_OK(cluster->WaitFor("the stranger's pair has failed and the other is ready",
                             [](const v1::GetStatusResponse& status) {
                               return PairIs(status, "stranger", "d0", "failed") && PairIs(status, "p0", "d0", "ready");
                             }));

  for (int i = 0; i < 4; ++i) {
    const Reply reply = cluster->client().Generate(GreedyRequest(GoldenCases()[0].prompt, 8));
    ASSERT_TRUE(Succeeded(reply));
    EXPECT_EQ(reply.finish.attempts(0).prefill_worker(), "p0");
  }
  ASSERT_OK_AND_ASSIGN(const v1::GetStatusResponse status, cluster->Status());
  EXPECT_THAT(FindPair(status, "stranger", "d0")->detail(), AnyOf(HasSubstr("secret"), HasSubstr("authenticat")));
  EXPECT_OK(cluster->WaitIdle());
}

TEST(PairingTest, WithOnlyAWrongSecretTheRouterIsNotReadyAndSaysUnavailable) {
  WorkerSpec stranger = Prefill("stranger");
  stranger.secret = "another secret, just as long as it";
  ASSERT_OK_AND_ASSIGN(const auto cluster, Cluster::Start({.workers = {stranger, Decode("d0")},
                                                           .router_flags = {"--placement-wait=200ms"},
                                                           .wait_until_ready = false}));
  ASSERT_OK(cluster->WaitFor("the pair has failed", [](const v1::GetStatusResponse& status) {
    return PairIs(status, "stranger", "d0", "failed");
  }));

  EXPECT_TRUE(Refused(cluster->client().Generate(GreedyRequest("a", 4)), grpc::StatusCode::UNAVAILABLE, ""));
  ASSERT_OK_AND_ASSIGN(const v1::GetStatusResponse status, cluster->Status());
  EXPECT_FALSE(status.ready());
}

TEST(PairingTest, WorkersOfDifferentNumericsAreNeverPaired) {
  ASSERT_OK_AND_ASSIGN(const auto cluster,
                       Cluster::Start({.workers = {Prefill("p0"), Decode("d0"), Decode("d-bf16", {"--kv-dtype=bf16"})},
                                       .wait_until_ready = false}));
  ASSERT_OK(cluster->WaitFor("p0 and d0 are ready and d-bf16 serves", [](const v1::GetStatusResponse& status) {
    return PairIs(status, "p0", "d0", "ready") &&
           std::all_of(status.workers().begin(), status.workers().end(),
                       [](const v1::WorkerInfo& worker) { return worker.state() == "serving"; });
  }));

  for (const Reply& reply : cluster->client().GenerateAll(
           std::vector<v1::GenerateRequest>(12, GreedyRequest(GoldenCases()[0].prompt, 16)))) {
    ASSERT_TRUE(Succeeded(reply));
    EXPECT_EQ(reply.finish.attempts(0).decode_worker(), "d0");
    EXPECT_EQ(reply.answer.token_ids,
              std::vector<int32_t>(GoldenCases()[0].greedy_ids.begin(), GoldenCases()[0].greedy_ids.begin() + 16));
  }
  ASSERT_OK_AND_ASSIGN(const v1::GetStatusResponse status, cluster->Status());
  EXPECT_FALSE(PairIs(status, "p0", "d-bf16", "ready"));
  EXPECT_OK(cluster->WaitIdle());
}

TEST(PairingTest, WhatTheWorkersPagesCanNeverHoldIsRefusedAtAdmission) {
  // 12 pages of 16 tokens.
  ASSERT_OK_AND_ASSIGN(const auto cluster, Cluster::Start({.workers = {Prefill("p0"), Decode("d0", {"--pages=12"})}}));
  EXPECT_TRUE(
      Refused(cluster->client().Generate(GreedyRequest("a", 300)), grpc::StatusCode::INVALID_ARGUMENT, "pages"));
  EXPECT_TRUE(Succeeded(cluster->client().Generate(GreedyRequest("a", 100))));
  EXPECT_OK(cluster->WaitIdle());
}

TEST(PairingTest, SharedMemoryAndTcpBothWorkAndAreReported) {
  for (const std::string path : {"tcp", "shm"}) {
    ASSERT_OK_AND_ASSIGN(const auto cluster, Cluster::Start({.workers = {Prefill("p0"), Decode("d0")},
                                                             .worker_flags = {"--transport=" + path}}));
    const GoldenCase& golden = GoldenCases()[9];
    const Reply reply = cluster->client().Generate(GreedyRequest(golden.prompt, 48));
    ASSERT_TRUE(Succeeded(reply));
    EXPECT_EQ(reply.answer.token_ids, golden.greedy_ids);
    EXPECT_EQ(reply.finish.attempts(0).transport(), "ucx:" + path);
    EXPECT_OK(cluster->WaitIdle());
  }
}

}  // namespace
}  // namespace baton::testing
