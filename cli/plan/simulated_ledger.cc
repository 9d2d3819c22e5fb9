// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/simulated_ledger.h"

#include <algorithm>
#include <utility>

namespace baton::plan {

void SimulatedLedger::Enqueue(const Claim& claim) {
  const auto place = std::ranges::upper_bound(
      waiting_, claim, [](const Claim& a, const Claim& b) { return a.urgent != b.urgent ? a.urgent : a.age < b.age; },
      &Waiting::claim);
  waiting_.insert(place, Waiting{.claim = claim});
  Serve();
}

std::vector<SimulatedLedger::Claim> SimulatedLedger::TakeGrants(Claimant claimant) {
  if (claimant == Claimant::kLocalPrompt && !std::exchange(growth_failed_, false)) growth_pages_ = 0;
  Serve();
  return std::exchange(granted_[static_cast<size_t>(claimant)], {});
}

void SimulatedLedger::FreePages(int pages) {
  pages_used_ -= pages;
  Serve();
}

void SimulatedLedger::Leave() {
  --slots_used_;
  Serve();
}

bool SimulatedLedger::Grow(int pages) {
  const bool grown = pages_used_ + pages <= limits_.pages;
  if (grown) pages_used_ += pages;
  growth_pages_ = grown ? 0 : pages;
  growth_failed_ |= !grown;
  return grown;
}

void SimulatedLedger::Serve() {
  size_t i = 0;
  while (i < waiting_.size() && slots_used_ < limits_.max_sequences) {
    const Claim claim = waiting_[i].claim;
    const int spare = std::max(std::min(limits_.growth_watermark_pages, slots_used_), growth_pages_);
    if (pages_used_ + claim.pages + spare > limits_.pages) {
      const bool nothing_fits = pages_used_ + spare >= limits_.pages;
      if (nothing_fits || waiting_[i].passed >= limits_.max_bypass) return;
      ++i;
      continue;
    }
    ++slots_used_;
    pages_used_ += claim.pages;
    granted_[static_cast<size_t>(claim.claimant)].push_back(claim);
    const bool last = PassAllBefore(i);
    waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
    if (last) return;
  }
}

bool SimulatedLedger::PassAllBefore(size_t index) {
  bool last = false;
  for (size_t i = 0; i < index; ++i) {
    if (++waiting_[i].passed >= limits_.max_bypass) last = true;
  }
  return last;
}

}  // namespace baton::plan
