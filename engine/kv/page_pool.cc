// SPDX-License-Identifier: Apache-2.0
#include "engine/kv/page_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "engine/kv/host_memory.h"

namespace baton {
namespace {

enum State : uint8_t { kFree, kUsed, kCached, kQuarantined };

absl::StatusOr<PoolMemory> AllocateOwnMemory(size_t bytes) {
  BATON_ASSIGN_OR_RETURN(Mapping memory, AllocateHostMemory(bytes));
  void* const data = memory.data();
  return PoolMemory{data, std::make_shared<Mapping>(std::move(memory))};
}

absl::Status CheckSize(const KvLayout& layout, uint32_t pages_total) {
  if (layout.layers() <= 0) return absl::InvalidArgumentError("KV layout of 0 layers, expected at least one layer");
  for (int group = 0; group < layout.groups(); ++group) {
    const KvBlock& block = layout.block(group);
    if (block.kv_heads <= 0 || block.head_dim <= 0 || block.page_tokens <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("KV layout of ", layout.ToString(), ": expected positive numbers"));
    }
    size_t bytes = 2 * (block.token_bytes() + block.scale_bytes());
    for (const size_t factor :
         {size_t(layout.slots()), size_t(block.kv_heads), size_t(block.page_tokens), size_t(pages_total)}) {
      if (__builtin_mul_overflow(bytes, factor, &bytes)) {
        return absl::ResourceExhaustedError(
            absl::StrCat(pages_total, " KV pages take more bytes than a process can address"));
      }
    }
  }
  if (pages_total == 0) return absl::InvalidArgumentError("a page pool has 0 pages, expected at least one page");
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

void PageRef::SetQuarantined(bool quarantined, SteadyTime now) {
  if (pool_ != nullptr) pool_->Quarantine(page_, quarantined, now);
}

absl::StatusOr<std::unique_ptr<PagePool>> PagePool::Create(const KvLayout& layout, uint32_t pages_total,
                                                           PoolAllocator allocator) {
  BATON_RETURN_IF_ERROR(CheckSize(layout, pages_total));
  if (allocator == nullptr) allocator = AllocateOwnMemory;
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
      holders_(pages_total),
      index_(pages_total),
      free_(pages_total) {}

PagePool::~PagePool() { assert(free_ + index_.evictable_pages() == pages_total_ && "a PageRef outlives its pool"); }

absl::Status PagePool::Prefault(int threads) {
  if (memory_.kind != MemoryKind::kHost) return absl::OkStatus();
  constexpr size_t kSlice = 64 << 20;
  const auto machine_page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(memory_.data) & ~(machine_page - 1);
  const uintptr_t end = reinterpret_cast<uintptr_t>(memory_.data) + bytes();
  std::atomic<uintptr_t> next = begin;
  std::atomic<int> error = 0;
  const auto populate = [&] {
    for (uintptr_t slice = next.fetch_add(kSlice); slice < end; slice = next.fetch_add(kSlice)) {
      const size_t size = std::min<uintptr_t>(kSlice, end - slice);
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      if (madvise(reinterpret_cast<void*>(slice), size, MADV_POPULATE_WRITE) != 0) error = errno;
    }
  };
  std::vector<std::thread> helpers;
  for (int i = 1; i < threads; ++i) helpers.emplace_back(populate);
  populate();
  for (std::thread& helper : helpers) helper.join();
  // Kernels before 5.14 lack MADV_POPULATE_WRITE (EINVAL): memory is then backed as it is written.
  if (error == 0 || error == EINVAL) return absl::OkStatus();
  return absl::ErrnoToStatus(error, absl::StrCat("cannot prefault ", pages_total_, " KV pages of ", bytes(), " bytes"));
}

absl::StatusOr<std::vector<PageRef>> PagePool::Allocate(int count) {
  BATON_ASSIGN_OR_RETURN(SharedPages shared, AllocateShared({}, count));
  return std::move(shared.pages);
}

absl::StatusOr<SharedPages> PagePool::AllocateShared(std::span<const PageHash> names, int count, int spare) {
  if (count < 0)
    return absl::InvalidArgumentError(absl::StrCat("cannot allocate ", count, " KV pages, expected 0 or more"));
  names = names.first(std::min<size_t>(names.size(), count));
  const MutexLock lock(mutex_);
  int64_t available = int64_t{free_} + index_.evictable_pages();
  int64_t others = count - static_cast<int64_t>(names.size());
  const auto too_few = [&] {
    return absl::ResourceExhaustedError(
        absl::StrCat(others + spare, " KV pages requested, ", available, " of ", pages_total_, " available"));
  };
  if (others + spare > available) return too_few();  // too few even if all names are published: skip the lookup
  const std::vector<PageId> run = FindRun(names);
  for (const PageId page : run) available -= index_.IsEvictable(page) ? 1 : 0;
  others = count - static_cast<int64_t>(run.size());
  if (others + spare > available) return too_few();
  SharedPages shared;
  shared.cached = static_cast<int>(run.size());
  shared.pages.reserve(count);
  for (const PageId page : run) shared.pages.push_back(HoldPublished(page));
  if (others > 0) TakeFree(static_cast<uint32_t>(others), shared.pages);
  return shared;
}

// Starts where the last search ended. Takes a run of adjacent pages if there is one, else the next free pages.
void PagePool::TakeFree(uint32_t count, std::vector<PageRef>& pages) {
  for (; free_ < count; ++free_) {
    const PageId evicted = *index_.LeastRecent();
    const bool in_tier = index_.IsInTier(index_.NameOf(evicted));
    index_.Evict();
    state_[ToIndex(evicted)] = kFree;
    if (idle_.has_value() && idle_->Remove(evicted) && !in_tier) ++evicted_from_queue_;
  }
  uint32_t page = FindFreeRun(count);
  for (uint32_t taken = 0; taken < count; page = page + 1 == pages_total_ ? 0 : page + 1) {
    if (state_[page] != kFree) continue;
    state_[page] = kUsed;
    pages.push_back(Hold(PageId{page}));
    ++taken;
  }
  free_ -= count;
  next_ = page;
}

uint32_t PagePool::FindFreeRun(uint32_t count) const {
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

std::vector<PageId> PagePool::FindRun(std::span<const PageHash> names) const {
  std::vector<PageId> run = index_.FindRun(names);
  run.resize(run.size() / layout_.groups() * layout_.groups());
  return run;
}

PageRef PagePool::Hold(PageId page) {
  ++holders_[ToIndex(page)];
  return PageRef(this, page);
}

PageRef PagePool::HoldPublished(PageId page) {
  uint8_t& state = state_[ToIndex(page)];
  if (state == kCached) index_.SetUsed(page);
  state = kUsed;
  return Hold(page);
}

std::vector<PageRef> PagePool::Share(std::span<const PageHash> names) {
  std::vector<PageRef> pages;
  const MutexLock lock(mutex_);
  for (const PageId page : FindRun(names)) pages.push_back(HoldPublished(page));
  return pages;
}

PageRef PagePool::Publish(PageRef page, const PageHash& name, const PageRef* parent) {
  PageRef published = PublishOrFind(page, name, parent);
  page.Reset();
  if (on_idle_) on_idle_();
  return published;
}

PageRef PagePool::PublishOrFind(PageRef& page, const PageHash& name, const PageRef* parent) {
  const MutexLock lock(mutex_);
  if (const std::optional<PageId> other = index_.Find(name)) return HoldPublished(*other);
  assert(state_[ToIndex(page.id())] == kUsed && holders_[ToIndex(page.id())] == 1);
  index_.Insert(page.id(), name, parent == nullptr ? std::nullopt : std::optional(parent->id()));
  if (idle_.has_value()) idle_->Add(page.id());
  return std::move(page);
}

bool PagePool::IsPublished(const PageHash& name) const {
  const MutexLock lock(mutex_);
  return index_.Find(name).has_value();
}

int PagePool::CountPublished(std::span<const PageHash> names) const {
  const MutexLock lock(mutex_);
  return static_cast<int>(FindRun(names).size());
}

PageCounts PagePool::counts() const {
  const MutexLock lock(mutex_);
  const uint32_t cached = index_.evictable_pages();
  const auto quarantined = static_cast<uint32_t>(quarantined_.size());
  return {.total = pages_total_,
          .free = free_,
          .used = pages_total_ - free_ - cached - quarantined,
          .cached = cached,
          .quarantined = quarantined};
}

std::optional<SteadyTime> PagePool::quarantined_since() const {
  const MutexLock lock(mutex_);
  std::optional<SteadyTime> oldest;
  for (const auto& [page, since] : quarantined_) oldest = std::min(oldest.value_or(since), since);
  return oldest;
}

PageNews PagePool::NewsSince(uint64_t version) const {
  const MutexLock lock(mutex_);
  return index_.NewsSince(version);
}

void PagePool::QueueIdle(std::function<void()> on_idle) {
  on_idle_ = std::move(on_idle);
  const MutexLock lock(mutex_);
  if (!idle_.has_value()) idle_.emplace(pages_total_);
}

std::optional<IdlePage> PagePool::NextIdle() {
  const MutexLock lock(mutex_);
  if (!idle_.has_value()) return std::nullopt;
  const std::optional<PageId> page = idle_->Pop();
  if (!page.has_value()) return std::nullopt;
  return IdlePage{.page = *page, .name = index_.NameOf(*page), .parent = index_.ParentNameOf(*page)};
}

bool PagePool::CopyBlock(const IdlePage& page, int slot, std::byte* to) const {
  const MutexLock lock(mutex_);
  if (index_.Find(page.name) != page.page) return false;
  std::memcpy(to, BlockAt(page.page, slot), layout_.block_stride());
  return true;
}

void PagePool::WriteBlock(const PageRef& page, int slot, const std::byte* from) {
  std::memcpy(BlockAt(page.id(), slot), from, layout_.block_stride());
}

uint64_t PagePool::evicted_from_queue() const {
  const MutexLock lock(mutex_);
  return evicted_from_queue_;
}

void PagePool::SetInTier(const PageHash& name, bool in_tier) {
  const MutexLock lock(mutex_);
  index_.SetInTier(name, in_tier);
}

void PagePool::ReserveForTiers(size_t pages) {
  const MutexLock lock(mutex_);
  index_.ReserveForTiers(pages);
}

bool PagePool::ReturnLocked(PageId page) {
  uint8_t& state = state_[ToIndex(page)];
  assert(holders_[ToIndex(page)] > 0);
  if (--holders_[ToIndex(page)] > 0) return false;
  if (state == kQuarantined) quarantined_.erase(page);
  if (index_.Contains(page)) {
    state = kCached;
    index_.SetIdle(page);
    if (idle_.has_value()) idle_->Add(page);
  } else {
    state = kFree;
    ++free_;
  }
  return true;
}

void PagePool::Return(PageId page) {
  {
    const MutexLock lock(mutex_);
    if (!ReturnLocked(page)) return;
  }
  if (on_free_) on_free_();
  if (on_idle_) on_idle_();
}

void PagePool::Release(std::vector<PageRef> pages) {
  bool available = false;
  {
    const MutexLock lock(mutex_);
    for (PageRef& page : pages) {
      if (page.pool_ != nullptr) available |= ReturnLocked(page.page_);
      page.pool_ = nullptr;
    }
  }
  if (available && on_free_) on_free_();
  if (available && on_idle_) on_idle_();
}

void PagePool::Quarantine(PageId page, bool quarantined, SteadyTime now) {
  const MutexLock lock(mutex_);
  uint8_t& state = state_[ToIndex(page)];
  assert((state == kUsed || state == kQuarantined) && !index_.Contains(page));
  const uint8_t wanted = quarantined ? kQuarantined : kUsed;
  if (state == wanted) return;
  state = wanted;
  if (quarantined) {
    quarantined_.emplace(page, now);
  } else {
    quarantined_.erase(page);
  }
}

}  // namespace baton
