// SPDX-License-Identifier: Apache-2.0
// Decides which attempts may start on a worker. A claim is granted one batch slot and all of its KV pages, or nothing.
// Local prompts and reservations of other workers wait in one list:
//
//   order      urgent claims first, then the claim of the oldest request
//   passing    a claim that fits may pass earlier claims that do not fit; each claim is passed max_bypass times at most
//   hold       a claim on hold (a reservation whose writer is silent) is not granted and delays no other claim
//   growth     a grant leaves min(growth_watermark_pages, slots in use) available pages, for running sequences to grow
//              into, and no fewer than a failed Grow asked for
//   refusal    a claim that needs more pages than the pool has outside of quarantine is refused
//
// The ledger serves the list when a page or a slot becomes free, on the thread that freed the page or slot. Hooks then
// tell the claimants; TakeDecisions returns the decisions.
//
// Thread-safe. Hooks run with no lock of the ledger held. The ledger takes the pool's lock under its own lock and
// destroys no PageRef under its own lock. Owns the pages of grants not yet taken. The pool outlives the ledger.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ids.h"
#include "common/mutex.h"
#include "engine/kv/page_hash.h"
#include "engine/kv/page_pool.h"
#include "kvtransfer/endpoints/capacity.h"
#include "worker/schedule.h"

namespace baton {

class CapacityLedger {
 public:
  struct Limits {
    int max_sequences = 64;              // batch slots
    int max_waiting_reservations = 256;  // local prompts are bounded by the worker's AttemptGate
    int max_bypass = 8;
    int growth_watermark_pages = 8;
  };
  enum class Claimant : uint8_t { kLocalPrompt, kReservation };
  struct Claim {
    Claimant claimant = Claimant::kLocalPrompt;
    Age age;  // with the attempt's key
    int pages = 0;
    std::vector<PageHash> names;  // of the content of the first pages: published pages are shared
    bool urgent = false;          // another worker already holds pages for this attempt
  };
  using Decision = HandoffCapacity::Decision;  // refuses a claim with RESOURCE_EXHAUSTED
  // Any hook may be null.
  struct Hooks {
    // Local prompts have decisions to take, or pages that a failed Grow waits for became free or changed their
    // quarantine. Wakes the engine thread. Must not call the ledger or the receiver, whose lock may be held.
    std::function<void()> on_local;
    // Reservations have decisions to take. May call the ledger. No call for a reservation runs this hook.
    std::function<void()> on_reservation;
  };

  CapacityLedger(PagePool* pool, const Limits& limits);

  // A hook that runs on another thread may still finish after SetHooks has returned.
  void SetHooks(Hooks hooks);
  // Sets the limits of later decisions. Earlier grants stay.
  void SetLimits(const Limits& limits);

  // Adds a claim to the list. TakeDecisions then tells whether the claim is granted at once. A claimant has one claim
  // for a key at a time. RESOURCE_EXHAUSTED: too many reservations wait.
  absl::Status Enqueue(Claim claim);
  // Removes a waiting claim or a decision not yet taken. Idempotent. Returns the pages of such a grant: destroy the
  // PageRefs without locks, because the pool then calls OnPagesFree.
  std::vector<PageRef> Withdraw(Claimant claimant, const AttemptKey& key);
  // Puts a waiting claim on hold, or ends the hold. The next call that serves the list heeds the change, so that all
  // claims of a writer change at once. A claim already decided is not affected.
  void Hold(Claimant claimant, const AttemptKey& key, bool hold);
  // Serves the list, then returns the decisions for `claimant` not yet taken, in the order of the grants.
  std::vector<Decision> TakeDecisions(Claimant claimant);
  // Frees the slot of a grant. Idempotent.
  void Leave(Claimant claimant, const AttemptKey& key);
  // Takes `pages` pages for a running sequence. RESOURCE_EXHAUSTED: on_local will run when pages become free. Grants
  // leave these pages until a Grow succeeds or, between two calls of TakeDecisions(kLocalPrompt), none has failed. A
  // tick therefore grows its sequences first, then takes decisions.
  absl::StatusOr<std::vector<PageRef>> Grow(int pages);
  // For PagePool::set_on_free, on any thread.
  void OnPagesFree();

  struct Counts {
    int slots_used = 0;
    int waiting_local = 0;
    int waiting_reservations = 0;
  };
  Counts counts() const;

 private:
  struct Waiting {
    Claim claim;
    int passed = 0;
    bool on_hold = false;
  };
  struct Wake {
    bool local = false;        // a decision for a local prompt
    bool reservation = false;  // a decision for a reservation
    bool growth = false;       // pages may be there for a failed Grow, or never come
  };
  using Id = std::pair<Claimant, AttemptKey>;

  std::vector<Waiting>::iterator Find(Claimant claimant, const AttemptKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int CountWaiting(Claimant claimant) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Decides all claims that can be decided now and notes which hooks to run.
  void Serve(Wake* wake) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RefuseUnservable(const PageCounts& counts, Wake* wake) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Counts that the claim at `index` passes earlier claims. Returns whether an earlier claim must not be passed again.
  bool PassAllBefore(size_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Decide(const Claim& claim, absl::StatusOr<SharedPages> pages, Wake* wake) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunHooks(const Wake& wake);

  PagePool& pool_;
  mutable Mutex mutex_;
  Limits limits_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const Hooks> hooks_ ABSL_GUARDED_BY(mutex_);
  std::vector<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);                  // in the order of the list
  std::array<std::vector<Decision>, 2> decided_ ABSL_GUARDED_BY(mutex_);  // not taken yet, by claimant
  absl::flat_hash_set<Id> slots_ ABSL_GUARDED_BY(mutex_);
  bool growth_waits_ ABSL_GUARDED_BY(mutex_) = false;            // a Grow failed, and on_local has not run since
  bool growth_failed_ ABSL_GUARDED_BY(mutex_) = false;           // a Grow failed since local decisions were taken
  int growth_pages_ ABSL_GUARDED_BY(mutex_) = 0;                 // pages that grants leave for a failed Grow
  uint32_t quarantined_at_failure_ ABSL_GUARDED_BY(mutex_) = 0;  // quarantined pages when the Grow failed
};

}  // namespace baton
