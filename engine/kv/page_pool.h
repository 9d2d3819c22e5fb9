// SPDX-License-Identifier: Apache-2.0
// Owns the memory of all KV pages of one worker and tracks the state of each page. Thread-safe; no call blocks.
//
// Memory is allocated once, in the layout of engine/kv/layout.h; page ids index it. Every page is in exactly one state:
//   free         available
//   used         held by PageRefs of a sequence or of a reservation; a published page may have several holders, and is
//                also used while a descendant (prefix_index.h) is held
//   cached       published and not held; evicted when free pages run out, least recently used first, but no page before
//                its descendants
//   quarantined  a silent, unrevoked peer may still write to the page (invariant I1): no request waits for it
//
// A published page holds the content that its name (page_hash.h) says and is read-only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "common/steady_time.h"
#include "engine/kv/idle_queue.h"
#include "engine/kv/layout.h"
#include "engine/kv/page_hash.h"
#include "engine/kv/prefix_index.h"
#include "engine/types.h"

namespace baton {

class PagePool;

// Holds one page and returns it to the pool when destroyed. An unpublished page has one holder. The pool must outlive
// its PageRefs. Not thread-safe.
class PageRef {
 public:
  PageRef() = default;
  PageRef(PageRef&& other) noexcept : pool_(other.pool_), page_(other.page_) { other.pool_ = nullptr; }
  PageRef& operator=(PageRef&& other) noexcept;
  ~PageRef() { Reset(); }

  PageId id() const { return page_; }
  void Reset();

  // Marks the held, unpublished page as quarantined since `now`, or as used again. A second mark changes nothing. The
  // destructor returns a quarantined page as any other.
  void SetQuarantined(bool quarantined, SteadyTime now = SteadyTime::Now());

 private:
  friend class PagePool;
  PageRef(PagePool* pool, PageId page) : pool_(pool), page_(page) {}
  PagePool* pool_ = nullptr;
  PageId page_{};
};

// Memory from an allocator other than the pool's own: a transport that registers memory, or a device.
struct PoolMemory {
  void* data = nullptr;
  std::shared_ptr<void> owner;  // held as long as the pool lives; null: the memory outlives the pool
  MemoryKind kind = MemoryKind::kHost;
};
using PoolAllocator = std::function<absl::StatusOr<PoolMemory>(size_t bytes)>;

struct PageCounts {
  uint32_t total = 0;
  uint32_t free = 0;
  uint32_t used = 0;  // without quarantined pages
  uint32_t cached = 0;
  uint32_t quarantined = 0;
  uint32_t available() const { return free + cached; }
};

struct SharedPages {
  std::vector<PageRef> pages;
  int cached = 0;  // the first `cached` pages were published before and hold their content
};

// A published page by its id and content. The value holds no page.
struct IdlePage {
  PageId page{};
  PageHash name = {};
  std::optional<PageHash> parent;  // name of the published page before it
};

class PagePool {
 public:
  // RESOURCE_EXHAUSTED names the bytes if memory is short. Without `allocator`, takes anonymous memory of this process.
  static absl::StatusOr<std::unique_ptr<PagePool>> Create(const KvLayout& layout, uint32_t pages_total,
                                                          PoolAllocator allocator = nullptr);
  ~PagePool();
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;

  // Makes the kernel back the pool with memory now, using `threads` threads. Otherwise the first write to each page
  // pays for it. Fails if memory is short. Other kinds than host memory are backed from the start.
  absl::Status Prefault(int threads);

  const KvLayout& layout() const { return layout_; }
  uint32_t pages_total() const { return pages_total_; }
  MemoryKind memory_kind() const { return memory_.kind; }
  std::byte* data() const { return static_cast<std::byte*>(memory_.data); }
  size_t bytes() const { return size_t(pages_total_) * layout_.page_bytes(); }
  // The block of one layer in a page of the layer's group: layout().block_stride() bytes.
  std::byte* block(int layer, PageId page) const { return data() + layout_.block_offset(layer, page, pages_total_); }

  // Takes `count` pages or none: RESOURCE_EXHAUSTED says how many are available. Prefers adjacent ids.
  absl::StatusOr<std::vector<PageRef>> Allocate(int count);
  // Takes `count` pages or none. The first pages are the published pages of the longest run of `names` that has as many
  // pages of each KV group.
  // RESOURCE_EXHAUSTED if fewer than `spare` pages would stay available; then no page changes its state.
  absl::StatusOr<SharedPages> AllocateShared(std::span<const PageHash> names, int count, int spare = 0);

  // Holds the published pages of the longest run of `names`; as many pages of each KV group.
  std::vector<PageRef> Share(std::span<const PageHash> names);
  // Publishes `page` under `name`; `parent` is the published page before it, if any. Returns `page`. If another page
  // already has this name, returns that page and frees `page`.
  PageRef Publish(PageRef page, const PageHash& name, const PageRef* parent);
  bool IsPublished(const PageHash& name) const;
  // Length of the longest run of `names` that is published; as many pages of each KV group.
  int CountPublished(std::span<const PageHash> names) const;
  // Returns all `pages` to the pool; calls on_free at most once.
  void Release(std::vector<PageRef> pages);
  PageCounts counts() const;
  // Returns since when the page that is quarantined longest is quarantined. None without a quarantined page. Takes time
  // in proportion to the quarantined pages.
  std::optional<SteadyTime> quarantined_since() const;
  // Returns the names published and evicted since `version` of an earlier answer; for 0, all names.
  PageNews NewsSince(uint64_t version) const;

  // For tiers (engine/kv/tiers), which copy published pages. The copies take no PageRef, so that a copy delays no
  // allocation and no eviction. From the call on, the pool queues each page when it is published and when it becomes
  // cached. `on_idle` runs then, as on_free does.
  void QueueIdle(std::function<void()> on_idle);
  // Takes the page out of the queue that is in the queue longest.
  std::optional<IdlePage> NextIdle();
  // Copies one block of the page: layout().block_stride() bytes. Holds the pool's lock, under which alone a page is
  // evicted: no copy reads a page that is reused (invariant I1). Returns false once the page is evicted.
  bool CopyBlock(const IdlePage& page, int slot, std::byte* to) const;
  // Pages evicted while they were in the queue and no tier had them.
  uint64_t evicted_from_queue() const;
  // Writes one block of a held, unpublished page.
  void WriteBlock(const PageRef& page, int slot, const std::byte* from);
  // Notes that a tier has the page `name`, or that no tier has it: NewsSince lists such pages, too. The tiers have at
  // most `pages` pages.
  void SetInTier(const PageHash& name, bool in_tier);
  void ReserveForTiers(size_t pages);

  // `on_free` runs after pages became free or cached, on the thread that returned them, without the pool's lock. Set it
  // once, before the pool is shared.
  void set_on_free(std::function<void()> on_free) { on_free_ = std::move(on_free); }

 private:
  friend class PageRef;
  PagePool(const KvLayout& layout, uint32_t pages_total, PoolMemory memory);
  std::vector<PageId> FindRun(std::span<const PageHash> names) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Return(PageId page);
  bool ReturnLocked(PageId page) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);  // returns whether the page is available now
  PageRef Hold(PageId page) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  PageRef PublishOrFind(PageRef& page, const PageHash& name, const PageRef* parent);
  PageRef HoldPublished(PageId page) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeFree(uint32_t count, std::vector<PageRef>& pages) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Quarantine(PageId page, bool quarantined, SteadyTime now);
  std::byte* BlockAt(PageId page, int slot) const {
    return data() + (size_t(slot) * pages_total_ + ToIndex(page)) * layout_.block_stride();
  }
  // Returns the first of `count` >= 1 adjacent free pages. Without such a run, returns where to start collecting pages.
  uint32_t FindFreeRun(uint32_t count) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const KvLayout layout_;
  const uint32_t pages_total_;
  const PoolMemory memory_;
  std::function<void()> on_free_;
  std::function<void()> on_idle_;
  mutable Mutex mutex_;
  std::vector<uint8_t> state_ ABSL_GUARDED_BY(mutex_);     // one State (page_pool.cc) per page
  std::vector<uint32_t> holders_ ABSL_GUARDED_BY(mutex_);  // number of PageRefs, by page
  PrefixIndex index_ ABSL_GUARDED_BY(mutex_);              // published pages
  uint32_t free_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<PageId, SteadyTime> quarantined_ ABSL_GUARDED_BY(mutex_);  // since when
  std::optional<IdleQueue> idle_ ABSL_GUARDED_BY(mutex_);                        // only with tiers
  uint64_t evicted_from_queue_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t next_ ABSL_GUARDED_BY(mutex_) = 0;  // next search for free pages starts here
};

}  // namespace baton
