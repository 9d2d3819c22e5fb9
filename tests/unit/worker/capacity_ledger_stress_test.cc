// SPDX-License-Identifier: Apache-2.0
// The ledger under claimants on many threads.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "capacity_ledger_fixture.h"
#include "common/mutex.h"
#include "engine/kv/page_pool.h"
#include "worker/admission/capacity_ledger.h"

namespace baton {
namespace {

// One side's claimants: what they have taken, under a lock of the side's own, as the workers do it.
class Side {
 public:
  Side(CapacityLedger* ledger, CapacityLedger::Claimant claimant) : ledger_(*ledger), claimant_(claimant) {}

  void Take() {
    const MutexLock lock(mutex_);
    TakeLocked();
  }
  // Empty: not granted yet.
  std::vector<PageRef> TakeFor(const AttemptKey& key) {
    const MutexLock lock(mutex_);
    TakeLocked();
    return Extract(key);
  }
  // The pages of a grant that came first.
  std::vector<PageRef> GiveUp(const AttemptKey& key) {
    const MutexLock lock(mutex_);
    std::vector<PageRef> pages = ledger_.Withdraw(claimant_, key);
    return pages.empty() ? Extract(key) : std::move(pages);
  }
  bool empty() {
    const MutexLock lock(mutex_);
    return taken_.empty();
  }

 private:
  void TakeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (CapacityLedger::Decision& decision : ledger_.TakeDecisions(claimant_)) {
      taken_[decision.key] = std::move(decision.pages->pages);
    }
  }
  std::vector<PageRef> Extract(const AttemptKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<PageRef> pages;
    if (const auto it = taken_.find(key); it != taken_.end()) {
      pages = std::move(it->second);
      taken_.erase(it);
    }
    return pages;
  }

  CapacityLedger& ledger_;
  const CapacityLedger::Claimant claimant_;
  Mutex mutex_;
  std::map<AttemptKey, std::vector<PageRef>> taken_ ABSL_GUARDED_BY(mutex_);
};

// Claimants of both kinds on threads of their own: nothing goes over the limits, every wait ends, nothing leaks.
TEST(CapacityLedgerStressTest, SlotsAndPagesStayWithinTheirLimits) {
  constexpr int kThreads = 6;
  constexpr int kClaims = 300;
  constexpr int kSlots = 3;
  const std::unique_ptr<PagePool> pool = *PagePool::Create(kLayout, kPages);
  CapacityLedger ledger(pool.get(), {.max_sequences = kSlots, .growth_watermark_pages = 1});
  Side local(&ledger, kLocal);
  Side remote(&ledger, kRemote);
  ledger.SetHooks({.on_local = [] {}, .on_reservation = [&] { remote.Take(); }});
  pool->set_on_free([&] { ledger.OnPagesFree(); });

  std::atomic<int> in_use = 0;
  std::atomic<int> too_many = 0;
  std::atomic<int> not_queued = 0;
  const auto claim_all = [&](int thread) {
    const CapacityLedger::Claimant claimant = thread % 2 == 0 ? kLocal : kRemote;
    Side& side = thread % 2 == 0 ? local : remote;
    std::mt19937 dice(thread + 1);
    for (int i = 0; i < kClaims; ++i) {
      const AttemptKey key = RequestKey(1 + static_cast<uint64_t>(thread) * kClaims + i);
      const Age age{absl::FromUnixSeconds(i), key};
      const int count = 1 + static_cast<int>(dice() % 5);
      if (!ledger.Enqueue({.claimant = claimant, .age = age, .pages = count, .names = {}}).ok()) ++not_queued;
      if (dice() % 8 == 0) ledger.Hold(claimant, key, true);
      std::vector<PageRef> pages;
      if (dice() % 4 == 0) {
        pages = side.GiveUp(key);
      } else {
        while ((pages = side.TakeFor(key)).empty()) {
          ledger.Hold(claimant, key, false);
          std::this_thread::yield();
        }
        if (++in_use > kSlots) ++too_many;
        if (dice() % 2 == 0) {
          if (absl::StatusOr<std::vector<PageRef>> grown = ledger.Grow(1); grown.ok()) {
            pages.push_back(std::move(grown->front()));
          }
        }
        --in_use;
      }
      pool->Release(std::move(pages));
      ledger.Leave(claimant, key);
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(claim_all, t);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(not_queued, 0);
  EXPECT_EQ(too_many, 0);
  EXPECT_TRUE(local.empty());
  EXPECT_TRUE(remote.empty());
  EXPECT_EQ(ledger.counts().slots_used, 0);
  EXPECT_EQ(ledger.counts().waiting_local, 0);
  EXPECT_EQ(ledger.counts().waiting_reservations, 0);
  EXPECT_EQ(pool->counts().available(), kPages);
  pool->set_on_free(nullptr);
}

}  // namespace
}  // namespace baton
