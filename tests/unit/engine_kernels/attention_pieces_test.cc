// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/cpu/attention_pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace baton::cpu {
namespace {

using ::testing::ElementsAre;

constexpr AttentionCut kCut = {.max_queries = 8, .min_pieces = 1, .page_tokens = 16, .block_tokens = 32};

std::vector<PageId> Pages(std::initializer_list<int> ids) {
  std::vector<PageId> pages;
  for (const int id : ids) pages.push_back(PageId(id));
  return pages;
}

std::vector<size_t> RowsOfEach(const std::vector<AttentionPiece>& pieces) {
  std::vector<size_t> rows;
  for (const AttentionPiece& piece : pieces) rows.push_back(piece.rows.size());
  return rows;
}

TEST(AttentionPieces, CutsAPromptIntoNeighbours) {
  const std::vector<PageId> pages = Pages({3, 1});
  const SequenceRows prompt = {.first_row = 5, .rows = 20, .start_position = 0, .pages = pages};
  const std::vector<AttentionPiece> pieces = CutAttention({&prompt, 1}, kCut);
  ASSERT_EQ(pieces.size(), 3);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(pieces[i].rows.size(), 1);
    EXPECT_EQ(pieces[i].rows[0].first, 8 * i);
    EXPECT_EQ(pieces[i].rows[0].count, i < 2 ? 8 : 4);
    EXPECT_EQ(pieces[i].shared_tokens, 0);
  }
}

TEST(AttentionPieces, CutsFinerWhenThreadsWouldHaveNothingToDo) {
  const std::vector<PageId> pages = Pages({0, 1, 2, 3, 4});
  std::vector<SequenceRows> batch(6, {.rows = 1, .start_position = 70, .pages = pages});
  AttentionCut cut = kCut;
  EXPECT_THAT(RowsOfEach(CutAttention(batch, cut)), ElementsAre(6));
  cut.min_pieces = 3;
  EXPECT_THAT(RowsOfEach(CutAttention(batch, cut)), ElementsAre(2, 2, 2));
  cut.min_pieces = 64;
  EXPECT_THAT(RowsOfEach(CutAttention(batch, cut)), ElementsAre(1, 1, 1, 1, 1, 1));
}

TEST(AttentionPieces, SequencesMeetWhereTheyShareAWholeBlock) {
  const std::vector<PageId> a = Pages({7, 8, 9, 1});
  const std::vector<PageId> b = Pages({7, 8, 9, 2});
  const std::vector<PageId> c = Pages({7, 3, 4, 5});
  const std::vector<PageId> d = Pages({0, 8, 9, 1});
  const std::vector<SequenceRows> batch = {{.rows = 1, .start_position = 60, .pages = a},
                                           {.rows = 1, .start_position = 60, .pages = d},
                                           {.rows = 1, .start_position = 60, .pages = c},
                                           {.rows = 1, .start_position = 60, .pages = b}};
  // d begins elsewhere; c has but one page of 16 tokens in common with a, and b comes after it.
  const std::vector<AttentionPiece> apart = CutAttention(batch, kCut);
  EXPECT_THAT(RowsOfEach(apart), ElementsAre(1, 1, 1, 1));

  const std::vector<SequenceRows> neighbours = {batch[0], batch[3], batch[2]};
  const std::vector<AttentionPiece> pieces = CutAttention(neighbours, kCut);
  ASSERT_THAT(RowsOfEach(pieces), ElementsAre(2, 1));
  EXPECT_EQ(pieces[0].shared_tokens, 32) << "48 tokens in common, one whole block";
  EXPECT_EQ(pieces[1].shared_tokens, 0);
}

TEST(AttentionPieces, ASequenceSharesOnlyWhatIsBeforeItsRows) {
  const std::vector<PageId> pages = Pages({0, 1, 2, 3, 4, 5, 6, 7});
  const std::vector<SequenceRows> batch = {{.rows = 2, .start_position = 100, .pages = pages},
                                           {.rows = 2, .start_position = 70, .pages = pages},
                                           {.rows = 2, .start_position = 20, .pages = pages}};
  const std::vector<AttentionPiece> pieces = CutAttention(batch, kCut);
  ASSERT_THAT(RowsOfEach(pieces), ElementsAre(2, 1));
  EXPECT_EQ(pieces[0].shared_tokens, 64);
}

// In any batch, every query is in one piece, and every piece is described truly.
TEST(AttentionPieces, AnyBatchIsCutCompletely) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    const auto below = [&](int n) { return static_cast<int>(random() % n); };
    const AttentionCut cut = {
        .max_queries = 1 + below(10), .min_pieces = 1 + below(20), .page_tokens = 8 << below(3), .block_tokens = 32};
    std::vector<std::vector<PageId>> pages(1 + below(8));
    std::vector<SequenceRows> batch;
    for (size_t s = 0; s < pages.size(); ++s) {
      if (s > 0 && below(2) == 0) pages[s] = pages[s - 1];
      pages[s].resize(below(1 + static_cast<int>(pages[s].size())));
      while (pages[s].size() < 20) pages[s].push_back(PageId(below(1000)));
      batch.push_back({.rows = 1 + below(12), .start_position = below(100), .pages = pages[s]});
    }
    std::set<std::pair<const SequenceRows*, int>> seen;
    size_t total = 0;
    for (const AttentionPiece& piece : CutAttention(batch, cut)) {
      ASSERT_FALSE(piece.rows.empty());
      ASSERT_EQ(piece.shared_tokens % cut.block_tokens, 0);
      ASSERT_EQ(piece.shared_tokens > 0, piece.rows.size() > 1);
      int queries = 0;
      for (const QueryRows& rows : piece.rows) {
        queries += rows.count;
        ASSERT_LE(piece.shared_tokens, rows.sequence->start_position);
        for (int t = 0; t < piece.shared_tokens; t += cut.page_tokens) {
          ASSERT_EQ(rows.sequence->pages[t / cut.page_tokens], piece.rows[0].sequence->pages[t / cut.page_tokens]);
        }
        for (int i = 0; i < rows.count; ++i) ASSERT_TRUE(seen.insert({rows.sequence, rows.first + i}).second);
      }
      ASSERT_LE(queries, cut.max_queries);
    }
    for (const SequenceRows& sequence : batch) total += sequence.rows;
    ASSERT_EQ(seen.size(), total);
  }
}

}  // namespace
}  // namespace baton::cpu
