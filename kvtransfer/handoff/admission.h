// SPDX-License-Identifier: Apache-2.0
// An Admission decides for a ReceiverMachine which reservations are granted, and owns the pages of the grants.
//
// A grant is a batch slot and pages. The Admission owns the pages until Release, or until ReceiverMachine::Received
// passes the pages on. The attempt holds the slot until Leave.
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
  int cached = 0;  // number of first pages that hold their content already and may have other readers

  bool operator==(const GrantedPages&) const = default;
};

class Admission {
 public:
  struct Claim {
    AttemptKey key;
    absl::Time due;  // of the request: orders the claims
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
  // Returns the decisions since the last call. Their claims are no longer queued.
  virtual std::vector<Decision> TakeDecisions() = 0;
  // Removes a claim, if it is queued.
  virtual void Withdraw(const AttemptKey& key) = 0;
  // Holds a queued claim while its writer is silent: a held claim is not granted and delays no other claim.
  virtual void Hold(const AttemptKey& key, bool hold) = 0;
  // Frees the slot of a granted claim.
  virtual void Leave(const AttemptKey& key) = 0;

  // Releases `pages`, in which no write can land any more.
  virtual void Release(std::span<const PageId> pages) = 0;
  // Quarantines `pages`, whose writer is silent and may still write. No request waits for quarantined pages.
  virtual void SetQuarantined(std::span<const PageId> pages, bool quarantined) = 0;
};

}  // namespace baton::handoff
