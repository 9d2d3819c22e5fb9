// SPDX-License-Identifier: Apache-2.0
// The demo model through three processes gives the continuations that an independent implementation computed.
#include "golden.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "cluster_test.h"

namespace baton::testing {
namespace {

using ::testing::StartsWith;

constexpr int kBytesOfATokensKv = 6 * 2 * 2 * 64;  // times that of a value: layers, K and V, heads, their size

// Each token's 20 best, with their logprobs.
std::vector<v1::TokenLogprobs> LogprobsOf(const Reply& reply) {
  std::vector<v1::TokenLogprobs> logprobs;
  for (const v1::Chunk& chunk : reply.chunks) {
    logprobs.insert(logprobs.end(), chunk.logprobs().begin(), chunk.logprobs().end());
  }
  return logprobs;
}

// The logprobs after the prompt are the log-softmax of the golden logits, of which the best 20 are known. Logprobs and
// logits differ by one number, which all tokens share. The other 4076 logits bound this number. `tolerance` is that of
// the logits.
void ExpectGolden(const v1::TokenLogprobs& logprobs, const GoldenCase& golden, double tolerance) {
  std::map<int32_t, double> found;
  for (const v1::TokenLogprob& token : logprobs.top()) found[token.token_id()] = token.logprob();
  const double shared = golden.top_logits[0] - found[golden.top_ids[0]];
  const double allowed = tolerance * golden.top_logits[0];
  double mass = 0;
  int missing = 0;
  for (size_t i = 0; i < golden.top_ids.size(); ++i) {
    mass += std::exp(golden.top_logits[i]);
    if (found.count(golden.top_ids[i]) == 0) {
      ++missing;
      continue;
    }
    EXPECT_NEAR(found[golden.top_ids[i]] + shared, golden.top_logits[i], allowed) << "token " << golden.top_ids[i];
  }
  EXPECT_LE(missing, tolerance > 1e-3 ? 2 : 0);  // rounding may let others pass the last ones
  EXPECT_GT(shared, std::log(mass) - allowed);
  EXPECT_LT(shared, std::log(mass + (4096 - 20) * std::exp(golden.top_logits.back())) + allowed);
}

v1::GenerateRequest WithLogprobs(const GoldenCase& golden, uint32_t max_tokens) {
  v1::GenerateRequest request = GreedyRequest(golden.prompt, max_tokens);
  request.mutable_sampling()->set_logprobs(20);
  return request;
}

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
  // No other test begins like this: no page of the prompt is cached.
  const Reply reply = Generate(GreedyRequest("Moved: " + golden.prompt, 4));

  ASSERT_TRUE(Succeeded(reply));
  ASSERT_EQ(reply.finish.attempts_size(), 1);
  const v1::AttemptInfo& attempt = reply.finish.attempts(0);
  EXPECT_EQ(attempt.prefill_worker(), "p0");
  EXPECT_EQ(attempt.decode_worker(), "d0");
  EXPECT_THAT(attempt.transport(), StartsWith("ucx:"));
  EXPECT_GE(attempt.kv_bytes(), golden.prompt_ids.size() * kBytesOfATokensKv * 4);
}

// The CPU's best kernels may round activations to BF16, the type of the weights. Other kernels come within 1e-4: see
// golden_models_test.
constexpr double kTolerance = 1e-2;

TEST_F(GoldenTest, LogprobsAreThoseOfTheGoldenLogits) {
  for (const GoldenCase& golden : GoldenCases()) {
    SCOPED_TRACE(golden.prompt.substr(0, 60));
    const Reply reply = Generate(WithLogprobs(golden, 48));

    ASSERT_TRUE(Succeeded(reply));
    const std::vector<v1::TokenLogprobs> logprobs = LogprobsOf(reply);
    ASSERT_EQ(logprobs.size(), 48);
    ExpectGolden(logprobs[0], golden, kTolerance);
    // Of the tokens that the decode worker computes the reference tells how near the second best comes.
    double margin = INFINITY;
    for (const v1::TokenLogprobs& token : logprobs) {
      EXPECT_EQ(token.chosen().token_id(), token.top(0).token_id());
      margin = std::min<double>(margin, token.top(0).logprob() - token.top(1).logprob());
    }
    EXPECT_NEAR(margin, golden.min_margin, kTolerance * golden.top_logits[0]);
  }
}

TEST(ShippedFlagsTest, LogprobsWith16BitKvAreNearTheGoldenLogits) {
  ASSERT_OK_AND_ASSIGN(const auto cluster,
                       Cluster::Start({.workers = {Prefill("p0"), Decode("d0")}, .shipped_numerics = true}));
  for (const GoldenCase& golden : GoldenCases()) {
    SCOPED_TRACE(golden.prompt.substr(0, 60));
    const Reply reply = cluster->client().Generate(WithLogprobs(golden, 4));

    ASSERT_TRUE(Succeeded(reply));
    ExpectGolden(LogprobsOf(reply).at(0), golden, 2e-2);
    // Whole pages of 16 tokens, and two bytes a value.
    EXPECT_LE(reply.finish.attempts(0).kv_bytes(), (golden.prompt_ids.size() + 15) * kBytesOfATokensKv * 2);
  }
  EXPECT_OK(cluster->WaitIdle());
}

}  // namespace
}  // namespace baton::testing
