#include "worker/sequence.h"

#include "tests/status_matchers.h"

namespace baton {
namespace {

Attempt MakeAttempt(std::vector<TokenId> prompt, std::vector<TokenId> prior, uint32_t max_tokens) {
  Attempt attempt;
  attempt.prompt = std::move(prompt);
  attempt.prior_output = std::move(prior);
  attempt.sampling.max_tokens = max_tokens;
  attempt.sampling.stop_token_ids = {99};
  return attempt;
}

TEST(Sequence, PriorOutputIsPendingLikeThePromptButCountsAsOutput) {
  Sequence sequence(MakeAttempt({1, 2, 3}, {4, 5}, 10));
  EXPECT_EQ(sequence.pending_tokens(), 5);
  EXPECT_EQ(sequence.output_tokens(), 2u);
  sequence.AdvanceKv(4);
  EXPECT_EQ(sequence.pending_tokens(), 1);
  sequence.AdvanceKv(1);
  sequence.Append(6);
  EXPECT_EQ(sequence.pending_tokens(), 1);
  EXPECT_EQ(sequence.output_tokens(), 3u);
}

TEST(Sequence, EndsAtAStopTokenOrAtMaxTokens) {
  Sequence sequence(MakeAttempt({1}, {2}, 3));
  sequence.Append(5);
  EXPECT_EQ(sequence.EndAfter(5), Sequence::End::kNo);
  EXPECT_EQ(sequence.EndAfter(99), Sequence::End::kStop);
  sequence.Append(6);
  EXPECT_EQ(sequence.EndAfter(6), Sequence::End::kLength);
  EXPECT_EQ(sequence.EndAfter(99), Sequence::End::kStop);  // a stop at the limit is a stop
}

TEST(Sequence, DroppedPagesGoBackToThePool) {
  ASSERT_OK_AND_ASSIGN(auto pool, PagePool::Create({.layers = 1, .kv_heads = 1, .head_dim = 8, .page_tokens = 4}, 4));
  Sequence sequence(MakeAttempt({1}, {}, 3));
  ASSERT_OK_AND_ASSIGN(auto pages, pool->Allocate(3));
  sequence.AddPages(std::move(pages));
  EXPECT_EQ(sequence.page_ids().size(), 3u);
  EXPECT_EQ(pool->counts().used, 3u);
  sequence.DropPages();
  EXPECT_EQ(pool->counts().used, 0u);
}

}  // namespace
}  // namespace baton
