// SPDX-License-Identifier: Apache-2.0
// Hundreds of requests come and are cancelled: workers keep nothing of them, and no answer changes.
#include <gmock/gmock.h>

#include <random>
#include <thread>

#include "cluster_test.h"
#include "golden.h"

namespace baton::testing {
namespace {

using ::testing::AnyOf;

class StormTest : public ClusterTest {
 protected:
  static void SetUpTestSuite() {
    StartCluster({.workers = {Prefill("p0"), Prefill("p1"), Decode("d0"), Decode("d1")},
                  .worker_flags = {"--max-queue=1000", "--pages=512"}});
  }
};

// Fails if a cancelled request's transfer, or the transfer's pages, are forgotten.
TEST_F(StormTest, HundredsOfRequestsCancelledAtAnyMomentLeaveNothingBehind) {
  constexpr int kRounds = 4;
  constexpr int kRequests = 300;
  const v1::GenerateRequest question = GreedyRequest(GoldenCases()[3].prompt, 16);
  const Reply expected = Generate(question);
  ASSERT_TRUE(Succeeded(expected));
  std::mt19937 random(4);
  int cancelled = 0;
  int late = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Reply> replies(kRequests);
    std::vector<std::thread> clients;
    for (int i = 0; i < kRequests; ++i) {
      const v1::GenerateRequest request = GreedyRequest(GoldenCases()[random() % 12].prompt, 64);
      CallOptions options;
      if (i % 2 == 0) {
        options.cancel_after_chunks = 1 + static_cast<int>(random() % 16);
      } else {
        options.timeout = absl::Milliseconds(1 + random() % 1500);
      }
      clients.emplace_back([&reply = replies[i], request, options] { reply = Generate(request, options); });
    }
    for (std::thread& client : clients) client.join();
    for (const Reply& reply : replies) {
      EXPECT_THAT(reply.status.error_code(),
                  AnyOf(grpc::StatusCode::OK, grpc::StatusCode::CANCELLED, grpc::StatusCode::DEADLINE_EXCEEDED,
                        grpc::StatusCode::RESOURCE_EXHAUSTED))  // too late for its deadline
          << reply.status.error_message();
      cancelled += reply.status.error_code() == grpc::StatusCode::CANCELLED ? 1 : 0;
      late += reply.status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ? 1 : 0;
      // A client's own deadline may come between the finish and the status.
      if (reply.status.ok()) {
        EXPECT_EQ(reply.broken_promise, "");
      }
    }
    const Reply reply = Generate(question);
    ASSERT_TRUE(Succeeded(reply)) << "round " << round;
    EXPECT_EQ(reply.answer, expected.answer) << "round " << round;
    ASSERT_OK(cluster_->WaitIdle()) << "round " << round;
  }
  EXPECT_GT(cancelled, kRequests / 4);
  EXPECT_GT(late, 0);
}

}  // namespace
}  // namespace baton::testing
