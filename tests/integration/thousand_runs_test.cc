// SPDX-License-Identifier: Apache-2.0
// A prompt that runs a thousand times under changing load always gets the same text.
#include <random>

#include "cluster_test.h"
#include "golden.h"

namespace baton::testing {
namespace {

class ThousandRunsTest : public ClusterTest {
 protected:
  static void SetUpTestSuite() {
    StartCluster({.workers = {Prefill("p0"), Prefill("p1"), Decode("d0"), Decode("d1")},
                  .worker_flags = {"--max-queue=1000", "--pages=512"}});
  }
};

TEST_F(ThousandRunsTest, OfOnePromptGiveOneText) {
  const v1::GenerateRequest question = GreedyRequest(GoldenCases()[3].prompt, 48);
  const Reply expected = Generate(question);
  ASSERT_TRUE(Succeeded(expected));
  std::mt19937 random(9);
  int runs = 0;
  for (const size_t at_once : {1, 7, 40, 3, 100}) {
    // Every other one of its neighbours is a request of another kind.
    std::vector<v1::GenerateRequest> requests;
    for (int i = 0; i < 200; ++i) {
      requests.push_back(question);
      requests.push_back(GreedyRequest(GoldenCases()[random() % 12].prompt, 1 + random() % 60));
      requests.back().mutable_sampling()->set_temperature(1);
      requests.back().mutable_sampling()->set_seed(random());
    }
    const std::vector<Reply> replies = cluster_->client().GenerateAll(requests, {}, at_once);
    for (size_t i = 0; i < replies.size(); ++i) {
      ASSERT_TRUE(Succeeded(replies[i])) << "request " << i << " of those " << at_once << " at once";
      if (i % 2 != 0) continue;
      ++runs;
      ASSERT_EQ(replies[i].answer, expected.answer) << "request " << i << " of those " << at_once << " at once";
    }
  }
  EXPECT_EQ(runs, 1000);
}

}  // namespace
}  // namespace baton::testing
