// SPDX-License-Identifier: Apache-2.0
#include "engine/kv/prefix_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

namespace baton {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

PageHash Name(uint8_t letter) { return {letter}; }

TEST(PrefixIndexTest, FindsTheLongestRun) {
  PrefixIndex index(8);
  index.Insert(PageId{3}, Name('a'), std::nullopt);
  index.Insert(PageId{1}, Name('b'), PageId{3});
  const std::vector<PageHash> names = {Name('a'), Name('b'), Name('c')};
  EXPECT_THAT(index.FindRun(names), ElementsAre(PageId{3}, PageId{1}));
  EXPECT_THAT(index.FindRun(std::vector{Name('b')}), IsEmpty()) << "it is behind a page that is not asked for";
  EXPECT_THAT(index.FindRun(std::vector{Name('a'), Name('a')}), ElementsAre(PageId{3}));
  EXPECT_THAT(index.FindRun(std::vector{Name('x'), Name('a')}), IsEmpty());
  EXPECT_THAT(index.Find(Name('a')), Optional(PageId{3}));
  EXPECT_TRUE(index.Contains(PageId{1}));
  EXPECT_FALSE(index.Contains(PageId{0}));
}

TEST(PrefixIndexTest, EvictsTheOldestAndChildrenBeforeParents) {
  PrefixIndex index(8);
  // 0 - 1 - 2, with 3 behind 0 as well, and 4 alone.
  index.Insert(PageId{0}, Name('a'), std::nullopt);
  index.Insert(PageId{1}, Name('b'), PageId{0});
  index.Insert(PageId{2}, Name('c'), PageId{1});
  index.Insert(PageId{3}, Name('d'), PageId{0});
  index.Insert(PageId{4}, Name('e'), std::nullopt);
  EXPECT_EQ(index.Evict(), std::nullopt) << "all are in use";
  // The first page of a sequence is given back before its last: that is not the order to evict in.
  for (const uint32_t page : {1, 2, 4, 0, 3}) index.SetIdle(PageId{page});
  EXPECT_EQ(index.evictable_pages(), 5u);
  EXPECT_EQ(index.Evict(), PageId{2});
  EXPECT_EQ(index.Evict(), PageId{1});
  EXPECT_EQ(index.Evict(), PageId{4});
  EXPECT_EQ(index.Evict(), PageId{3});
  EXPECT_EQ(index.Evict(), PageId{0});
  EXPECT_EQ(index.Evict(), std::nullopt);
  EXPECT_EQ(index.evictable_pages(), 0u);
  EXPECT_EQ(index.Find(Name('a')), std::nullopt);
}

TEST(PrefixIndexTest, WhatIsUsedAgainStays) {
  PrefixIndex index(4);
  index.Insert(PageId{0}, Name('a'), std::nullopt);
  index.Insert(PageId{1}, Name('b'), std::nullopt);
  index.SetIdle(PageId{0});
  index.SetIdle(PageId{1});
  index.SetUsed(PageId{0});
  EXPECT_EQ(index.evictable_pages(), 1u);
  index.SetIdle(PageId{0});
  EXPECT_EQ(index.Evict(), PageId{1}) << "0 was used later";
  index.Insert(PageId{1}, Name('c'), std::nullopt);
  EXPECT_EQ(index.Evict(), PageId{0});
}

// Against a plain map, in which pages that are used, or have such behind them, are kept.
TEST(PrefixIndexTest, RandomUseKeepsTheTreeWhole) {
  constexpr uint32_t kPages = 24;
  std::mt19937 random(5);
  PrefixIndex index(kPages);
  struct Page {
    PageHash name;
    std::optional<PageId> parent;
    int users = 0;
  };
  std::map<PageId, Page> pages;
  std::vector<std::vector<PageId>> users;  // each a chain from its first page on
  int names = 0;
  const auto evictable = [&] {
    std::set<PageId> kept;
    for (const auto& [id, page] : pages) {
      EXPECT_EQ(index.Find(page.name), id);
      if (page.users == 0) continue;
      for (std::optional<PageId> at = id; at && kept.insert(*at).second;) at = pages.at(*at).parent;
    }
    return pages.size() - kept.size();
  };
  for (int step = 0; step < 20'000; ++step) {
    if (users.empty() || random() % 2 == 0) {  // a sequence: along an existing chain, then new pages
      std::vector<PageId> chain;
      std::optional<PageId> last;
      for (;;) {
        std::vector<PageId> next;
        for (const auto& [id, page] : pages) {
          if (page.parent == last) next.push_back(id);
        }
        if (next.empty() || random() % 3 == 0) break;
        last = next[random() % next.size()];
        chain.push_back(*last);
      }
      for (const PageId page : chain) {
        if (pages.at(page).users++ == 0) index.SetUsed(page);
      }
      for (uint32_t fresh = random() % 3; fresh > 0; --fresh) {
        std::optional<PageId> page;
        for (uint32_t id = 0; id < kPages && !page; ++id) {
          if (!pages.contains(PageId{id})) page = PageId{id};
        }
        if (!page) {
          page = index.Evict();
          if (!page) break;
          ASSERT_EQ(pages.at(*page).users, 0);
          for (const auto& [id, other] : pages) ASSERT_NE(other.parent, page) << "a page behind it is still there";
          pages.erase(*page);
        }
        PageHash name{};
        ++names;
        std::memcpy(name.data(), &names, sizeof(names));
        index.Insert(*page, name, last);
        pages[*page] = {name, last, 1};
        chain.push_back(*page);
        last = page;
      }
      users.push_back(chain);
    } else {
      const size_t leaving = random() % users.size();
      std::shuffle(users[leaving].begin(), users[leaving].end(), random);
      for (const PageId page : users[leaving]) {
        if (--pages.at(page).users == 0) index.SetIdle(page);
        ASSERT_EQ(index.evictable_pages(), evictable());
      }
      users.erase(users.begin() + static_cast<ptrdiff_t>(leaving));
    }
    ASSERT_EQ(index.evictable_pages(), evictable());
  }
}

}  // namespace
}  // namespace baton
