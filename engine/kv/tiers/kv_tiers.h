// SPDX-License-Identifier: Apache-2.0
// The tiers below a pool: memory, a file, or both. Pages go to every tier once they are published, and come back when
// the scheduler asks (TierLoader).
//
//   store thread  takes the pages that were published out of the pool's queue, copies each and writes it to the tiers
//                 that lack it. A page that the pool evicts first is lost, and counted.
//   load thread   reads pages, memory first, and writes them to pages of the pool.
//
// Copies hold no page of the pool (PagePool::CopyBlock); loads own theirs (TierLoad). No other thread waits for a read
// or a write; a thread may wait for the copy of one block, under the pool's lock. The pool's queue bounds what is to be
// stored, and the worker's batch slots bound the loads.
//
// The names of pages in tiers go to the pool's news, so that routers see such pages as cached.
//
// Thread-safe. The pool outlives the tiers; create the tiers before the pool is shared.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/mapping.h"
#include "common/mutex.h"
#include "common/steady_time.h"
#include "engine/kv/page_pool.h"
#include "engine/kv/tiers/kv_tier.h"
#include "engine/kv/tiers/tier_load.h"

namespace baton {

struct KvTiersOptions {
  uint64_t memory_bytes = 0;  // 0: no memory tier
  std::string file;           // empty: no file tier
  uint64_t file_bytes = 0;
  std::string numerics_id;  // of the pages
};

struct KvTiersCounts {
  std::vector<std::pair<TierKind, TierCounts>> tiers;
  uint64_t lost = 0;  // pages that the pool evicted before they were copied
};

class KvTiers final : public TierLoader {
 public:
  // Errors name the file, or the memory. INVALID_ARGUMENT if the pool's memory is not the host's.
  static absl::StatusOr<std::unique_ptr<KvTiers>> Create(const KvTiersOptions& options, PagePool* pool);
  ~KvTiers() override;

  std::vector<TierKind> Find(std::span<const PageHash> names) const override;
  void Load(std::shared_ptr<TierLoad> load, std::function<void()> done) override;
  void DropGivenUp() override;
  TierSpeed speed() const override;

  // Waits until every page that is published now is stored; false if `deadline` comes first.
  bool WaitStored(SteadyTime deadline);

  KvTiersCounts counts() const;
  // Pages that all tiers together can have.
  uint32_t slots() const;

 private:
  struct Tier {
    TierKind kind;
    std::unique_ptr<KvTier> pages;
  };
  struct Order {
    std::shared_ptr<TierLoad> load;
    std::function<void()> done;
    SteadyTime since;
    double seconds = 0;  // estimate
  };
  // Outlives the tiers as long as the pool's hook does.
  struct StoreState {
    Mutex mutex;
    CondVar changed;
    bool idle_pages ABSL_GUARDED_BY(mutex) = true;  // the pool's queue may hold pages
    bool storing ABSL_GUARDED_BY(mutex) = false;
    bool stopping ABSL_GUARDED_BY(mutex) = false;
    uint64_t cut_off ABSL_GUARDED_BY(mutex) = 0;  // pages evicted during their copy
  };
  KvTiers(PagePool* pool, std::vector<Tier> tiers, Mapping store_buffer, Mapping load_buffer);

  void StoreLoop();
  void StoreNext(const IdlePage& page);
  void LoadLoop();
  void Run(TierLoad& load);
  bool LoadPage(TierLoad& load, size_t index);
  // Tells the pool whether a tier has the page.
  void Report(const PageHash& name);
  void LogErrors();
  void Learn(double& mean, SteadyTime& when, double sample) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  PagePool& pool_;
  const std::vector<Tier> tiers_;
  const Mapping store_buffer_;  // of the store thread
  const Mapping load_buffer_;   // of the load thread
  Mutex report_mutex_;          // one report at a time, so that the last report is true
  SteadyTime next_log_ ABSL_GUARDED_BY(report_mutex_) = SteadyTime::InfinitePast();

  const std::shared_ptr<StoreState> store_ = std::make_shared<StoreState>();
  mutable Mutex mutex_;
  CondVar work_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Order> orders_ ABSL_GUARDED_BY(mutex_);
  double running_seconds_ ABSL_GUARDED_BY(mutex_) = 0;  // estimate of the load that runs
  std::optional<SteadyTime> running_since_ ABSL_GUARDED_BY(mutex_);
  TierSpeed speed_ ABSL_GUARDED_BY(mutex_);
  std::array<SteadyTime, kTierKinds> measured_ ABSL_GUARDED_BY(mutex_);
  SteadyTime wait_measured_ ABSL_GUARDED_BY(mutex_);
  std::thread store_thread_;
  std::thread load_thread_;
};

}  // namespace baton
