// SPDX-License-Identifier: Apache-2.0
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

// Pages of 4 tokens.
std::unique_ptr<PagePool> NewPool(uint32_t pages) {
  return *PagePool::Create({1, {.kv_heads = 1, .head_dim = 8, .page_tokens = 4}}, pages);
}

// Takes pages for `tokens` tokens, as admission and growth do.
absl::Status EnsurePages(PagePool& pool, Sequence& sequence, int tokens) {
  const int pages = pool.layout().pages_for(tokens);
  if (sequence.page_ids().empty()) {
    absl::StatusOr<SharedPages> shared = pool.AllocateShared(sequence.sharable_names(), pages);
    if (!shared.ok()) return shared.status();
    sequence.TakePages(*std::move(shared));
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<PageRef>> more = pool.Allocate(pages - static_cast<int>(sequence.page_ids().size()));
  if (!more.ok()) return more.status();
  sequence.AddPages(*std::move(more));
  return absl::OkStatus();
}

class SharingTest : public ::testing::Test {
 protected:
  Sequence MakeSequence(std::vector<TokenId> prompt, const char* tenant = "") {
    Attempt attempt = MakeAttempt(std::move(prompt), {}, 100);
    attempt.page_hash_root = PageHashRoot("model", "", tenant);
    return {std::move(attempt), *pool_};
  }
  // Takes pages for all tokens and computes them.
  void Compute(Sequence& sequence, bool replace = true) {
    ASSERT_OK(EnsurePages(*pool_, sequence, static_cast<int>(sequence.tokens().size())));
    sequence.AdvanceKv(sequence.pending_tokens());
    sequence.Publish(replace);
  }

  const std::unique_ptr<PagePool> pool_ = NewPool(16);
};

TEST(Sequence, PriorOutputIsPendingLikeThePromptButCountsAsOutput) {
  const auto pool = NewPool(4);
  Sequence sequence(MakeAttempt({1, 2, 3}, {4, 5}, 10), *pool);
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
  const auto pool = NewPool(4);
  Sequence sequence(MakeAttempt({1}, {2}, 3), *pool);
  sequence.Append(5);
  EXPECT_EQ(sequence.EndAfter(5), Sequence::End::kNo);
  EXPECT_EQ(sequence.EndAfter(99), Sequence::End::kStop);
  sequence.Append(6);
  EXPECT_EQ(sequence.EndAfter(6), Sequence::End::kLength);
  EXPECT_EQ(sequence.EndAfter(99), Sequence::End::kStop);  // a stop at the limit is a stop
}

TEST(Sequence, DroppedPagesGoBackToThePool) {
  const auto pool = NewPool(4);
  Sequence sequence(MakeAttempt({1}, {}, 3), *pool);
  ASSERT_OK_AND_ASSIGN(auto pages, pool->Allocate(3));
  sequence.AddPages(std::move(pages));
  EXPECT_EQ(sequence.page_ids().size(), 3u);
  EXPECT_EQ(pool->counts().used, 3u);
  sequence.DropPages();
  EXPECT_EQ(pool->counts().used, 0u);
}

TEST_F(SharingTest, BeginsWithThePagesOfAnotherOne) {
  Sequence first = MakeSequence({1, 2, 3, 4, 5, 6, 7, 8, 9});
  Compute(first);
  Sequence second = MakeSequence({1, 2, 3, 4, 5, 6, 7, 8, 10, 11});
  ASSERT_OK(EnsurePages(*pool_, second, 10));
  EXPECT_EQ(second.cached_tokens(), 8);
  EXPECT_EQ(second.pending_tokens(), 2);
  EXPECT_EQ(second.page_ids()[0], first.page_ids()[0]);
  EXPECT_EQ(second.page_ids()[1], first.page_ids()[1]);
  EXPECT_NE(second.page_ids()[2], first.page_ids()[2]);
  EXPECT_EQ(pool_->counts().used, 4u);

  Sequence other_owner = MakeSequence({1, 2, 3, 4, 5, 6, 7, 8, 10, 11}, "tenant");
  ASSERT_OK(EnsurePages(*pool_, other_owner, 10));
  EXPECT_EQ(other_owner.cached_tokens(), 0);
  Sequence nobody(MakeAttempt({1, 2, 3, 4, 5, 6, 7, 8}, {}, 100), *pool_);
  Compute(nobody);
  EXPECT_EQ(nobody.cached_tokens(), 0);
}

TEST_F(SharingTest, ComputesTheLastTokenWhateverIsCached) {
  {
    Sequence first = MakeSequence({1, 2, 3, 4, 5, 6, 7, 8});
    Compute(first);
  }
  EXPECT_EQ(pool_->counts().cached, 2u);
  Sequence second = MakeSequence({1, 2, 3, 4, 5, 6, 7, 8});
  ASSERT_OK(EnsurePages(*pool_, second, 8));
  EXPECT_EQ(second.cached_tokens(), 4);
  EXPECT_EQ(second.pending_tokens(), 4);
  // The recomputed page is the sequence's own page, until Publish finds the cached page.
  EXPECT_EQ(pool_->counts().used, 2u);
  EXPECT_EQ(pool_->counts().cached, 1u);
  second.AdvanceKv(4);
  second.Publish(/*replace=*/false);
  EXPECT_EQ(pool_->counts().cached, 1u);
  second.Publish(/*replace=*/true);
  EXPECT_EQ(pool_->counts().used, 2u);
  EXPECT_EQ(pool_->counts().cached, 0u);
}

TEST_F(SharingTest, GeneratedTokensAreSharedToo) {
  {
    Sequence first = MakeSequence({1, 2, 3});
    Compute(first);
    for (const TokenId token : {4, 5, 6, 7, 8}) {
      first.Append(token);
      Compute(first);
    }
  }
  Sequence next_turn = MakeSequence({1, 2, 3, 4, 5, 6, 7, 8, 9});
  ASSERT_OK(EnsurePages(*pool_, next_turn, 9));
  EXPECT_EQ(next_turn.cached_tokens(), 8);
}

TEST_F(SharingTest, LooksAgainBeforeItComputes) {
  Sequence second = MakeSequence({1, 2, 3, 4, 5, 6, 7, 8, 10});
  ASSERT_OK(EnsurePages(*pool_, second, 9));
  Sequence first = MakeSequence({1, 2, 3, 4, 5, 6, 7, 8, 9});
  Compute(first);
  EXPECT_EQ(pool_->counts().used, 6u);
  second.TakeCached();
  EXPECT_EQ(second.cached_tokens(), 8);
  EXPECT_EQ(second.page_ids()[1], first.page_ids()[1]);
  EXPECT_EQ(pool_->counts().used, 4u) << "its own two went back";
  second.AdvanceKv(1);
  second.TakeCached();
  EXPECT_EQ(second.kv_tokens(), 9);
}

TEST_F(SharingTest, PagesBehindThoseItBeganWithArePublishedToo) {
  Sequence first = MakeSequence({1, 2, 3, 4, 5});
  Compute(first);
  Sequence second = MakeSequence({1, 2, 3, 4, 5, 6, 7, 8, 9});
  Compute(second, /*replace=*/false);
  EXPECT_EQ(second.cached_tokens(), 4);
  Sequence third = MakeSequence({1, 2, 3, 4, 5, 6, 7, 8, 10});
  ASSERT_OK(EnsurePages(*pool_, third, 9));
  EXPECT_EQ(third.cached_tokens(), 8);
  EXPECT_EQ(third.page_ids()[1], second.page_ids()[1]);
}

TEST_F(SharingTest, BeginsAnewAfterItsPagesWereDropped) {
  Sequence sequence = MakeSequence({1, 2, 3, 4, 5, 6, 7, 8, 9});
  Compute(sequence);
  const std::vector<PageId> published = sequence.page_ids();
  sequence.DropPages();
  EXPECT_TRUE(sequence.page_ids().empty());
  EXPECT_EQ(sequence.cached_tokens(), 0);
  EXPECT_EQ(sequence.pending_tokens(), 9);
  // Its pages come from elsewhere now, and hold the same as those that it published.
  ASSERT_OK_AND_ASSIGN(auto pages, pool_->Allocate(3));
  sequence.AddPages(std::move(pages));
  EXPECT_NE(sequence.page_ids()[0], published[0]);
  sequence.AdvanceKv(9);
  sequence.Publish(/*replace=*/true);
  ASSERT_EQ(sequence.page_ids().size(), 3u);
  EXPECT_EQ(sequence.page_ids()[0], published[0]) << "the published page takes the place of its own";
  EXPECT_EQ(sequence.page_ids()[1], published[1]);
  EXPECT_EQ(pool_->counts().used, 3u);
}

TEST_F(SharingTest, NamesTheFirstPageThatItCouldTakeAndNobodyHasPublished) {
  Sequence waiting = MakeSequence({1, 2, 3, 4, 5, 6, 7, 8, 9});
  std::optional<Sequence::NamedPage> missing = waiting.FirstMissingPage();
  ASSERT_TRUE(missing.has_value());
  EXPECT_EQ(missing->index, 0u);
  EXPECT_EQ(missing->name, waiting.page_names()[0]);

  Sequence first_page = MakeSequence({1, 2, 3, 4, 5});
  Compute(first_page);
  missing = waiting.FirstMissingPage();
  ASSERT_TRUE(missing.has_value());
  EXPECT_EQ(missing->index, 1u);
  EXPECT_EQ(missing->name, waiting.page_names()[1]);

  Sequence both_pages = MakeSequence({1, 2, 3, 4, 5, 6, 7, 8});
  Compute(both_pages);
  EXPECT_FALSE(waiting.FirstMissingPage().has_value());
}

TEST_F(SharingTest, KnowsWhichNamedPagesItWillHave) {
  Sequence waiting = MakeSequence({1, 2, 3, 4, 5, 6, 7, 8, 9});
  Sequence first_page = MakeSequence({1, 2, 3, 4, 5});
  Compute(first_page);
  const std::optional<Sequence::NamedPage> second_page = waiting.FirstMissingPage();
  ASSERT_TRUE(second_page.has_value());
  Sequence same = MakeSequence({1, 2, 3, 4, 5, 6, 7, 8, 10, 11});
  EXPECT_TRUE(same.HasPage(*second_page)) << "before it has computed anything";
  Sequence other_text = MakeSequence({1, 2, 3, 4, 5, 6, 7, 9, 10, 11});
  EXPECT_FALSE(other_text.HasPage(*second_page));
  EXPECT_FALSE(first_page.HasPage(*second_page)) << "it is too short";
  Sequence shares_nothing(MakeAttempt({1, 2, 3, 4, 5, 6, 7, 8, 9}, {}, 100), *pool_);
  EXPECT_FALSE(shares_nothing.HasPage(*second_page));
}

TEST_F(SharingTest, WhatDoesNotFitTakesNothing) {
  Sequence first = MakeSequence(std::vector<TokenId>(40, 7));
  Compute(first);
  Sequence second = MakeSequence(std::vector<TokenId>(60, 7));
  EXPECT_FALSE(EnsurePages(*pool_, second, 80).ok());
  EXPECT_EQ(second.cached_tokens(), 0);
  EXPECT_EQ(second.pending_tokens(), 60);
  EXPECT_EQ(pool_->counts().used, 10u);
  ASSERT_OK(EnsurePages(*pool_, second, 60));
  EXPECT_EQ(second.cached_tokens(), 40);
  second.DropPages();
  EXPECT_EQ(second.pending_tokens(), 60);
}

}  // namespace
}  // namespace baton
