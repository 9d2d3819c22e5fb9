// The demo model through three processes gives the continuations that an independent implementation computed.
#include "golden.h"

#include <gmock/gmock.h>

#include "cluster_test.h"

namespace baton::testing {
namespace {

using ::testing::StartsWith;

class GoldenTest : public ClusterTest {
 protected:
  static void SetUpTestSuite() { StartCluster({.workers = {Prefill("p0"), Decode("d0")}}); }
};

TEST_F(GoldenTest, GreedyContinuationsOfTextPromptsAreTheGoldenOnes) {
  ASSERT_EQ(GoldenCases().size(), 12);
  for (const GoldenCase& golden : GoldenCases()) {
    const Reply reply = Generate(GreedyRequest(golden.prompt, 48));

    ASSERT_TRUE(Succeeded(reply));
    EXPECT_EQ(reply.answer.token_ids, golden.greedy_ids) << golden.prompt.substr(0, 60);
    EXPECT_EQ(reply.finish.usage().prompt_tokens(), golden.prompt_ids.size());
  }
}

TEST_F(GoldenTest, TokenIdsGiveTheSameAndTheTextCanKeepItsSpecialTokens) {
  for (const GoldenCase& golden : GoldenCases()) {
    v1::GenerateRequest request = GreedyRequest("", 48);
    request.mutable_token_ids()->mutable_ids()->Add(golden.prompt_ids.begin(), golden.prompt_ids.end());
    request.mutable_sampling()->set_skip_special_tokens(false);

    const Reply reply = Generate(request);

    ASSERT_TRUE(Succeeded(reply));
    EXPECT_EQ(reply.answer.token_ids, golden.greedy_ids) << golden.prompt.substr(0, 60);
    EXPECT_EQ(reply.answer.text, golden.greedy_text);
  }
}

TEST_F(GoldenTest, TheKvCacheIsReallyMovedBetweenTheTwoWorkers) {
  const GoldenCase& golden = GoldenCases()[9];
  const Reply reply = Generate(GreedyRequest(golden.prompt, 4));

  ASSERT_TRUE(Succeeded(reply));
  ASSERT_EQ(reply.finish.attempts_size(), 1);
  const v1::AttemptInfo& attempt = reply.finish.attempts(0);
  EXPECT_EQ(attempt.prefill_worker(), "p0");
  EXPECT_EQ(attempt.decode_worker(), "d0");
  EXPECT_THAT(attempt.transport(), StartsWith("ucx:"));
  // 6 layers x K and V x 2 heads x 64 values of 4 bytes, for each token of the prompt at least.
  EXPECT_GE(attempt.kv_bytes(), golden.prompt_ids.size() * 6 * 2 * 2 * 64 * 4);
}

}  // namespace
}  // namespace baton::testing
