// SPDX-License-Identifier: Apache-2.0
#include "engine/kv/tiers/kv_tiers.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log.h"
#include "common/status_macros.h"
#include "engine/kv/host_memory.h"
#include "engine/kv/tiers/file_storage.h"
#include "engine/kv/tiers/memory_storage.h"

namespace baton {
namespace {

// A mean that is older than this is no longer trusted: a tier that was slow once is tried again.
constexpr absl::Duration kForgetSpeed = absl::Seconds(60);
constexpr double kSpeedWeight = 0.1;
constexpr absl::Duration kLogInterval = absl::Seconds(60);

double ToSeconds(absl::Duration duration) { return absl::ToDoubleSeconds(duration); }

}  // namespace

absl::StatusOr<std::unique_ptr<KvTiers>> KvTiers::Create(const KvTiersOptions& options, PagePool* pool) {
  if (pool->memory_kind() == MemoryKind::kDevice) {
    return absl::InvalidArgumentError(
        "the KV pages are in a device's memory, expected a device with pages in host memory");
  }
  const size_t page_bytes = pool->layout().page_bytes();
  std::vector<Tier> tiers;
  if (options.memory_bytes > 0) {
    BATON_ASSIGN_OR_RETURN(std::unique_ptr<MemoryStorage> memory,
                           MemoryStorage::Create(options.memory_bytes, page_bytes));
    tiers.push_back({TierKind::kMemory, std::make_unique<KvTier>(std::move(memory), page_bytes)});
  }
  if (!options.file.empty()) {
    BATON_ASSIGN_OR_RETURN(
        std::unique_ptr<FileStorage> file,
        FileStorage::Open({.path = options.file,
                           .bytes = options.file_bytes,
                           .page_bytes = page_bytes,
                           .content = absl::StrCat(options.numerics_id, "; ", pool->layout().ToString())}));
    if (!file->started_afresh().empty()) {
      Log(LogLevel::kWarning, "kv_tier.started_afresh", {{"file", options.file}, {"why", file->started_afresh()}});
    }
    tiers.push_back({TierKind::kFile, std::make_unique<KvTier>(std::move(file), page_bytes)});
  }
  BATON_ASSIGN_OR_RETURN(Mapping store_buffer, AllocateHostMemory(StorageBytes(page_bytes)));
  BATON_ASSIGN_OR_RETURN(Mapping load_buffer, AllocateHostMemory(StorageBytes(page_bytes)));
  return std::unique_ptr<KvTiers>(new KvTiers(pool, std::move(tiers), std::move(store_buffer), std::move(load_buffer)));
}

KvTiers::KvTiers(PagePool* pool, std::vector<Tier> tiers, Mapping store_buffer, Mapping load_buffer)
    : pool_(*pool),
      tiers_(std::move(tiers)),
      store_buffer_(std::move(store_buffer)),
      load_buffer_(std::move(load_buffer)) {
  pool_.ReserveForTiers(slots());
  for (const Tier& tier : tiers_) {
    const std::vector<PageHash> names = tier.pages->Names();
    for (const PageHash& name : names) pool_.SetInTier(name, true);
    Log(LogLevel::kInfo, "kv_tier.ready",
        {{"tier", Name(tier.kind)}, {"pages", names.size()}, {"slots", tier.pages->counts().slots}});
  }
  pool_.QueueIdle([store = store_] {
    {
      const MutexLock lock(store->mutex);
      store->idle_pages = true;
    }
    store->changed.NotifyAll();
  });
  store_thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "kv-store");
    StoreLoop();
  });
  load_thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "kv-load");
    LoadLoop();
  });
}

KvTiers::~KvTiers() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  work_.NotifyAll();
  {
    const MutexLock lock(store_->mutex);
    store_->stopping = true;
  }
  store_->changed.NotifyAll();
  store_thread_.join();
  load_thread_.join();
}

// ---------------------------------------------------------------------------------------------------- storing

void KvTiers::StoreLoop() {
  for (;;) {
    {
      const MutexLock lock(store_->mutex);
      while (!store_->idle_pages && !store_->stopping) {
        store_->changed.WaitUntil(store_->mutex, SteadyTime::Now() + absl::Seconds(60));
      }
      if (store_->stopping) return;
      store_->idle_pages = false;
      store_->storing = true;
    }
    for (std::optional<IdlePage> page = pool_.NextIdle(); page.has_value(); page = pool_.NextIdle()) {
      StoreNext(*page);
      const MutexLock lock(store_->mutex);
      if (store_->stopping) return;
    }
    LogErrors();
    {
      const MutexLock lock(store_->mutex);
      store_->storing = false;
    }
    store_->changed.NotifyAll();
  }
}

void KvTiers::StoreNext(const IdlePage& page) {
  size_t having = 0;
  for (const Tier& tier : tiers_) having += tier.pages->Touch(page.name) ? 1 : 0;
  if (having == tiers_.size()) return;
  const KvLayout& layout = pool_.layout();
  for (int slot = 0; slot < layout.slots(); ++slot) {
    if (pool_.CopyBlock(page, slot, store_buffer_.data() + slot * layout.block_stride())) continue;
    const MutexLock lock(store_->mutex);
    if (having == 0) ++store_->cut_off;
    return;
  }
  const std::span<const std::byte> content(store_buffer_.data(), store_buffer_.bytes());
  const PageRecord record{
      .name = page.name, .parent = page.parent, .checksum = ChecksumOf(content.first(layout.page_bytes()))};
  for (const Tier& tier : tiers_) {
    if (tier.pages->Contains(page.name)) continue;
    const std::optional<PageHash> evicted = tier.pages->Store(record, content);
    if (evicted.has_value()) Report(*evicted);
  }
  Report(page.name);
}

bool KvTiers::WaitStored(SteadyTime deadline) {
  const MutexLock lock(store_->mutex);
  while (store_->idle_pages || store_->storing) {
    const bool in_time = store_->changed.WaitUntil(store_->mutex, deadline);
    if (!in_time && (store_->idle_pages || store_->storing)) return false;
  }
  return true;
}

void KvTiers::Report(const PageHash& name) {
  const MutexLock lock(report_mutex_);
  pool_.SetInTier(name, std::ranges::any_of(tiers_, [&](const Tier& tier) { return tier.pages->Contains(name); }));
}

// A disk that fails may fail for each page.
void KvTiers::LogErrors() {
  const MutexLock lock(report_mutex_);
  if (SteadyTime::Now() < next_log_) return;
  for (const Tier& tier : tiers_) {
    const std::optional<absl::Status> error = tier.pages->TakeError();
    if (!error.has_value()) continue;
    next_log_ = SteadyTime::Now() + kLogInterval;
    Log(LogLevel::kWarning, "kv_tier.failed", {{"tier", Name(tier.kind)}, {"detail", std::string(error->message())}});
  }
}

// ---------------------------------------------------------------------------------------------------- loading

std::vector<TierKind> KvTiers::Find(std::span<const PageHash> names) const {
  std::vector<TierKind> found;
  for (const PageHash& name : names) {
    const auto tier =
        std::ranges::find_if(tiers_, [&](const Tier& candidate) { return candidate.pages->Contains(name); });
    if (tier == tiers_.end()) break;
    found.push_back(tier->kind);
  }
  return found;
}

void KvTiers::Load(std::shared_ptr<TierLoad> load, std::function<void()> done) {
  {
    const MutexLock lock(mutex_);
    double seconds = 0;
    for (const TierKind kind : load->kinds) seconds += speed_.page_seconds[static_cast<size_t>(kind)];
    orders_.push_back({std::move(load), std::move(done), SteadyTime::Now(), seconds});
  }
  work_.NotifyAll();
}

void KvTiers::DropGivenUp() {
  std::deque<Order> dropped;
  {
    const MutexLock lock(mutex_);
    std::deque<Order> kept;
    for (Order& order : orders_) (order.load->given_up ? dropped : kept).push_back(std::move(order));
    orders_ = std::move(kept);
  }
  for (const Order& order : dropped) order.done();
}

TierSpeed KvTiers::speed() const {
  const MutexLock lock(mutex_);
  TierSpeed speed = speed_;
  const SteadyTime now = SteadyTime::Now();
  for (size_t kind = 0; kind < kTierKinds; ++kind) {
    if (now - measured_[kind] > kForgetSpeed) speed.page_seconds[kind] = 0;
  }
  if (now - wait_measured_ > kForgetSpeed) speed.wait_seconds = 0;
  speed.queued_seconds = running_seconds_;
  if (running_since_.has_value()) {
    speed.overdue_seconds = std::max(0.0, ToSeconds(now - *running_since_) - running_seconds_);
    speed.queued_seconds += speed.overdue_seconds;
  }
  for (const Order& order : orders_) speed.queued_seconds += order.seconds;
  return speed;
}

void KvTiers::Learn(double& mean, SteadyTime& when, double sample) {
  const SteadyTime now = SteadyTime::Now();
  mean = mean == 0 || now - when > kForgetSpeed ? sample : mean + kSpeedWeight * (sample - mean);
  when = now;
}

void KvTiers::LoadLoop() {
  for (;;) {
    Order order;
    {
      const MutexLock lock(mutex_);
      const bool was_idle = orders_.empty();
      while (orders_.empty() && !stopping_) work_.WaitUntil(mutex_, SteadyTime::Now() + absl::Seconds(60));
      if (stopping_) return;
      order = std::move(orders_.front());
      orders_.pop_front();
      // The way back to the engine thread is taken to be as long as the way here.
      if (was_idle) Learn(speed_.wait_seconds, wait_measured_, 2 * ToSeconds(SteadyTime::Now() - order.since));
      running_seconds_ = order.seconds;
      running_since_ = SteadyTime::Now();
    }
    Run(*order.load);
    order.done();
    LogErrors();
    const MutexLock lock(mutex_);
    running_seconds_ = 0;
    running_since_.reset();
  }
}

void KvTiers::Run(TierLoad& load) {
  for (size_t i = 0; i < load.names.size() && !load.given_up; ++i) {
    const Stopwatch watch;
    if (!LoadPage(load, i)) return;
    ++load.loaded;
    const auto kind = static_cast<size_t>(load.kinds[i]);
    const MutexLock lock(mutex_);
    Learn(speed_.page_seconds[kind], measured_[kind], watch.seconds());
  }
}

bool KvTiers::LoadPage(TierLoad& load, size_t index) {
  const PageHash& name = load.names[index];
  const std::span<std::byte> buffer(load_buffer_.data(), load_buffer_.bytes());
  for (const Tier& tier : tiers_) {
    if (!tier.pages->Contains(name)) continue;
    if (!tier.pages->Load(name, buffer)) {
      Report(name);  // damaged: perhaps no tier has the page any more
      continue;
    }
    const KvLayout& layout = pool_.layout();
    for (int slot = 0; slot < layout.slots(); ++slot) {
      pool_.WriteBlock(load.pages[index], slot, buffer.data() + slot * layout.block_stride());
    }
    return true;
  }
  return false;
}

KvTiersCounts KvTiers::counts() const {
  KvTiersCounts counts;
  for (const Tier& tier : tiers_) counts.tiers.emplace_back(tier.kind, tier.pages->counts());
  counts.lost = pool_.evicted_from_queue();
  const MutexLock lock(store_->mutex);
  counts.lost += store_->cut_off;
  return counts;
}

uint32_t KvTiers::slots() const {
  uint32_t slots = 0;
  for (const Tier& tier : tiers_) slots += tier.pages->counts().slots;
  return slots;
}

}  // namespace baton
