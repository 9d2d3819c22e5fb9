// SPDX-License-Identifier: Apache-2.0
#include "worker/admission/capacity_ledger.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"

namespace baton {
namespace {

bool ComesBefore(const CapacityLedger::Claim& a, const CapacityLedger::Claim& b) {
  return a.urgent != b.urgent ? a.urgent : a.age < b.age;
}

}  // namespace

CapacityLedger::CapacityLedger(PagePool* pool, const Limits& limits)
    : pool_(*pool), limits_(limits), hooks_(std::make_shared<const Hooks>()) {}

void CapacityLedger::SetHooks(Hooks hooks) {
  auto shared = std::make_shared<const Hooks>(std::move(hooks));
  MutexLock lock(mutex_);
  hooks_.swap(shared);
}

void CapacityLedger::SetLimits(const Limits& limits) {
  MutexLock lock(mutex_);
  limits_ = limits;
}

absl::Status CapacityLedger::Enqueue(Claim claim) {
  MutexLock lock(mutex_);
  if (claim.claimant == Claimant::kReservation) {
    const int waiting = CountWaiting(Claimant::kReservation);
    if (waiting >= limits_.max_waiting_reservations) {
      return absl::ResourceExhaustedError(absl::StrCat(waiting, " reservations wait, the limit"));
    }
  }
  assert(Find(claim.claimant, claim.age.key) == waiting_.end());
  const auto place = std::upper_bound(waiting_.begin(), waiting_.end(), claim,
                                      [](const Claim& a, const Waiting& b) { return ComesBefore(a, b.claim); });
  waiting_.insert(place, Waiting{.claim = std::move(claim)});
  return absl::OkStatus();
}

std::vector<PageRef> CapacityLedger::Withdraw(Claimant claimant, const AttemptKey& key) {
  std::vector<PageRef> pages;
  Wake wake;
  {
    MutexLock lock(mutex_);
    std::vector<Decision>& decided = decided_[static_cast<size_t>(claimant)];
    const auto decision = std::find_if(decided.begin(), decided.end(), [&](const Decision& d) { return d.key == key; });
    if (const auto waiting = Find(claimant, key); waiting != waiting_.end()) {
      waiting_.erase(waiting);
    } else if (decision != decided.end()) {
      if (decision->pages.ok()) pages = std::move(decision->pages->pages);
      decided.erase(decision);
      slots_.erase({claimant, key});
    } else {
      return {};
    }
    Serve(&wake);
  }
  if (claimant == Claimant::kReservation) wake.reservation = false;
  RunHooks(wake);
  return pages;
}

void CapacityLedger::Hold(Claimant claimant, const AttemptKey& key, bool hold) {
  MutexLock lock(mutex_);
  if (const auto waiting = Find(claimant, key); waiting != waiting_.end()) waiting->on_hold = hold;
}

std::vector<CapacityLedger::Decision> CapacityLedger::TakeDecisions(Claimant claimant) {
  std::vector<Decision> decisions;
  Wake wake;
  {
    MutexLock lock(mutex_);
    if (claimant == Claimant::kLocalPrompt && !std::exchange(growth_failed_, false)) growth_pages_ = 0;
    Serve(&wake);
    decisions = std::exchange(decided_[static_cast<size_t>(claimant)], {});
  }
  if (claimant == Claimant::kReservation) wake.reservation = false;
  if (claimant == Claimant::kLocalPrompt) wake.local = false;
  RunHooks(wake);
  return decisions;
}

void CapacityLedger::Leave(Claimant claimant, const AttemptKey& key) {
  Wake wake;
  {
    MutexLock lock(mutex_);
    if (slots_.erase({claimant, key}) == 0) return;
    Serve(&wake);
  }
  if (claimant == Claimant::kReservation) wake.reservation = false;
  RunHooks(wake);
}

absl::StatusOr<std::vector<PageRef>> CapacityLedger::Grow(int pages) {
  // Under the lock, so that OnPagesFree finds either the pages taken or the failure noted.
  MutexLock lock(mutex_);
  absl::StatusOr<std::vector<PageRef>> grown = pool_.Allocate(pages);
  growth_pages_ = grown.ok() ? 0 : pages;
  if (!grown.ok()) {
    growth_waits_ = growth_failed_ = true;
    quarantined_at_failure_ = pool_.counts().quarantined;
  }
  return grown;
}

void CapacityLedger::OnPagesFree() {
  Wake wake;
  {
    MutexLock lock(mutex_);
    Serve(&wake);
    wake.growth |= std::exchange(growth_waits_, false);
  }
  RunHooks(wake);
}

CapacityLedger::Counts CapacityLedger::counts() const {
  MutexLock lock(mutex_);
  return {.slots_used = static_cast<int>(slots_.size()),
          .waiting_local = CountWaiting(Claimant::kLocalPrompt),
          .waiting_reservations = CountWaiting(Claimant::kReservation)};
}

// ---------------------------------------------------------------------------------------------------- the list

std::vector<CapacityLedger::Waiting>::iterator CapacityLedger::Find(Claimant claimant, const AttemptKey& key) {
  return std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& waiting) {
    return waiting.claim.claimant == claimant && waiting.claim.age.key == key;
  });
}

int CapacityLedger::CountWaiting(Claimant claimant) const {
  return static_cast<int>(std::count_if(waiting_.begin(), waiting_.end(),
                                        [&](const Waiting& waiting) { return waiting.claim.claimant == claimant; }));
}

void CapacityLedger::Serve(Wake* wake) {
  if (waiting_.empty() && !growth_waits_) return;
  const PageCounts counts = pool_.counts();
  if (growth_waits_ && counts.quarantined != quarantined_at_failure_) {
    growth_waits_ = false;
    wake->growth = true;
  }
  RefuseUnservable(counts, wake);
  size_t i = 0;
  while (i < waiting_.size() && static_cast<int>(slots_.size()) < limits_.max_sequences) {
    const Waiting& next = waiting_[i];
    if (next.on_hold) {
      ++i;
      continue;
    }
    const int watermark = std::min(limits_.growth_watermark_pages, static_cast<int>(slots_.size()));
    const int spare = std::max(watermark, growth_pages_);
    absl::StatusOr<SharedPages> pages = pool_.AllocateShared(next.claim.names, next.claim.pages, spare);
    if (!pages.ok()) {
      if (next.passed >= limits_.max_bypass) return;
      ++i;
      continue;
    }
    slots_.insert({next.claim.claimant, next.claim.age.key});
    Decide(next.claim, std::move(pages), wake);
    const bool last = PassAllBefore(i);
    waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
    if (last) return;
  }
}

// Pages in quarantine may never come back. The router may find a better place.
void CapacityLedger::RefuseUnservable(const PageCounts& counts, Wake* wake) {
  const uint32_t usable = counts.total - counts.quarantined;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (it->claim.pages <= static_cast<int64_t>(usable)) {
      ++it;
      continue;
    }
    Decide(it->claim,
           absl::ResourceExhaustedError(absl::StrCat(it->claim.pages, " KV pages are needed, ", counts.quarantined,
                                                     " of ", counts.total, " are in quarantine")),
           wake);
    it = waiting_.erase(it);
  }
}

bool CapacityLedger::PassAllBefore(size_t index) {
  bool last = false;
  for (size_t i = 0; i < index; ++i) {
    if (!waiting_[i].on_hold && ++waiting_[i].passed >= limits_.max_bypass) last = true;
  }
  return last;
}

void CapacityLedger::Decide(const Claim& claim, absl::StatusOr<SharedPages> pages, Wake* wake) {
  decided_[static_cast<size_t>(claim.claimant)].push_back({claim.age.key, std::move(pages)});
  (claim.claimant == Claimant::kLocalPrompt ? wake->local : wake->reservation) = true;
}

void CapacityLedger::RunHooks(const Wake& wake) {
  if (!wake.local && !wake.growth && !wake.reservation) return;
  std::shared_ptr<const Hooks> hooks;
  {
    MutexLock lock(mutex_);
    hooks = hooks_;
  }
  if ((wake.local || wake.growth) && hooks->on_local != nullptr) hooks->on_local();
  if (wake.reservation && hooks->on_reservation != nullptr) hooks->on_reservation();
}

}  // namespace baton
