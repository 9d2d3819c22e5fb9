// SPDX-License-Identifier: Apache-2.0
// The reservations of other workers as claimants of a CapacityLedger. Thread-safe. The ledger outlives this object.
#pragma once

#include <utility>
#include <vector>

#include "kvtransfer/endpoints/capacity.h"
#include "worker/admission/capacity_ledger.h"

namespace baton {

class Reservations final : public HandoffCapacity {
 public:
  explicit Reservations(CapacityLedger* ledger) : ledger_(*ledger) {}

  absl::Status Enqueue(Claim claim) override {
    return ledger_.Enqueue(
        {.claimant = kClaimant, .age = {claim.due, claim.key}, .pages = claim.pages, .names = std::move(claim.names)});
  }
  std::vector<Decision> TakeDecisions() override { return ledger_.TakeDecisions(kClaimant); }
  std::vector<PageRef> Withdraw(const AttemptKey& key) override { return ledger_.Withdraw(kClaimant, key); }
  void Hold(const AttemptKey& key, bool hold) override { ledger_.Hold(kClaimant, key, hold); }
  void Leave(const AttemptKey& key) override { ledger_.Leave(kClaimant, key); }

 private:
  static constexpr CapacityLedger::Claimant kClaimant = CapacityLedger::Claimant::kReservation;
  CapacityLedger& ledger_;
};

}  // namespace baton
