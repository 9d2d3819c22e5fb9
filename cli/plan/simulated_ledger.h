// SPDX-License-Identifier: Apache-2.0
// The CapacityLedger of a simulated worker: batch slots and KV pages as numbers, by the rules of
// worker/admission/capacity_ledger.h for order, passing, growth. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "worker/schedule.h"

namespace baton::plan {

using RequestIndex = uint32_t;

class SimulatedLedger {
 public:
  struct Limits {
    int pages = 0;
    int max_sequences = 64;
    int max_bypass = 8;
    int growth_watermark_pages = 8;
  };
  enum class Claimant : uint8_t { kLocalPrompt, kReservation };
  struct Claim {
    Claimant claimant = Claimant::kLocalPrompt;
    Age age;
    RequestIndex request = 0;
    int pages = 0;
    bool urgent = false;
  };

  explicit SimulatedLedger(const Limits& limits) : limits_(limits) {}

  // Adds a claim, which must fit the pool. TakeGrants tells whether the claim is granted at once.
  void Enqueue(const Claim& claim);
  // Returns the grants since the last call. Each has a slot and its pages.
  std::vector<Claim> TakeGrants(Claimant claimant);
  // Give back pages, or a slot. Then serve the list.
  void FreePages(int pages);
  void Leave();
  // Takes pages for a running sequence. After a failure, grants leave the pages until a Grow succeeds.
  bool Grow(int pages);

  int pages_used() const { return pages_used_; }
  int slots_used() const { return slots_used_; }
  int waiting() const { return static_cast<int>(waiting_.size()); }
  const Limits& limits() const { return limits_; }

 private:
  struct Waiting {
    Claim claim;
    int passed = 0;
  };

  void Serve();
  // Returns whether an earlier claim must not be passed again.
  bool PassAllBefore(size_t index);

  const Limits limits_;
  int pages_used_ = 0;
  int slots_used_ = 0;
  std::vector<Waiting> waiting_;  // in the order of the list
  std::array<std::vector<Claim>, 2> granted_;
  bool growth_failed_ = false;  // since the local grants were taken
  int growth_pages_ = 0;
};

}  // namespace baton::plan
