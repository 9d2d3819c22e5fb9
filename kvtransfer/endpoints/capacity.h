// SPDX-License-Identifier: Apache-2.0
// A HandoffCapacity decides for a HandoffReceiver which reservations are granted. The worker implements this interface,
// because prompts that the worker computes need the same slots and pages.
//
// The receiver calls every method under its own lock: an implementation must not call the receiver from within. An
// implementation announces decisions by HandoffReceiver::Poke, from elsewhere.
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
    absl::Time due;  // of the request: orders the claims
    int pages = 0;
    std::vector<PageHash> names;  // of the content of the first pages
  };
  struct Decision {
    AttemptKey key;
    absl::StatusOr<SharedPages> pages;  // or why the claim is refused
  };

  virtual ~HandoffCapacity() = default;
  // Queues a claim on a slot and pages. RESOURCE_EXHAUSTED: too many claims wait.
  virtual absl::Status Enqueue(Claim claim) = 0;
  // Returns the decisions since the last call. Their claims are no longer queued.
  virtual std::vector<Decision> TakeDecisions() = 0;
  // Removes a claim, if it is queued. Returns the pages of a grant that TakeDecisions has not returned.
  virtual std::vector<PageRef> Withdraw(const AttemptKey& key) = 0;
  // Holds a queued claim while its writer is silent: a held claim is not granted and delays no other claim.
  virtual void Hold(const AttemptKey& key, bool hold) = 0;
  // Frees the slot of a granted claim. The receiver's PageRefs release the pages.
  virtual void Leave(const AttemptKey& key) = 0;
};

}  // namespace baton
