// SPDX-License-Identifier: Apache-2.0
// Pages that the pool may evict, kept by name in a bounded storage: the least recently used page without successors
// makes room. Each page has a checksum, which every read compares: a damaged page is a miss and is counted.
//
// Thread-safe. Reads and writes of the storage hold no lock: Contains and Find never wait for them. A page that is read
// keeps its slot; a page is found only once it is written. Owns the storage.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "common/mutex.h"
#include "engine/kv/page_hash.h"
#include "engine/kv/prefix_index.h"
#include "engine/kv/tiers/storage.h"

namespace baton {

struct TierCounts {
  uint32_t slots = 0;
  uint32_t pages = 0;
  uint64_t stored = 0;   // pages written
  uint64_t evicted = 0;  // pages that made room
  uint64_t loaded = 0;   // pages read, with the right content
  uint64_t corrupt = 0;  // pages read, with another content or not at all
  uint64_t failed = 0;   // pages not written, because of an error
};

class KvTier {
 public:
  // `page_bytes` of each content count; buffers have StorageBytes(page_bytes). Takes the pages that the storage
  // restores.
  KvTier(std::unique_ptr<TierStorage> storage, size_t page_bytes);

  std::string_view name() const { return storage_->name(); }
  bool Contains(const PageHash& name) const;
  // Makes the page the most recently used. Returns false if the tier does not have the page.
  bool Touch(const PageHash& name);
  // Writes a page that the tier does not have. Returns the name of the page that made room, if any. One thread at a
  // time. The record has the checksum of the content's `page_bytes`.
  std::optional<PageHash> Store(const PageRecord& record, std::span<const std::byte> content);
  // Returns false if the tier does not have the page, or no longer the right content.
  bool Load(const PageHash& name, std::span<std::byte> content);

  std::vector<PageHash> Names() const;
  TierCounts counts() const;
  // The last error of the storage, once.
  std::optional<absl::Status> TakeError();

 private:
  void Index(const std::vector<RestoredPage>& pages) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<PageId> Find(const PageHash& name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Insert(PageId slot, const PageRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Pin(PageId slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unpin(PageId slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteError(const absl::Status& error) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::unique_ptr<TierStorage> storage_;
  const size_t page_bytes_;
  mutable Mutex mutex_;
  PrefixIndex index_ ABSL_GUARDED_BY(mutex_);                    // the slots are its pages
  std::vector<PageChecksum> checksums_ ABSL_GUARDED_BY(mutex_);  // by slot
  std::vector<uint8_t> damaged_ ABSL_GUARDED_BY(mutex_);         // by slot: indexed, but not found
  std::vector<uint32_t> free_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<PageId, int> pins_ ABSL_GUARDED_BY(mutex_);
  uint32_t damaged_count_ ABSL_GUARDED_BY(mutex_) = 0;
  TierCounts counts_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> error_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton
