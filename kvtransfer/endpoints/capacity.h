// Who decides which reservations a decode worker grants. The HandoffReceiver asks; the worker implements this
// interface, because slots and pages are shared with prompts that the worker computes itself.
//
// The receiver calls every method with its own lock held: an implementation must not call the receiver from within. To
// announce decisions, an implementation calls HandoffReceiver::Poke from elsewhere.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/ids.h"
#include "engine/kv/page_hash.h"
#include "engine/kv/page_pool.h"

namespace baton {

class HandoffCapacity {
 public:
  struct Claim {
    AttemptKey key;
    absl::Time arrival;  // of the request at the router
    int pages = 0;
    std::vector<PageHash> names;  // of the content of the first pages
  };
  struct Decision {
    AttemptKey key;
    absl::StatusOr<SharedPages> pages;  // or why the claim is refused
  };

  virtual ~HandoffCapacity() = default;
  // Queues a claim on a slot and pages. RESOURCE_EXHAUSTED: too many reservations wait.
  virtual absl::Status Enqueue(Claim claim) = 0;
  // Returns what was decided since the last call. The claims are no longer queued.
  virtual std::vector<Decision> TakeDecisions() = 0;
  // Removes a claim, if it is queued. Returns the pages of a grant that nobody has taken.
  virtual std::vector<PageRef> Withdraw(const AttemptKey& key) = 0;
  // The claim's writer is silent: the claim neither advances nor holds others up.
  virtual void Hold(const AttemptKey& key, bool hold) = 0;
  // The slot of a granted claim is free. Its pages come back on their own.
  virtual void Leave(const AttemptKey& key) = 0;
};

}  // namespace baton
