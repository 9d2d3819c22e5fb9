// SPDX-License-Identifier: Apache-2.0
#include "engine/kv/page_pool.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "tests/status_matchers.h"

namespace baton {
namespace {

using testing::Fails;

constexpr KvBlock kBlock{.kv_heads = 2, .head_dim = 8, .page_tokens = 4, .dtype = KvType::kBF16};
KvLayout SmallLayout() { return {3, kBlock}; }

std::unique_ptr<PagePool> NewPool(uint32_t pages) {
  auto pool = PagePool::Create(SmallLayout(), pages);
  EXPECT_OK(pool);
  return *std::move(pool);
}

std::vector<uint32_t> Ids(const std::vector<PageRef>& pages) {
  std::vector<uint32_t> ids;
  ids.reserve(pages.size());
  for (const PageRef& page : pages) ids.push_back(ToIndex(page.id()));
  return ids;
}

void ExpectCounts(const PagePool& pool, uint32_t free, uint32_t used, uint32_t quarantined) {
  const PageCounts counts = pool.counts();
  EXPECT_EQ(counts.free, free);
  EXPECT_EQ(counts.used, used);
  EXPECT_EQ(counts.quarantined, quarantined);
  EXPECT_EQ(counts.cached, 0u);
  EXPECT_EQ(counts.total, free + used + quarantined);
}

TEST(PagePoolTest, BlocksAreDisjointWritableMemoryInLayoutOrder) {
  const auto pool = NewPool(5);
  const size_t block_bytes = pool->layout().block_stride();
  EXPECT_EQ(pool->bytes(), 15 * block_bytes);
  std::set<const std::byte*> blocks;
  for (int layer = 0; layer < 3; ++layer) {
    for (uint32_t page = 0; page < 5; ++page) {
      std::byte* const block = pool->block(layer, PageId{page});
      EXPECT_EQ(block, pool->data() + size_t(layer * 5 + page) * block_bytes);
      std::memset(block, layer * 5 + page, block_bytes);
    }
  }
  for (size_t i = 0; i < pool->bytes(); ++i) ASSERT_EQ(pool->data()[i], std::byte(i / block_bytes));
}

TEST(PagePoolTest, PrefaultedMemoryIsThereBeforeItIsUsed) {
  constexpr uint32_t kManyPages = 20000;  // 15 MB
  const auto resident = [](const PagePool& pool) {
    std::vector<unsigned char> pages((pool.bytes() + 4095) / 4096);
    EXPECT_EQ(mincore(pool.data(), pool.bytes(), pages.data()), 0);
    return std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) != 0; });
  };
  const auto pool = NewPool(kManyPages);
  const auto pages = static_cast<ptrdiff_t>((pool->bytes() + 4095) / 4096);
  EXPECT_LT(resident(*pool), pages / 2);
  EXPECT_OK(pool->Prefault(3));
  EXPECT_EQ(resident(*pool), pages);
}

TEST(PagePoolTest, AllocatesAllOrNone) {
  const auto pool = NewPool(8);
  ASSERT_OK_AND_ASSIGN(const std::vector<PageRef> five, pool->Allocate(5));
  ExpectCounts(*pool, 3, 5, 0);
  EXPECT_TRUE(Fails(pool->Allocate(4), absl::StatusCode::kResourceExhausted, "4 KV pages requested, 3 of 8 available"));
  ExpectCounts(*pool, 3, 5, 0);
  ASSERT_OK_AND_ASSIGN(const std::vector<PageRef> three, pool->Allocate(3));
  ExpectCounts(*pool, 0, 8, 0);

  std::vector<uint32_t> ids = Ids(five);
  const std::vector<uint32_t> more = Ids(three);
  ids.insert(ids.end(), more.begin(), more.end());
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(ids, (std::vector<uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(PagePoolTest, AllocatingNothingSucceedsEvenWhenFull) {
  const auto pool = NewPool(1);
  ASSERT_OK_AND_ASSIGN(const std::vector<PageRef> all, pool->Allocate(1));
  ASSERT_OK_AND_ASSIGN(const std::vector<PageRef> none, pool->Allocate(0));
  EXPECT_TRUE(none.empty());
  EXPECT_TRUE(Fails(pool->Allocate(-1), absl::StatusCode::kInvalidArgument, "-1"));
}

TEST(PagePoolTest, PrefersARunOfNeighbours) {
  const auto pool = NewPool(16);
  ASSERT_OK_AND_ASSIGN(std::vector<PageRef> pages, pool->Allocate(16));
  // Free 1, 3, 5 and the run 8 to 11.
  for (const int i : {1, 3, 5, 8, 9, 10, 11}) pages[i].Reset();
  ASSERT_OK_AND_ASSIGN(const std::vector<PageRef> run, pool->Allocate(4));
  EXPECT_EQ(Ids(run), (std::vector<uint32_t>{8, 9, 10, 11}));
}

TEST(PagePoolTest, FindsARunThatBeginsBeforeWhereTheLastSearchEnded) {
  const auto pool = NewPool(8);
  ASSERT_OK_AND_ASSIGN(std::vector<PageRef> first, pool->Allocate(4));   // 0 to 3
  ASSERT_OK_AND_ASSIGN(std::vector<PageRef> second, pool->Allocate(3));  // 4 to 6; the next search starts at 7
  first.clear();
  second[0].Reset();
  ASSERT_OK_AND_ASSIGN(const std::vector<PageRef> run, pool->Allocate(5));
  EXPECT_EQ(Ids(run), (std::vector<uint32_t>{0, 1, 2, 3, 4}));
}

TEST(PagePoolTest, TakesScatteredPagesWhenThereIsNoRun) {
  const auto pool = NewPool(8);
  ASSERT_OK_AND_ASSIGN(std::vector<PageRef> pages, pool->Allocate(8));
  for (const int i : {0, 2, 4, 7}) pages[i].Reset();
  ASSERT_OK_AND_ASSIGN(const std::vector<PageRef> scattered, pool->Allocate(4));
  std::vector<uint32_t> ids = Ids(scattered);
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(ids, (std::vector<uint32_t>{0, 2, 4, 7}));
}

TEST(PageRefTest, GivesItsPageBackOnceWhateverTheMoves) {
  const auto pool = NewPool(4);
  {
    ASSERT_OK_AND_ASSIGN(std::vector<PageRef> pages, pool->Allocate(2));
    PageRef a = std::move(pages[0]);
    PageRef b = std::move(a);
    ExpectCounts(*pool, 2, 2, 0);
    b = std::move(pages[1]);  // the page b had goes back
    ExpectCounts(*pool, 3, 1, 0);
    PageRef& same = b;
    b = std::move(same);
    ExpectCounts(*pool, 3, 1, 0);
    b.Reset();
    b.Reset();
    ExpectCounts(*pool, 4, 0, 0);
  }
  ExpectCounts(*pool, 4, 0, 0);
}

TEST(PageRefTest, QuarantinedPagesAreNeitherFreeNorUsed) {
  const auto pool = NewPool(4);
  ASSERT_OK_AND_ASSIGN(std::vector<PageRef> pages, pool->Allocate(3));
  pages[0].SetQuarantined(true);
  pages[1].SetQuarantined(true);
  pages[1].SetQuarantined(true);
  ExpectCounts(*pool, 1, 1, 2);
  EXPECT_TRUE(Fails(pool->Allocate(2), absl::StatusCode::kResourceExhausted, "1 of 4 available"));

  pages[0].SetQuarantined(false);  // the peer came back
  ExpectCounts(*pool, 1, 2, 1);
  pages.clear();  // pages[1] was revoked
  ExpectCounts(*pool, 4, 0, 0);
  PageRef().SetQuarantined(true);
}

TEST(PageRefTest, ThePoolKnowsSinceWhenItsOldestQuarantineLasts) {
  const auto pool = NewPool(4);
  const SteadyTime start;
  const auto after = [start](int seconds) { return start + absl::Seconds(seconds); };
  ASSERT_OK_AND_ASSIGN(std::vector<PageRef> pages, pool->Allocate(3));
  EXPECT_EQ(pool->quarantined_since(), std::nullopt);

  pages[1].SetQuarantined(true, after(10));
  pages[0].SetQuarantined(true, after(20));
  pages[2].SetQuarantined(true, after(30));
  EXPECT_EQ(pool->quarantined_since(), after(10));
  pages[1].SetQuarantined(true, after(40));
  EXPECT_EQ(pool->quarantined_since(), after(10)) << "the page was in quarantine all the time";

  pages[1].SetQuarantined(false, after(50));  // the peer came back
  EXPECT_EQ(pool->quarantined_since(), after(20));
  pages[0].Reset();  // its peer was revoked
  EXPECT_EQ(pool->quarantined_since(), after(30));
  pages[1].SetQuarantined(true, after(60));
  EXPECT_EQ(pool->quarantined_since(), after(30));
  pages[2].Reset();
  EXPECT_EQ(pool->quarantined_since(), after(60)) << "not the time of its first quarantine";
  pages.clear();
  EXPECT_EQ(pool->quarantined_since(), std::nullopt);
}

PageHash NameOf(int letter) { return {static_cast<uint8_t>(letter)}; }

// Publishes `count` new pages as "a", "b", ... behind each other.
std::vector<PageRef> PublishChain(PagePool& pool, int count) {
  std::vector<PageRef> pages = *pool.Allocate(count);
  for (int i = 0; i < count; ++i) {
    pages[i] = pool.Publish(std::move(pages[i]), NameOf('a' + i), i == 0 ? nullptr : &pages[i - 1]);
  }
  return pages;
}

TEST(PublishedPagesTest, AreSharedThenCachedThenGoneWhenPagesRunOut) {
  const auto pool = NewPool(6);
  std::vector<PageRef> chain = PublishChain(*pool, 3);
  const std::vector<uint32_t> ids = Ids(chain);
  const std::vector<PageHash> names = {NameOf('a'), NameOf('b'), NameOf('x')};
  {
    ASSERT_OK_AND_ASSIGN(const SharedPages shared, pool->AllocateShared(names, 4));
    EXPECT_EQ(shared.cached, 2);
    EXPECT_EQ(shared.pages[0].id(), chain[0].id());
    EXPECT_EQ(shared.pages[1].id(), chain[1].id());
    EXPECT_EQ(pool->counts().used, 5u);
    chain.clear();
    EXPECT_EQ(pool->counts().used, 4u) << "two of them are held by the other one, too";
    EXPECT_EQ(pool->counts().cached, 1u);
  }
  EXPECT_EQ(pool->counts().cached, 3u);
  EXPECT_EQ(pool->counts().free, 3u);

  ASSERT_OK_AND_ASSIGN(std::vector<PageRef> four, pool->Allocate(4));
  EXPECT_EQ(pool->counts().cached, 2u);
  EXPECT_TRUE(pool->IsPublished(NameOf('b')));
  EXPECT_FALSE(pool->IsPublished(NameOf('c'))) << "the last of the chain goes first";
  EXPECT_TRUE(Fails(pool->Allocate(3), absl::StatusCode::kResourceExhausted, "2 of 6 available"));
  ASSERT_OK_AND_ASSIGN(const std::vector<PageRef> rest, pool->Allocate(2));
  EXPECT_EQ(pool->counts().cached, 0u);
  EXPECT_FALSE(pool->IsPublished(NameOf('a')));
}

TEST(PublishedPagesTest, WhatDoesNotFitTakesNothing) {
  const auto pool = NewPool(4);
  PublishChain(*pool, 2);
  const std::vector<PageHash> names = {NameOf('a'), NameOf('b')};
  // Two cached ones are part of it: two others remain, and shall.
  EXPECT_TRUE(
      Fails(pool->AllocateShared(names, 4, /*spare=*/1), absl::StatusCode::kResourceExhausted, "2 of 4 available"));
  EXPECT_EQ(pool->counts().cached, 2u);
  ASSERT_OK_AND_ASSIGN(const SharedPages all, pool->AllocateShared(names, 4));
  EXPECT_EQ(all.cached, 2);
  ASSERT_OK_AND_ASSIGN(const SharedPages again, pool->AllocateShared(names, 1));
  EXPECT_EQ(again.pages.size(), 1u);
}

TEST(PublishedPagesTest, TheFirstOneToPublishAContentKeepsIt) {
  const auto pool = NewPool(4);
  const std::vector<PageRef> chain = PublishChain(*pool, 1);
  std::vector<PageRef> late = *pool->Allocate(1);
  PageRef published = pool->Publish(std::move(late[0]), NameOf('a'), nullptr);
  EXPECT_EQ(published.id(), chain[0].id());
  EXPECT_EQ(pool->counts().used, 1u) << "the other page went back";
}

TEST(PagePoolTest, ManyPagesAreGivenBackWithOneCall) {
  const auto pool = NewPool(8);
  int calls = 0;
  pool->set_on_free([&] { ++calls; });
  std::vector<PageRef> pages = *pool->Allocate(5);
  pages[1].Reset();
  EXPECT_EQ(calls, 1);
  pool->Release(std::move(pages));
  EXPECT_EQ(calls, 2);
  ExpectCounts(*pool, 8, 0, 0);
  pool->Release({});
  EXPECT_EQ(calls, 2);
}

TEST(PublishedPagesTest, CachedPagesAreAnnouncedAsFree) {
  const auto pool = NewPool(2);
  int calls = 0;
  pool->set_on_free([&] { ++calls; });
  std::vector<PageRef> chain = PublishChain(*pool, 1);
  ASSERT_OK_AND_ASSIGN(SharedPages shared, pool->AllocateShared(std::vector{NameOf('a')}, 1));
  chain.clear();
  EXPECT_EQ(calls, 0);
  shared.pages.clear();
  EXPECT_EQ(calls, 1);
}

TEST(PagePoolTest, SaysWhenPagesBecameFreeAndMayBeCalledBackThen) {
  const auto pool = NewPool(2);
  std::vector<uint32_t> free_seen;
  pool->set_on_free([&] { free_seen.push_back(pool->counts().free); });
  ASSERT_OK_AND_ASSIGN(std::vector<PageRef> pages, pool->Allocate(2));
  EXPECT_TRUE(free_seen.empty());
  pages[1].Reset();
  pages[0].SetQuarantined(true);
  EXPECT_EQ(free_seen, (std::vector<uint32_t>{1}));
  pages[0].Reset();
  EXPECT_EQ(free_seen, (std::vector<uint32_t>{1, 2}));
}

TEST(PagePoolTest, ForeignMemoryIsUsedAndReleasedOnce) {
  std::vector<std::byte> memory(4 * SmallLayout().page_bytes());
  int releases = 0;
  {
    size_t asked = 0;
    ASSERT_OK_AND_ASSIGN(const auto pool,
                         PagePool::Create(SmallLayout(), 4, [&](size_t bytes) -> absl::StatusOr<PoolMemory> {
                           asked = bytes;
                           return PoolMemory{memory.data(), {nullptr, [&](void*) { ++releases; }}};
                         }));
    EXPECT_EQ(asked, memory.size());
    EXPECT_EQ(pool->data(), memory.data());
    EXPECT_EQ(releases, 0);
  }
  EXPECT_EQ(releases, 1);
}

TEST(PagePoolTest, KnowsTheKindOfItsMemory) {
  EXPECT_EQ(NewPool(4)->memory_kind(), MemoryKind::kHost);
  std::vector<std::byte> memory(4 * SmallLayout().page_bytes());
  ASSERT_OK_AND_ASSIGN(const auto pool, PagePool::Create(SmallLayout(), 4, [&](size_t) -> absl::StatusOr<PoolMemory> {
                         return PoolMemory{memory.data(), nullptr, MemoryKind::kDevice};
                       }));
  EXPECT_EQ(pool->memory_kind(), MemoryKind::kDevice);
  EXPECT_OK(pool->Prefault(1));
}

// A sequence can begin only where the pages of all groups are there.
TEST(PagePoolTest, SharesAsManyPagesOfEachGroup) {
  const auto pool = *PagePool::Create(KvLayout({kBlock, kBlock}, std::array{0, 1}), 8);
  std::vector<PageHash> names;
  ExtendPageHashes(PageHashRoot("m", "", ""), std::vector<TokenId>(8), 4, names, /*groups=*/2);
  std::vector<PageRef> pages = *pool->Allocate(3);
  for (size_t i = 0; i < pages.size(); ++i) {
    pages[i] = pool->Publish(std::move(pages[i]), names[i], i == 0 ? nullptr : &pages[i - 1]);
  }
  EXPECT_EQ(pool->CountPublished(names), 2);
  EXPECT_EQ(pool->Share(names).size(), 2u);
  const SharedPages shared = *pool->AllocateShared(names, 4);
  EXPECT_EQ(shared.cached, 2);
  EXPECT_EQ(Ids(shared.pages), (std::vector<uint32_t>{0, 1, 3, 4}));
}

TEST(PagePoolTest, MemoryThatCannotBeHadIsAnError) {
  const auto refuse = [](size_t) -> absl::StatusOr<PoolMemory> { return absl::ResourceExhaustedError("pinned"); };
  EXPECT_TRUE(
      Fails(PagePool::Create(SmallLayout(), 4, refuse), absl::StatusCode::kResourceExhausted, "3072 bytes: pinned"));
  KvBlock huge = kBlock;
  huge.head_dim = 1 << 14;
  EXPECT_TRUE(Fails(PagePool::Create(KvLayout(1 << 20, huge), 1 << 10), absl::StatusCode::kResourceExhausted, "bytes"));
  huge.kv_heads = huge.page_tokens = 1 << 30;
  EXPECT_TRUE(
      Fails(PagePool::Create(KvLayout(1 << 20, huge), 1 << 10), absl::StatusCode::kResourceExhausted, "can address"));
}

TEST(PagePoolTest, RefusesEmptyLayouts) {
  EXPECT_TRUE(Fails(PagePool::Create(SmallLayout(), 0), absl::StatusCode::kInvalidArgument, "at least one page"));
  EXPECT_TRUE(Fails(PagePool::Create({0, kBlock}, 1), absl::StatusCode::kInvalidArgument, "at least one layer"));
  EXPECT_TRUE(Fails(PagePool::Create({3, {.kv_heads = 2}}, 1), absl::StatusCode::kInvalidArgument, "positive"));
}

TEST(PagePoolTest, ThreadsNeverHoldTheSamePage) {
  constexpr uint32_t kPages = 64;
  const auto pool = NewPool(kPages);
  std::atomic<int> freed = 0;
  pool->set_on_free([&] { ++freed; });
  std::vector<std::atomic<int>> holders(kPages);
  std::atomic<int> allocated = 0;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (uint32_t seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      for (int i = 0; i < 2000; ++i) {
        absl::StatusOr<std::vector<PageRef>> pages = pool->Allocate(1 + random() % 24);
        if (!pages.ok()) continue;
        allocated += static_cast<int>(pages->size());
        for (PageRef& page : *pages) {
          ASSERT_EQ(holders[ToIndex(page.id())]++, 0);
          page.SetQuarantined(random() % 2 == 0);
        }
        for (const PageRef& page : *pages) --holders[ToIndex(page.id())];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ExpectCounts(*pool, kPages, 0, 0);
  EXPECT_EQ(freed, allocated);
}

// Each thread takes the pages of a prompt from a small family, publishes what it computed and gives all back. A page's
// first byte says whose content it holds: nobody may find another's.
TEST(PublishedPagesTest, ThreadsFindWhatTheNamesSay) {
  constexpr uint32_t kPages = 32;
  const auto pool = NewPool(kPages);
  const auto content = [&](const PageRef& page) {
    return reinterpret_cast<std::atomic<int>*>(pool->block(0, page.id()));
  };
  std::atomic<int> found = 0;
  std::vector<std::thread> threads;
  for (uint32_t seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      for (int i = 0; i < 4000; ++i) {
        const int family = static_cast<int>(random() % 6);
        const int length = 1 + static_cast<int>(random() % 6);
        std::vector<PageHash> names(length);
        for (int n = 0; n < length; ++n) names[n] = {static_cast<uint8_t>(1 + family), static_cast<uint8_t>(1 + n)};
        absl::StatusOr<SharedPages> shared = pool->AllocateShared(names, length);
        if (!shared.ok()) continue;
        found += shared->cached;
        std::vector<PageRef>& pages = shared->pages;
        for (int n = 0; n < length; ++n) {
          const int expected = 100 * family + n;
          if (n < shared->cached) {
            ASSERT_EQ(content(pages[n])->load(), expected);
          } else {
            content(pages[n])->store(expected);
            pages[n] = pool->Publish(std::move(pages[n]), names[n], n == 0 ? nullptr : &pages[n - 1]);
            ASSERT_EQ(content(pages[n])->load(), expected);
          }
        }
        std::shuffle(pages.begin(), pages.end(), random);  // given back in any order
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(found, 0);
  EXPECT_EQ(pool->counts().used, 0u);
  ASSERT_OK_AND_ASSIGN(const std::vector<PageRef> all, pool->Allocate(kPages));
}

}  // namespace
}  // namespace baton
