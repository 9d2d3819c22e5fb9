// SPDX-License-Identifier: Apache-2.0
#include "engine/kv/tiers/kv_tier.h"

#include <algorithm>
#include <utility>

namespace baton {

KvTier::KvTier(std::unique_ptr<TierStorage> storage, size_t page_bytes)
    : storage_(std::move(storage)),
      page_bytes_(page_bytes),
      index_(storage_->slots(), /*max_changes=*/0),
      checksums_(storage_->slots()),
      damaged_(storage_->slots()) {
  const std::vector<RestoredPage> restored = storage_->Restore();
  const MutexLock lock(mutex_);
  Index(restored);
}

// Parents come before children: a parent that was written again is newer than its children.
void KvTier::Index(const std::vector<RestoredPage>& pages) {
  absl::flat_hash_map<PageHash, const RestoredPage*> unindexed;
  std::vector<uint8_t> used(damaged_.size());
  for (const RestoredPage& page : pages) unindexed[page.record.name] = &page;  // of two pages of a name, the newer
  std::vector<const RestoredPage*> path;
  for (const RestoredPage& page : pages) {
    const RestoredPage* next = &page;
    while (next != nullptr) {
      const auto found = unindexed.find(next->record.name);
      if (found == unindexed.end() || found->second != next) break;
      unindexed.erase(found);
      path.push_back(next);
      const auto parent = next->record.parent ? unindexed.find(*next->record.parent) : unindexed.end();
      next = parent == unindexed.end() ? nullptr : parent->second;
    }
    for (; !path.empty(); path.pop_back()) {
      Insert(PageId{path.back()->slot}, path.back()->record);
      used[path.back()->slot] = 1;
    }
  }
  // Slots are used from the first on.
  for (uint32_t slot = static_cast<uint32_t>(used.size()); slot-- > 0;) {
    if (used[slot] == 0) free_.push_back(slot);
  }
}

void KvTier::Insert(PageId slot, const PageRecord& record) {
  const std::optional<PageId> parent = record.parent ? index_.Find(*record.parent) : std::nullopt;
  if (parent.has_value()) Pin(*parent);
  index_.Insert(slot, record.name, parent);
  checksums_[ToIndex(slot)] = record.checksum;
  index_.SetIdle(slot);
  if (parent.has_value()) Unpin(*parent);
}

std::optional<PageId> KvTier::Find(const PageHash& name) const {
  const std::optional<PageId> slot = index_.Find(name);
  return slot.has_value() && damaged_[ToIndex(*slot)] != 0 ? std::nullopt : slot;
}

void KvTier::Pin(PageId slot) {
  if (++pins_[slot] == 1) index_.SetUsed(slot);
}

// The slot becomes the most recently used.
void KvTier::Unpin(PageId slot) {
  const auto pins = pins_.find(slot);
  if (--pins->second > 0) return;
  pins_.erase(pins);
  index_.SetIdle(slot);
}

void KvTier::NoteError(const absl::Status& error) { error_ = error; }

bool KvTier::Contains(const PageHash& name) const {
  const MutexLock lock(mutex_);
  return Find(name).has_value();
}

bool KvTier::Touch(const PageHash& name) {
  const MutexLock lock(mutex_);
  const std::optional<PageId> slot = Find(name);
  if (!slot.has_value()) return false;
  Pin(*slot);
  Unpin(*slot);
  return true;
}

std::optional<PageHash> KvTier::Store(const PageRecord& record, std::span<const std::byte> content) {
  std::optional<PageHash> evicted;
  std::optional<PageId> slot;
  bool again = false;  // the slot holds a damaged copy of the page
  {
    const MutexLock lock(mutex_);
    slot = index_.Find(record.name);
    if (slot.has_value()) {
      if (damaged_[ToIndex(*slot)] == 0) return std::nullopt;
      again = true;
      Pin(*slot);
    } else if (!free_.empty()) {
      slot = PageId{free_.back()};
      free_.pop_back();
    } else if (slot = index_.LeastRecent(); slot.has_value()) {
      evicted = index_.NameOf(*slot);
      index_.Evict();
      damaged_count_ -= std::exchange(damaged_[ToIndex(*slot)], 0);
      ++counts_.evicted;
    } else {
      ++counts_.failed;  // every page is being read
      return std::nullopt;
    }
  }
  const absl::Status written = storage_->Write(ToIndex(*slot), record, content);
  const MutexLock lock(mutex_);
  if (written.ok()) {
    ++counts_.stored;
    checksums_[ToIndex(*slot)] = record.checksum;
    if (again) damaged_count_ -= std::exchange(damaged_[ToIndex(*slot)], 0);
    if (!again) Insert(*slot, record);
  } else {
    ++counts_.failed;
    NoteError(written);
    if (!again) free_.push_back(ToIndex(*slot));
  }
  if (again) Unpin(*slot);
  return evicted;
}

bool KvTier::Load(const PageHash& name, std::span<std::byte> content) {
  std::optional<PageId> slot;
  PageChecksum expected;
  {
    const MutexLock lock(mutex_);
    slot = Find(name);
    if (!slot.has_value()) return false;
    expected = checksums_[ToIndex(*slot)];
    Pin(*slot);
  }
  const absl::Status read = storage_->Read(ToIndex(*slot), content);
  const bool right = read.ok() && ChecksumOf(content.first(page_bytes_)) == expected;
  const MutexLock lock(mutex_);
  Unpin(*slot);
  if (right) {
    ++counts_.loaded;
    return true;
  }
  ++counts_.corrupt;
  if (!read.ok()) NoteError(read);
  damaged_count_ += 1 - std::exchange(damaged_[ToIndex(*slot)], 1);
  return false;
}

std::vector<PageHash> KvTier::Names() const {
  const MutexLock lock(mutex_);
  return index_.NewsSince(0).added;
}

TierCounts KvTier::counts() const {
  const MutexLock lock(mutex_);
  TierCounts counts = counts_;
  counts.slots = static_cast<uint32_t>(checksums_.size());
  counts.pages = counts.slots - static_cast<uint32_t>(free_.size()) - damaged_count_;
  return counts;
}

std::optional<absl::Status> KvTier::TakeError() {
  const MutexLock lock(mutex_);
  return std::exchange(error_, std::nullopt);
}

}  // namespace baton
