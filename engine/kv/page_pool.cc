#include "engine/kv/page_pool.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "engine/kv/host_memory.h"

namespace baton {
namespace {

enum State : uint8_t { kFree, kUsed, kQuarantined };

absl::StatusOr<PoolMemory> AllocateHostMemory(size_t bytes) {
  BATON_ASSIGN_OR_RETURN(HostMemory memory, HostMemory::Allocate(bytes));
  auto owner = std::make_shared<HostMemory>(std::move(memory));
  void* data = owner->data();
  return PoolMemory{data, [owner]() mutable { owner.reset(); }};
}

absl::Status CheckSize(const KvLayout& layout, uint32_t pages_total) {
  if (layout.layers <= 0 || layout.kv_heads <= 0 || layout.head_dim <= 0 || layout.page_tokens <= 0) {
    return absl::InvalidArgumentError(absl::StrCat("KV layout of ", layout.layers, " layers, ", layout.kv_heads,
                                                   " heads, head_dim ", layout.head_dim, ", ", layout.page_tokens,
                                                   " tokens per page: all must be positive"));
  }
  if (pages_total == 0) return absl::InvalidArgumentError("a page pool needs at least one page");
  size_t bytes = 2 * (layout.token_bytes() + layout.scale_bytes());
  for (const size_t factor :
       {size_t(layout.layers), size_t(layout.kv_heads), size_t(layout.page_tokens), size_t(pages_total)}) {
    if (__builtin_mul_overflow(bytes, factor, &bytes)) {
      return absl::ResourceExhaustedError(absl::StrCat(pages_total, " KV pages are more bytes than can be addressed"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

PageRef& PageRef::operator=(PageRef&& other) noexcept {
  if (this != &other) {
    Reset();
    pool_ = std::exchange(other.pool_, nullptr);
    page_ = other.page_;
  }
  return *this;
}

void PageRef::Reset() {
  if (PagePool* pool = std::exchange(pool_, nullptr)) pool->Return(page_);
}

void PageRef::SetQuarantined(bool quarantined) {
  if (pool_ != nullptr) pool_->Quarantine(page_, quarantined);
}

absl::StatusOr<std::unique_ptr<PagePool>> PagePool::Create(const KvLayout& layout, uint32_t pages_total,
                                                           PoolAllocator allocator) {
  BATON_RETURN_IF_ERROR(CheckSize(layout, pages_total));
  if (allocator == nullptr) allocator = AllocateHostMemory;
  const size_t bytes = size_t(pages_total) * layout.page_bytes();
  absl::StatusOr<PoolMemory> memory = allocator(bytes);
  if (!memory.ok()) {
    return absl::Status(memory.status().code(),
                        absl::StrCat(pages_total, " KV pages, ", bytes, " bytes: ", memory.status().message()));
  }
  return std::unique_ptr<PagePool>(new PagePool(layout, pages_total, *std::move(memory)));
}

PagePool::PagePool(const KvLayout& layout, uint32_t pages_total, PoolMemory memory)
    : layout_(layout),
      pages_total_(pages_total),
      memory_(std::move(memory)),
      state_(pages_total, kFree),
      free_(pages_total) {}

PagePool::~PagePool() {
  assert(free_ == pages_total_ && "a PageRef outlives its pool");
  if (memory_.release) memory_.release();
}

absl::StatusOr<std::vector<PageRef>> PagePool::Allocate(int count) {
  if (count < 0) return absl::InvalidArgumentError(absl::StrCat(count, " KV pages asked for"));
  std::vector<PageRef> pages;
  if (count == 0) return pages;
  pages.reserve(count);
  const MutexLock lock(mutex_);
  if (static_cast<uint32_t>(count) > free_) {
    return absl::ResourceExhaustedError(
        absl::StrCat(count, " KV pages asked for, ", free_, " of ", pages_total_, " free"));
  }
  // From where the last search ended: a run of neighbours, else whatever is free.
  uint32_t page = FindRun(count);
  while (pages.size() < static_cast<size_t>(count)) {
    if (state_[page] == kFree) {
      state_[page] = kUsed;
      pages.push_back(PageRef(this, PageId{page}));
    }
    page = page + 1 == pages_total_ ? 0 : page + 1;
  }
  free_ -= count;
  next_ = page;
  return pages;
}

uint32_t PagePool::FindRun(uint32_t count) const {
  const std::span<const uint8_t> state = state_;
  const auto search = [&](uint32_t begin, uint32_t end) {
    return std::search_n(state.begin() + begin, state.begin() + end, count, uint8_t{kFree}) - state.begin();
  };
  if (const auto found = search(next_, pages_total_); found != pages_total_) return found;
  // A run may begin before next_ and end after it.
  const uint32_t end = std::min(pages_total_ - count, next_) + count;
  if (const auto found = search(0, end); found != end) return found;
  return next_;
}

PageCounts PagePool::counts() const {
  const MutexLock lock(mutex_);
  return {.total = pages_total_,
          .free = free_,
          .used = pages_total_ - free_ - quarantined_,
          .cached = 0,
          .quarantined = quarantined_};
}

void PagePool::Return(PageId page) {
  {
    const MutexLock lock(mutex_);
    uint8_t& state = state_[ToIndex(page)];
    assert(state != kFree);
    if (state == kQuarantined) --quarantined_;
    state = kFree;
    ++free_;
  }
  if (on_free_) on_free_();
}

void PagePool::Quarantine(PageId page, bool quarantined) {
  const MutexLock lock(mutex_);
  uint8_t& state = state_[ToIndex(page)];
  assert(state != kFree);
  const uint8_t wanted = quarantined ? kQuarantined : kUsed;
  if (state == wanted) return;
  state = wanted;
  quarantined_ += quarantined ? 1 : -1;
}

}  // namespace baton
