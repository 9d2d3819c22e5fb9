// SPDX-License-Identifier: Apache-2.0
#include "engine/kv/tiers/kv_tiers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "tests/status_matchers.h"
#include "tests/temp_folder.h"

namespace baton::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr KvBlock kBlock{.kv_heads = 2, .head_dim = 8, .page_tokens = 4, .dtype = KvType::kBF16};

PageHash NameOf(int number) { return {static_cast<uint8_t>(number), static_cast<uint8_t>(number >> 8)}; }
std::vector<PageHash> NamesOf(int first, int count) {
  std::vector<PageHash> names;
  for (int i = 0; i < count; ++i) names.push_back(NameOf(first + i));
  return names;
}

class KvTiersTest : public ::testing::Test {
 protected:
  explicit KvTiersTest(KvLayout layout = {3, kBlock}) : layout_(std::move(layout)) { NewPool(8); }
  ~KvTiersTest() override { tiers_.reset(); }

  void NewPool(uint32_t pages) { pool_ = *PagePool::Create(layout_, pages); }
  KvTiersOptions WithFile() const {
    return {
        .memory_bytes = 0, .file = (folder_.path() / "tier").string(), .file_bytes = 1 << 20, .numerics_id = "model a"};
  }
  void Start(const KvTiersOptions& options) {
    auto tiers = KvTiers::Create(options, pool_.get());
    ASSERT_OK(tiers);
    tiers_ = *std::move(tiers);
  }
  void Restart(const KvTiersOptions& options, uint32_t pages = 8) {
    tiers_.reset();
    NewPool(pages);
    Start(options);
  }

  static uint8_t Mark(int number, int slot) { return static_cast<uint8_t>(17 * number + slot + 1); }
  // Publishes the pages `first`, `first` + 1, ... as one prefix, which is then cached.
  void Cache(int first, int count) {
    std::vector<PageRef> pages = *pool_->Allocate(count);
    for (int i = 0; i < count; ++i) {
      for (int slot = 0; slot < layout_.slots(); ++slot) {
        const std::vector<std::byte> content(layout_.block_stride(), std::byte{Mark(first + i, slot)});
        pool_->WriteBlock(pages[i], slot, content.data());
      }
      pages[i] = pool_->Publish(std::move(pages[i]), NameOf(first + i), i == 0 ? nullptr : &pages[i - 1]);
    }
    pool_->Release(std::move(pages));
  }
  void WaitStored() { ASSERT_TRUE(tiers_->WaitStored(SteadyTime::Now() + kPatience)); }

  std::shared_ptr<TierLoad> NewLoad(int first, int count) {
    auto load = std::make_shared<TierLoad>();
    load->names = NamesOf(first, count);
    load->kinds = tiers_->Find(load->names);
    load->kinds.resize(count);
    load->pages = *pool_->Allocate(count);
    for (const PageRef& page : load->pages) {
      for (int slot = 0; slot < layout_.slots(); ++slot) {
        const std::vector<std::byte> nothing(layout_.block_stride());
        pool_->WriteBlock(page, slot, nothing.data());
      }
    }
    return load;
  }
  void Run(const std::shared_ptr<TierLoad>& load) {
    Mutex mutex;
    CondVar done;
    bool is_done = false;
    tiers_->Load(load, [&] {
      const MutexLock lock(mutex);
      is_done = true;
      done.NotifyAll();
    });
    const MutexLock lock(mutex);
    const SteadyTime deadline = SteadyTime::Now() + kPatience;
    while (!is_done && SteadyTime::Now() < deadline) done.WaitUntil(mutex, deadline);
    ASSERT_TRUE(is_done);
  }
  // Loads the pages, and compares those that came.
  int LoadAndCompare(int first, int count) {
    const auto load = NewLoad(first, count);
    Run(load);
    for (int i = 0; i < load->loaded; ++i) {
      for (int slot = 0; slot < layout_.slots(); ++slot) {
        const std::byte* const block =
            pool_->data() +
            (size_t(slot) * pool_->pages_total() + ToIndex(load->pages[i].id())) * layout_.block_stride();
        for (size_t byte = 0; byte < layout_.block_stride(); ++byte) {
          if (block[byte] != std::byte{Mark(first + i, slot)}) {
            ADD_FAILURE() << "page " << first + i << " slot " << slot << " byte " << byte;
            return -1;
          }
        }
      }
    }
    // As the scheduler does: the loader may keep the load for a moment longer.
    pool_->Release(std::move(load->pages));
    return load->loaded;
  }
  // Evicts all cached pages.
  void EvictAll() { pool_->Release(*pool_->Allocate(static_cast<int>(pool_->pages_total()))); }

  TempFolder folder_;
  const KvLayout layout_;
  std::unique_ptr<PagePool> pool_;
  std::unique_ptr<KvTiers> tiers_;
};

TEST_F(KvTiersTest, EvictedPagesComeBackFromMemoryWithTheirContent) {
  Start({.memory_bytes = 1 << 20, .file = "", .file_bytes = 0, .numerics_id = "model a"});
  Cache(1, 5);
  WaitStored();
  EvictAll();
  EXPECT_EQ(pool_->CountPublished(NamesOf(1, 5)), 0);
  EXPECT_THAT(tiers_->Find(NamesOf(1, 6)), SizeIs(5));
  EXPECT_EQ(LoadAndCompare(1, 5), 5);
  EXPECT_EQ(tiers_->counts().lost, 0u);
}

TEST_F(KvTiersTest, ALaterProcessLoadsThePagesFromTheFile) {
  Start(WithFile());
  Cache(1, 5);
  Cache(20, 2);
  WaitStored();
  Restart(WithFile());
  EXPECT_THAT(tiers_->Find(NamesOf(1, 6)),
              ElementsAre(TierKind::kFile, TierKind::kFile, TierKind::kFile, TierKind::kFile, TierKind::kFile));
  EXPECT_EQ(LoadAndCompare(1, 5), 5);
  EXPECT_EQ(LoadAndCompare(20, 2), 2);
}

TEST_F(KvTiersTest, PagesOfAnotherModelAreForgotten) {
  Start(WithFile());
  Cache(1, 5);
  WaitStored();
  KvTiersOptions other = WithFile();
  other.numerics_id = "model b";
  Restart(other);
  EXPECT_THAT(tiers_->Find(NamesOf(1, 5)), IsEmpty());
}

TEST_F(KvTiersTest, MemoryComesBeforeTheFileAndAPageFromTheFileReturnsToMemory) {
  KvTiersOptions options = WithFile();
  options.memory_bytes = 2 * layout_.page_bytes();
  Start(options);
  for (int page = 1; page <= 3; ++page) {
    Cache(page, 1);
    WaitStored();
  }
  // Memory has room for two pages.
  EXPECT_THAT(tiers_->Find(NamesOf(1, 3)), ElementsAre(TierKind::kFile, TierKind::kMemory, TierKind::kMemory));
  EvictAll();
  EXPECT_EQ(LoadAndCompare(1, 3), 3);
  Cache(1, 1);
  WaitStored();
  EXPECT_THAT(tiers_->Find(NamesOf(1, 1)), ElementsAre(TierKind::kMemory));
}

TEST_F(KvTiersTest, ALoadEndsBeforeAPageThatIsDamaged) {
  Start(WithFile());
  Cache(1, 4);
  WaitStored();
  const uint32_t slots = tiers_->slots();
  tiers_.reset();
  {
    // Pages are written in order: the third slot.
    std::fstream file(WithFile().file, std::ios::in | std::ios::out | std::ios::binary);
    const auto slot = static_cast<std::streamoff>(StorageBytes(layout_.page_bytes()));
    file.seekp(0, std::ios::end);
    const std::streamoff data = static_cast<std::streamoff>(file.tellp()) - slot * slots;
    file.seekp(data + 2 * slot + 5);
    file.put('\xff');
    ASSERT_TRUE(file.good());
  }
  NewPool(8);
  Start(WithFile());
  EXPECT_EQ(LoadAndCompare(1, 4), 2);
  EXPECT_EQ(tiers_->counts().tiers[0].second.corrupt, 1u);
  EXPECT_THAT(tiers_->Find(NamesOf(1, 4)), SizeIs(2));
  Cache(1, 4);  // computed again
  WaitStored();
  EXPECT_THAT(tiers_->Find(NamesOf(1, 4)), SizeIs(4));
  EvictAll();
  EXPECT_EQ(LoadAndCompare(1, 4), 4);
}

TEST_F(KvTiersTest, ALoadThatIsGivenUpKeepsItsPagesAndReturnsThem) {
  Start({.memory_bytes = 1 << 20, .file = "", .file_bytes = 0, .numerics_id = "model a"});
  Cache(1, 4);
  WaitStored();
  EvictAll();
  auto load = NewLoad(1, 4);
  load->given_up = true;
  Run(load);
  EXPECT_EQ(load->loaded, 0);
  EXPECT_EQ(pool_->counts().used, 4u);
  load.reset();
  // The load thread drops its reference soon.
  const SteadyTime deadline = SteadyTime::Now() + kPatience;
  while (pool_->counts().used > 0 && SteadyTime::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(pool_->counts().used, 0u);
}

TEST_F(KvTiersTest, NewsListAPageWhileThePoolOrATierHasIt) {
  Start({.memory_bytes = 2 * layout_.page_bytes(), .file = "", .file_bytes = 0, .numerics_id = "model a"});
  Cache(1, 2);
  WaitStored();
  const PageNews first = pool_->NewsSince(0);
  EXPECT_THAT(first.added, ::testing::UnorderedElementsAre(NameOf(1), NameOf(2)));
  EvictAll();
  EXPECT_THAT(pool_->NewsSince(first.version).removed, IsEmpty()) << "the tier has both";
  Cache(9, 1);
  WaitStored();  // evicts 2 from the tier
  const PageNews next = pool_->NewsSince(first.version);
  EXPECT_THAT(next.added, ElementsAre(NameOf(9)));
  EXPECT_THAT(next.removed, ElementsAre(NameOf(2)));
  EXPECT_THAT(pool_->NewsSince(0).added, ::testing::UnorderedElementsAre(NameOf(1), NameOf(9)));
}

TEST_F(KvTiersTest, NewsListThePagesOfAFileFromTheStart) {
  Start(WithFile());
  Cache(1, 3);
  WaitStored();
  Restart(WithFile());
  EXPECT_THAT(pool_->NewsSince(0).added, ::testing::UnorderedElementsAre(NameOf(1), NameOf(2), NameOf(3)));
}

TEST_F(KvTiersTest, ASecondWorkerOnTheFileIsRefused) {
  Start(WithFile());
  const auto other = *PagePool::Create(layout_, 8);
  EXPECT_TRUE(Fails(KvTiers::Create(WithFile(), other.get()), absl::StatusCode::kFailedPrecondition,
                    "another process uses the file"));
}

TEST_F(KvTiersTest, PagesThatAreEvictedBeforeTheirCopyAreCounted) {
  pool_->QueueIdle([] {});  // as a store thread that does not get to run
  Cache(1, 4);
  Cache(1, 4);  // used again: no page is queued twice
  EvictAll();
  EXPECT_EQ(pool_->evicted_from_queue(), 4u);
  EXPECT_EQ(pool_->NextIdle(), std::nullopt);
  Cache(1, 2);
  const auto page = pool_->NextIdle();
  ASSERT_TRUE(page.has_value());
  EXPECT_EQ(page->name, NameOf(1));
  std::vector<std::byte> block(layout_.block_stride());
  EXPECT_TRUE(pool_->CopyBlock(*page, 1, block.data()));
  EXPECT_EQ(block[0], std::byte{Mark(1, 1)});
  const auto second = pool_->NextIdle();
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->parent, NameOf(1));
  EvictAll();
  EXPECT_FALSE(pool_->CopyBlock(*page, 1, block.data())) << "the page may hold other content now";
  EXPECT_EQ(pool_->evicted_from_queue(), 4u) << "both had left the queue";
}

TEST_F(KvTiersTest, AnEvictedPageThatATierHasIsNotLost) {
  pool_->QueueIdle([] {});
  pool_->SetInTier(NameOf(2), true);
  Cache(1, 3);
  EvictAll();
  EXPECT_EQ(pool_->evicted_from_queue(), 2u);
}

// A callback that does not return stands in for a read that hangs.
class HangingLoadTest : public KvTiersTest {
 protected:
  HangingLoadTest() { Start({.memory_bytes = 1 << 20, .file = "", .file_bytes = 0, .numerics_id = "model a"}); }
  ~HangingLoadTest() override {
    Release();
    tiers_.reset();
  }

  // Returns once the load thread hangs.
  void Hang() {
    tiers_->Load(NewLoad(1, 1), [this] {
      const MutexLock lock(mutex_);
      hangs_ = true;
      changed_.NotifyAll();
      while (!released_) changed_.WaitUntil(mutex_, SteadyTime::Now() + kPatience);
    });
    const MutexLock lock(mutex_);
    const SteadyTime deadline = SteadyTime::Now() + kPatience;
    while (!hangs_ && SteadyTime::Now() < deadline) changed_.WaitUntil(mutex_, deadline);
    ASSERT_TRUE(hangs_);
  }
  void Release() {
    const MutexLock lock(mutex_);
    released_ = true;
    changed_.NotifyAll();
  }

  Mutex mutex_;
  CondVar changed_;
  bool hangs_ = false;
  bool released_ = false;
};

TEST_F(HangingLoadTest, LoadsBehindAHangingLoadReturnTheirPagesOnceGivenUp) {
  Hang();
  const uint32_t used = pool_->counts().used;
  auto kept = NewLoad(2, 1);
  auto dropped = NewLoad(3, 2);
  bool told = false;
  tiers_->Load(kept, [] {});
  tiers_->Load(dropped, [&] { told = true; });
  tiers_->DropGivenUp();
  EXPECT_FALSE(told);
  dropped->given_up = true;
  tiers_->DropGivenUp();
  EXPECT_TRUE(told);
  EXPECT_EQ(dropped->loaded, 0);
  dropped.reset();
  EXPECT_EQ(pool_->counts().used, used + 1);
}

TEST_F(HangingLoadTest, AHangingLoadIsOverdueUntilItsEnd) {
  EXPECT_EQ(tiers_->speed().overdue_seconds, 0);
  Hang();
  absl::SleepFor(absl::Milliseconds(20));
  const TierSpeed speed = tiers_->speed();
  EXPECT_GE(speed.overdue_seconds, 0.02);
  EXPECT_GE(speed.queued_seconds, speed.overdue_seconds);
  Release();
  const SteadyTime deadline = SteadyTime::Now() + kPatience;
  while (tiers_->speed().overdue_seconds > 0 && SteadyTime::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(tiers_->speed().overdue_seconds, 0);
}

TEST_F(HangingLoadTest, TheWayToTheLoaderIsMeasuredWhileTheLoaderIsIdle) {
  // The loader may be about to become idle.
  const SteadyTime give_up = SteadyTime::Now() + kPatience;
  while (tiers_->speed().wait_seconds == 0 && SteadyTime::Now() < give_up) Run(NewLoad(1, 1));
  Hang();
  const double idle = tiers_->speed().wait_seconds;
  EXPECT_GT(idle, 0);
  Mutex mutex;
  CondVar done;
  bool is_done = false;
  tiers_->Load(NewLoad(2, 1), [&] {
    const MutexLock lock(mutex);
    is_done = true;
    done.NotifyAll();
  });
  Release();
  const MutexLock lock(mutex);
  while (!is_done && SteadyTime::Now() < give_up) done.WaitUntil(mutex, give_up);
  ASSERT_TRUE(is_done);
  EXPECT_EQ(tiers_->speed().wait_seconds, idle);
}

// The pool evicts and reuses pages while the store thread copies: what a tier has is never a mixture.
TEST_F(KvTiersTest, APageIsStoredWhileASequenceHoldsIt) {
  Start(WithFile());
  std::vector<PageRef> pages = *pool_->Allocate(1);
  const PageRef held = pool_->Publish(std::move(pages[0]), Name(1), nullptr);
  WaitStored();
  EXPECT_THAT(tiers_->Find(NamesOf(1, 1)), SizeIs(1));
}

TEST_F(KvTiersTest, ACopyNeverMixesPages) {
  Start({.memory_bytes = 1 << 20, .file = "", .file_bytes = 0, .numerics_id = "model a"});
  for (int round = 0; round < 300; ++round) Cache(1 + round % 40 * 6, 6);
  WaitStored();
  EvictAll();
  int loaded = 0;
  for (int prefix = 0; prefix < 40; ++prefix) {
    const int first = 1 + prefix * 6;
    const int found = static_cast<int>(tiers_->Find(NamesOf(first, 6)).size());
    EXPECT_EQ(LoadAndCompare(first, found), found);
    loaded += found;
  }
  EXPECT_GT(loaded, 0);
}

class GroupedKvTiersTest : public KvTiersTest {
 protected:
  GroupedKvTiersTest()
      : KvTiersTest(KvLayout({kBlock, {.kv_heads = 1, .head_dim = 8, .page_tokens = 4, .dtype = KvType::kBF16}},
                             std::vector<int>{0, 0, 0, 1})) {}
};

TEST_F(GroupedKvTiersTest, PagesOfEveryGroupComeBack) {
  Start({.memory_bytes = 1 << 20, .file = "", .file_bytes = 0, .numerics_id = "model a"});
  Cache(1, 6);
  WaitStored();
  EvictAll();
  EXPECT_EQ(LoadAndCompare(1, 6), 6);
}

}  // namespace
}  // namespace baton::testing
