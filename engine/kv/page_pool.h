// A PagePool owns the memory of all KV pages of one worker and says which are in use.
//
// Memory is allocated once, in the layout of engine/kv/layout.h; ids index it. Every page is in exactly one state:
//   free         to be had
//   used         held by a PageRef: a sequence, or a reservation granted to a writer
//   cached       kept for its content by the prefix index, to be had when pages run short (none until there is one)
//   quarantined  a peer that is silent but not revoked may still write to it (invariant I1): nobody waits for it
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
#include "engine/types.h"

namespace baton {

class PagePool;

// Sole owner of one used page; gives it back when destroyed. Outlived by its pool.
class PageRef {
 public:
  PageRef() = default;
  PageRef(PageRef&& other) noexcept : pool_(other.pool_), page_(other.page_) { other.pool_ = nullptr; }
  PageRef& operator=(PageRef&& other) noexcept;
  ~PageRef() { Reset(); }

  PageId id() const { return page_; }
  void Reset();

  // The page stays in use but nobody waits for it: counted as quarantined until given back or ended.
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

  const KvLayout& layout() const { return layout_; }
  uint32_t pages_total() const { return pages_total_; }
  std::byte* data() const { return static_cast<std::byte*>(memory_.data); }
  size_t bytes() const { return size_t(pages_total_) * layout_.page_bytes(); }
  // One layer of one page: layout().block_bytes() bytes.
  std::byte* block(int layer, PageId page) const { return data() + layout_.block_offset(layer, page, pages_total_); }

  // `count` pages, all or none: RESOURCE_EXHAUSTED with how many there are. Prefers runs of neighbouring ids.
  absl::StatusOr<std::vector<PageRef>> Allocate(int count);
  PageCounts counts() const;

  // Called, on the thread that gave a page back, after pages became free. Set once, before the pool is shared.
  void set_on_free(std::function<void()> on_free) { on_free_ = std::move(on_free); }

 private:
  friend class PageRef;
  PagePool(const KvLayout& layout, uint32_t pages_total, PoolMemory memory);
  void Return(PageId page);
  void Quarantine(PageId page, bool quarantined);
  // The first of `count` free neighbours, or where to start when there are none. `count` is at least 1.
  uint32_t FindRun(uint32_t count) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const KvLayout layout_;
  const uint32_t pages_total_;
  const PoolMemory memory_;
  std::function<void()> on_free_;
  mutable Mutex mutex_;
  std::vector<uint8_t> state_ ABSL_GUARDED_BY(mutex_);  // one State (page_pool.cc) per page
  uint32_t free_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t quarantined_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t next_ ABSL_GUARDED_BY(mutex_) = 0;  // where the search for free pages starts
};

}  // namespace baton
