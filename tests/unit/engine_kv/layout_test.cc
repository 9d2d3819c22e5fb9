// SPDX-License-Identifier: Apache-2.0
#include "engine/kv/layout.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <vector>

namespace baton {
namespace {

constexpr KvBlock kSmall{.kv_heads = 2, .head_dim = 8, .page_tokens = 4, .dtype = KvType::kBF16};
constexpr KvBlock kLarge{.kv_heads = 3, .head_dim = 16, .page_tokens = 4, .dtype = KvType::kBF16};

// Layers 0, 2, 4 have small blocks, layers 1 and 3 have large blocks.
KvLayout TwoGroups() { return {{kSmall, kLarge}, std::array{0, 1, 0, 1, 0}}; }

TEST(KvLayoutTest, OffsetsOfOneGroupTileThePoolLayerByLayer) {
  const KvLayout layout(3, kSmall);
  EXPECT_EQ(kSmall.head_bytes(), size_t{4} * 8 * 2);
  EXPECT_EQ(layout.block_stride(), 4 * kSmall.head_bytes());
  EXPECT_EQ(layout.page_bytes(), 3 * layout.block_stride());
  EXPECT_EQ(layout.row_bytes(), layout.page_bytes());
  size_t next = 0;
  for (int layer = 0; layer < 3; ++layer) {
    for (uint32_t page = 0; page < 5; ++page) {
      EXPECT_EQ(layout.block_offset(layer, PageId{page}, 5), next);
      next += layout.block_stride();
    }
  }
  EXPECT_EQ(layout.pages_for(0), 0);
  EXPECT_EQ(layout.pages_for(1), 1);
  EXPECT_EQ(layout.pages_for(4), 1);
  EXPECT_EQ(layout.pages_for(5), 2);
}

TEST(KvLayoutTest, APageHasASlotForEachLayerOfTheLargestGroup) {
  const KvLayout layout = TwoGroups();
  EXPECT_EQ(layout.slots(), 3);
  EXPECT_EQ(layout.block_stride(), kLarge.bytes());
  EXPECT_EQ(layout.page_bytes(), 3 * kLarge.bytes());
  EXPECT_EQ(layout.row_bytes(), 6 * kLarge.bytes());
  EXPECT_EQ(layout.place(3), (KvLayout::Place{.group = 1, .slot = 1}));
  EXPECT_EQ(layout.place(4), (KvLayout::Place{.group = 0, .slot = 2}));
}

TEST(KvLayoutTest, BlocksOfTheLayersOfAGroupNeverOverlap) {
  const KvLayout layout = TwoGroups();
  constexpr uint32_t kPages = 5;
  for (const std::vector<int>& layers : {std::vector<int>{0, 2, 4}, std::vector<int>{1, 3}}) {
    std::set<size_t> offsets;
    for (const int layer : layers) {
      for (uint32_t page = 0; page < kPages; ++page) offsets.insert(layout.block_offset(layer, PageId{page}, kPages));
    }
    EXPECT_EQ(offsets.size(), layers.size() * kPages);
    EXPECT_LE(*offsets.rbegin() + layout.block_stride(), kPages * layout.page_bytes());
  }
}

TEST(KvLayoutTest, CountsThePagesOfAllGroups) {
  const KvLayout layout = TwoGroups();
  EXPECT_EQ(layout.pages_for(5), 4);
  EXPECT_EQ(layout.full_pages(7), 2);
  EXPECT_EQ(layout.full_pages(8), 4);
  EXPECT_EQ(layout.tokens_in(3), 4) << "the second group lacks a page of the next tokens";
  EXPECT_EQ(layout.tokens_in(4), 8);
}

TEST(KvLayoutTest, EqualTextsMeanEqualLayouts) {
  EXPECT_EQ(KvLayout(28, kSmall).ToString(), "4 tokens of bf16; 2 heads of 8 in layers 0-27");
  EXPECT_EQ(TwoGroups().ToString(),
            "4 tokens of bf16; 2 heads of 8 in layers 0-0 2-2 4-4; 3 heads of 16 in layers 1-1 3-3");
}

}  // namespace
}  // namespace baton
