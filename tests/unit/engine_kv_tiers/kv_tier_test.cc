// SPDX-License-Identifier: Apache-2.0
#include "engine/kv/tiers/kv_tier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "engine/kv/tiers/memory_storage.h"
#include "tests/status_matchers.h"

namespace baton::testing {
namespace {

using ::testing::Optional;
using ::testing::UnorderedElementsAre;

constexpr size_t kPageBytes = 100;
using Content = std::vector<std::byte>;

PageHash Name(char letter) { return {static_cast<uint8_t>(letter)}; }
Content ContentOf(char letter) { return Content(StorageBytes(kPageBytes), static_cast<std::byte>(letter)); }

// Keeps its slots outside, so that a test can damage them and a later tier finds them.
struct Disk {
  std::map<uint32_t, std::pair<PageRecord, Content>> slots;
  std::vector<RestoredPage> restored;
  absl::Status next_write = absl::OkStatus();
  absl::Status next_read = absl::OkStatus();
  std::function<void()> during_read = nullptr;
};

class FakeStorage final : public TierStorage {
 public:
  FakeStorage(Disk* disk, uint32_t slots) : disk_(*disk), slots_(slots) {}
  std::string_view name() const override { return "fake"; }
  uint32_t slots() const override { return slots_; }
  absl::Status Write(uint32_t slot, const PageRecord& record, std::span<const std::byte> content) override {
    if (!disk_.next_write.ok()) return std::exchange(disk_.next_write, absl::OkStatus());
    disk_.slots[slot] = {record, {content.begin(), content.end()}};
    return absl::OkStatus();
  }
  absl::Status Read(uint32_t slot, std::span<std::byte> content) override {
    if (disk_.during_read) disk_.during_read();
    if (!disk_.next_read.ok()) return std::exchange(disk_.next_read, absl::OkStatus());
    const Content& stored = disk_.slots.at(slot).second;
    std::copy(stored.begin(), stored.end(), content.begin());
    return absl::OkStatus();
  }
  std::vector<RestoredPage> Restore() override { return disk_.restored; }

 private:
  Disk& disk_;
  const uint32_t slots_;
};

class KvTierTest : public ::testing::Test {
 protected:
  std::optional<PageHash> Store(KvTier& tier, char letter, std::optional<char> parent = std::nullopt) {
    const Content content = ContentOf(letter);
    PageRecord record{.name = Name(letter), .parent = {}, .checksum = ChecksumOf(std::span(content).first(kPageBytes))};
    if (parent.has_value()) record.parent = Name(*parent);
    return tier.Store(record, content);
  }
  static bool Loads(KvTier& tier, char letter) {
    Content content(StorageBytes(kPageBytes));
    if (!tier.Load(Name(letter), content)) return false;
    EXPECT_EQ(std::memcmp(content.data(), ContentOf(letter).data(), kPageBytes), 0);
    return true;
  }
  std::unique_ptr<KvTier> NewTier(uint32_t slots) {
    return std::make_unique<KvTier>(std::make_unique<FakeStorage>(&disk_, slots), kPageBytes);
  }

  Disk disk_;
};

TEST_F(KvTierTest, KeepsWhatItStoresAndNoMoreThanItsSlots) {
  ASSERT_OK_AND_ASSIGN(auto memory, MemoryStorage::Create(3 * kPageBytes + 99, kPageBytes));
  EXPECT_EQ(memory->slots(), 3u);
  KvTier tier(std::move(memory), kPageBytes);
  for (const char letter : {'a', 'b', 'c'}) EXPECT_EQ(Store(tier, letter), std::nullopt);
  EXPECT_THAT(Store(tier, 'd'), Optional(Name('a')));
  EXPECT_EQ(tier.counts().pages, 3u);
  EXPECT_EQ(tier.counts().stored, 4u);
  EXPECT_EQ(tier.counts().evicted, 1u);
  EXPECT_FALSE(Loads(tier, 'a'));
  for (const char letter : {'b', 'c', 'd'}) EXPECT_TRUE(Loads(tier, letter)) << letter;
  EXPECT_EQ(tier.counts().loaded, 3u);
  EXPECT_EQ(tier.counts().corrupt, 0u) << "a miss is no damage";
}

TEST_F(KvTierTest, MemoryForNoPageIsRefused) {
  EXPECT_TRUE(Fails(MemoryStorage::Create(kPageBytes - 1, kPageBytes), kInvalid, "expected at least 100 bytes"));
}

TEST_F(KvTierTest, EvictsTheLeastRecentlyUsedPage) {
  const auto tier = NewTier(3);
  for (const char letter : {'a', 'b', 'c'}) Store(*tier, letter);
  EXPECT_TRUE(tier->Touch(Name('a')));
  EXPECT_TRUE(Loads(*tier, 'b'));
  EXPECT_FALSE(tier->Touch(Name('x')));
  EXPECT_THAT(Store(*tier, 'd'), Optional(Name('c')));
  EXPECT_THAT(Store(*tier, 'e'), Optional(Name('a')));
  EXPECT_THAT(tier->Names(), UnorderedElementsAre(Name('b'), Name('d'), Name('e')));
}

TEST_F(KvTierTest, EvictsSuccessorsBeforeAPage) {
  const auto tier = NewTier(3);
  Store(*tier, 'a');
  Store(*tier, 'b', 'a');
  Store(*tier, 'c', 'b');
  EXPECT_THAT(Store(*tier, 'd'), Optional(Name('c')));
  EXPECT_THAT(Store(*tier, 'e'), Optional(Name('b')));
  EXPECT_THAT(Store(*tier, 'f'), Optional(Name('a')));
}

TEST_F(KvTierTest, AStoredPageIsNotWrittenAgain) {
  const auto tier = NewTier(2);
  Store(*tier, 'a');
  Store(*tier, 'a');
  EXPECT_EQ(tier->counts().stored, 1u);
  EXPECT_EQ(tier->counts().pages, 1u);
}

TEST_F(KvTierTest, AFlippedBitIsAMissUntilThePageIsStoredAgain) {
  const auto tier = NewTier(2);
  Store(*tier, 'a');
  disk_.slots.at(0).second[kPageBytes - 1] ^= std::byte{1};
  EXPECT_FALSE(Loads(*tier, 'a'));
  EXPECT_FALSE(tier->Contains(Name('a')));
  EXPECT_FALSE(tier->Touch(Name('a')));
  EXPECT_EQ(tier->counts().corrupt, 1u);
  EXPECT_EQ(tier->counts().pages, 0u);
  Store(*tier, 'a');
  EXPECT_TRUE(Loads(*tier, 'a'));
  EXPECT_EQ(tier->counts().pages, 1u);
  EXPECT_EQ(disk_.slots.size(), 1u) << "the damaged slot is used again";
}

TEST_F(KvTierTest, BytesBehindThePageDoNotCount) {
  const auto tier = NewTier(2);
  Store(*tier, 'a');
  disk_.slots.at(0).second[kPageBytes] ^= std::byte{1};
  EXPECT_TRUE(Loads(*tier, 'a'));
}

TEST_F(KvTierTest, AReadThatFailsIsAMissAndTheErrorIsKept) {
  const auto tier = NewTier(2);
  Store(*tier, 'a');
  disk_.next_read = absl::DataLossError("gone");
  EXPECT_FALSE(Loads(*tier, 'a'));
  EXPECT_EQ(tier->counts().corrupt, 1u);
  EXPECT_THAT(tier->TakeError(), Optional(absl::DataLossError("gone")));
  EXPECT_EQ(tier->TakeError(), std::nullopt);
}

TEST_F(KvTierTest, AWriteThatFailsIsCountedAndItsSlotStaysOfUse) {
  const auto tier = NewTier(1);
  disk_.next_write = absl::ResourceExhaustedError("full");
  EXPECT_EQ(Store(*tier, 'a'), std::nullopt);
  EXPECT_FALSE(tier->Contains(Name('a')));
  EXPECT_EQ(tier->counts().failed, 1u);
  EXPECT_EQ(tier->counts().pages, 0u);
  Store(*tier, 'b');
  EXPECT_TRUE(Loads(*tier, 'b'));
}

TEST_F(KvTierTest, APageThatIsReadKeepsItsSlot) {
  const auto tier = NewTier(1);
  Store(*tier, 'a');
  disk_.during_read = [&] {
    disk_.during_read = nullptr;
    EXPECT_EQ(Store(*tier, 'b'), std::nullopt);
    EXPECT_EQ(tier->counts().failed, 1u);
  };
  EXPECT_TRUE(Loads(*tier, 'a'));
  EXPECT_THAT(Store(*tier, 'b'), Optional(Name('a')));
}

TEST_F(KvTierTest, RestoredPagesAreFoundAndKeepTheirOrder) {
  for (const char letter : {'a', 'b', 'c'}) {
    const Content content = ContentOf(letter);
    const PageRecord record{
        .name = Name(letter), .parent = {}, .checksum = ChecksumOf(std::span(content).first(kPageBytes))};
    const uint32_t slot = 'd' - letter;  // 3, 2, 1
    disk_.slots[slot] = {record, content};
    disk_.restored.push_back({slot, record});
  }
  const auto tier = NewTier(4);
  EXPECT_EQ(tier->counts().pages, 3u);
  EXPECT_EQ(Store(*tier, 'd'), std::nullopt) << "slot 0 is free";
  EXPECT_EQ(disk_.slots.at(0).first.name, Name('d'));
  EXPECT_THAT(Store(*tier, 'e'), Optional(Name('a')));
  for (const char letter : {'b', 'c', 'd', 'e'}) EXPECT_TRUE(Loads(*tier, letter)) << letter;
}

TEST_F(KvTierTest, RestoredSuccessorsAreEvictedBeforeAPageThatWasWrittenLater) {
  PageRecord child{.name = Name('b'), .parent = Name('a'), .checksum = {}};
  disk_.restored = {{0, child}, {1, {.name = Name('a'), .parent = {}, .checksum = {}}}, {2, child}};
  const auto tier = NewTier(3);
  EXPECT_THAT(tier->Names(), UnorderedElementsAre(Name('a'), Name('b')));
  EXPECT_EQ(Store(*tier, 'c'), std::nullopt) << "the older copy of b has left its slot";
  EXPECT_THAT(Store(*tier, 'd'), Optional(Name('b')));
  EXPECT_THAT(Store(*tier, 'e'), Optional(Name('a')));
}

}  // namespace
}  // namespace baton::testing
