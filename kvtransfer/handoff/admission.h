// What a Receiver asks of its worker: the decision which reservations are granted, and the ownership of their pages.
//
// A grant is a batch slot and pages. The Admission owns the pages until Release, or until Receiver::Received passes
// them on. The slot is held until Leave.
#pragma once

#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/ids.h"
#include "engine/kv/page_hash.h"
#include "engine/types.h"

namespace baton::handoff {

struct GrantedPages {
  std::vector<PageId> pages;
  int cached = 0;  // the first pages, which hold their content already and may have other readers

  bool operator==(const GrantedPages&) const = default;
};

class Admission {
 public:
  struct Claim {
    AttemptKey key;
    absl::Time arrival;  // of the request at the router
    int pages = 0;
    std::vector<PageHash> names;  // of the content of the first pages
  };
  struct Decision {
    AttemptKey key;
    absl::StatusOr<GrantedPages> pages;  // or why the claim is refused
  };

  virtual ~Admission() = default;
  // Queues a claim. RESOURCE_EXHAUSTED: too many claims wait.
  virtual absl::Status Enqueue(Claim claim) = 0;
  // Returns what was decided since the last call. The claims are no longer queued.
  virtual std::vector<Decision> TakeDecisions() = 0;
  // Removes a claim, if it is queued.
  virtual void Withdraw(const AttemptKey& key) = 0;
  // The writer of a queued claim is silent, or is heard again: while it is silent, the claim is not granted and holds
  // nobody up.
  virtual void Hold(const AttemptKey& key, bool hold) = 0;
  // A granted claim needs its slot no longer.
  virtual void Leave(const AttemptKey& key) = 0;

  // No write can land in `pages` any more.
  virtual void Release(std::span<const PageId> pages) = 0;
  // The writer of `pages` is silent and may still write: `pages` stay allocated, and nobody waits for them.
  virtual void SetQuarantined(std::span<const PageId> pages, bool quarantined) = 0;
};

}  // namespace baton::handoff
