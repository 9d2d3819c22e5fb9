// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/endpoints/put_pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "engine/kv/page_pool.h"

namespace baton {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

constexpr uint32_t kPeerPages = 32;

class PutPiecesTest : public ::testing::Test {
 protected:
  // Pairs of (first destination page, pages) of the pieces that `put` makes.
  std::vector<std::pair<uint64_t, uint64_t>> Runs(std::vector<uint32_t> sources, std::vector<uint32_t> destinations) {
    handoff::WriterMachine::Put put{.layer = 1, .sources = {}, .destinations = {}};
    for (const uint32_t page : sources) put.sources.push_back(PageId{page});
    for (const uint32_t page : destinations) put.destinations.push_back(PageId{page});
    const uint64_t block = pool_->layout().block_stride();
    std::vector<std::pair<uint64_t, uint64_t>> runs;
    uint64_t index = 0;
    for (const PutPiece& piece : PiecesOf(put, *pool_, kPeerPages)) {
      EXPECT_EQ(piece.local, pool_->block(1, PageId{sources[index]}));
      runs.emplace_back(piece.remote_offset / block - kPeerPages, piece.bytes / block);
      index += piece.bytes / block;
    }
    EXPECT_EQ(index, sources.size());
    return runs;
  }

  const std::unique_ptr<PagePool> pool_ = *PagePool::Create({2, {.kv_heads = 1, .head_dim = 8, .page_tokens = 4}}, 16);
};

TEST_F(PutPiecesTest, NeighboursOnBothSidesLeaveAsOnePiece) {
  EXPECT_THAT(Runs({3, 4, 5}, {10, 11, 12}), ElementsAre(Pair(10, 3)));
}

TEST_F(PutPiecesTest, NeighboursOnOneSideOnlyLeaveApart) {
  EXPECT_THAT(Runs({3, 4}, {10, 12}), ElementsAre(Pair(10, 1), Pair(12, 1)));
  EXPECT_THAT(Runs({3, 5}, {10, 11}), ElementsAre(Pair(10, 1), Pair(11, 1)));
}

TEST_F(PutPiecesTest, ADescendingRunIsNoRun) {
  EXPECT_THAT(Runs({4, 3}, {11, 10}), ElementsAre(Pair(11, 1), Pair(10, 1)));
}

}  // namespace
}  // namespace baton
