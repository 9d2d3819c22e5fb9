// SPDX-License-Identifier: Apache-2.0
// SeenAttempts knows the latest attempt of each recent request: a worker refuses an attempt that is not newer.
//
// Bounded: a full table forgets the oldest request. A router numbers attempts upwards, so that the table only guards
// against messages that were delayed for long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/ids.h"

namespace baton::handoff {

class SeenAttempts {
 public:
  explicit SeenAttempts(size_t max_requests = 16384) : max_requests_(max_requests) {}

  // Returns false, and changes nothing, if this or a later attempt of the request was admitted before.
  bool Admit(const AttemptKey& key);

  bool operator==(const SeenAttempts& other) const { return latest_ == other.latest_; }
  template <typename H>
  friend H AbslHashValue(H h, const SeenAttempts& seen) {
    return H::combine(std::move(h), seen.latest_);
  }

 private:
  size_t max_requests_;
  absl::flat_hash_map<RequestId, uint32_t> latest_;
  std::vector<RequestId> order_;  // of first sight; a ring once it is full
  size_t oldest_ = 0;             // where the ring starts
};

}  // namespace baton::handoff
