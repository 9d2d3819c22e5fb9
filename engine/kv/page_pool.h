// A PagePool owns the memory of all KV pages of one worker and says which are in use.
//
// Memory is allocated once, in the layout of engine/kv/layout.h; ids index it. Every page is in exactly one state:
//   free         to be had
//   used         held by PageRefs: of a sequence, of a reservation granted to a writer, or, once published, of several
//                sequences that all read it; and a published page as long as one behind it is held
//   cached       published and held by nobody: kept for its content until free pages run out. Those that were used
//                longest ago go first, but none before those behind it
//   quarantined  a peer that is silent but not revoked may still write to it (invariant I1): nobody waits for it
//
// A published page holds what its name (page_hash.h) says, and nobody writes to it any more.
//
// Thread-safe. Nothing here blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "engine/kv/layout.h"
#include "engine/kv/page_hash.h"
#include "engine/kv/prefix_index.h"
#include "engine/types.h"

namespace baton {

class PagePool;

// Holds one used page, alone unless it is published; gives it back when destroyed. Outlived by its pool.
class PageRef {
 public:
  PageRef() = default;
  PageRef(PageRef&& other) noexcept : pool_(other.pool_), page_(other.page_) { other.pool_ = nullptr; }
  PageRef& operator=(PageRef&& other) noexcept;
  ~PageRef() { Reset(); }

  PageId id() const { return page_; }
  void Reset();

  // The page, which is not published, stays in use but nobody waits for it: counted as quarantined until given back or
  // ended.
  void SetQuarantined(bool quarantined);

 private:
  friend class PagePool;
  PageRef(PagePool* pool, PageId page) : pool_(pool), page_(page) {}
  PagePool* pool_ = nullptr;
  PageId page_{};
};

// Memory from somewhere else: a transport that registers it, a device.
struct PoolMemory {
  void* data = nullptr;
  std::function<void()> release;  // called once, by the pool's destructor
};
using PoolAllocator = std::function<absl::StatusOr<PoolMemory>(size_t bytes)>;

struct PageCounts {
  uint32_t total = 0;
  uint32_t free = 0;
  uint32_t used = 0;  // quarantined pages are not counted as used
  uint32_t cached = 0;
  uint32_t quarantined = 0;
  uint32_t available() const { return free + cached; }
};

struct SharedPages {
  std::vector<PageRef> pages;
  int cached = 0;  // so many of them, the first ones, hold their content already
};

class PagePool {
 public:
  // Fails with RESOURCE_EXHAUSTED, naming the bytes asked for, if the memory cannot be had. Without `allocator`:
  // anonymous memory of this process.
  static absl::StatusOr<std::unique_ptr<PagePool>> Create(const KvLayout& layout, uint32_t pages_total,
                                                          PoolAllocator allocator = nullptr);
  ~PagePool();
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;

  // Has the kernel make the memory now; otherwise it does page by page, as each is first written, and the first
  // requests pay for it. Fails when there is not so much. For memory of the host.
  absl::Status Prefault(int threads);

  const KvLayout& layout() const { return layout_; }
  uint32_t pages_total() const { return pages_total_; }
  std::byte* data() const { return static_cast<std::byte*>(memory_.data); }
  size_t bytes() const { return size_t(pages_total_) * layout_.page_bytes(); }
  // One layer of one page: layout().block_bytes() bytes.
  std::byte* block(int layer, PageId page) const { return data() + layout_.block_offset(layer, page, pages_total_); }

  // `count` pages, all or none: RESOURCE_EXHAUSTED with how many there are. Prefers runs of neighbouring ids.
  absl::StatusOr<std::vector<PageRef>> Allocate(int count);
  // `count` pages, of which the first are the published ones of the longest run of `names` (`count` at most). All or
  // none: RESOURCE_EXHAUSTED, and nothing counts as used, unless `leave` others stay to be had.
  absl::StatusOr<SharedPages> AllocateShared(std::span<const PageHash> names, int count, int leave = 0);

  // The published pages of the longest run of `names`.
  std::vector<PageRef> Share(std::span<const PageHash> names);
  // `page` holds what `name` says; `parent` is the published page before it. Returns what holds this content from now
  // on: `page`, or, if that was published before, the other page, and `page` goes back.
  PageRef Publish(PageRef page, const PageHash& name, const PageRef* parent);
  bool IsPublished(const PageHash& name) const;
  // Pages in the longest run of `names`.
  int CountPublished(std::span<const PageHash> names) const;
  // As if each were destroyed, but who waits for pages hears of it once.
  void Release(std::vector<PageRef> pages);
  PageCounts counts() const;
  // Which names were published and evicted since `version`, that of an earlier answer; 0: all that are here.
  PageNews NewsSince(uint64_t version) const;

  // Called, on the thread that gave a page back, after pages became free or cached. Set once, before the pool is
  // shared.
  void set_on_free(std::function<void()> on_free) { on_free_ = std::move(on_free); }

 private:
  friend class PageRef;
  PagePool(const KvLayout& layout, uint32_t pages_total, PoolMemory memory);
  void Return(PageId page);
  bool ReturnLocked(PageId page) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);  // whether it is to be had now
  PageRef Hold(PageId page) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  PageRef HoldPublished(PageId page) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeFree(uint32_t count, std::vector<PageRef>& pages) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Quarantine(PageId page, bool quarantined);
  // The first of `count` free neighbours, or where to start when there are none. `count` is at least 1.
  uint32_t FindRun(uint32_t count) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const KvLayout layout_;
  const uint32_t pages_total_;
  const PoolMemory memory_;
  std::function<void()> on_free_;
  mutable Mutex mutex_;
  std::vector<uint8_t> state_ ABSL_GUARDED_BY(mutex_);     // one State (page_pool.cc) per page
  std::vector<uint32_t> holders_ ABSL_GUARDED_BY(mutex_);  // how many PageRefs each page has
  PrefixIndex index_ ABSL_GUARDED_BY(mutex_);              // the published pages
  uint32_t free_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t quarantined_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t next_ ABSL_GUARDED_BY(mutex_) = 0;  // where the search for free pages starts
};

}  // namespace baton
