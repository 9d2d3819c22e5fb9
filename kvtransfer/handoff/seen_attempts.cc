// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/handoff/seen_attempts.h"

namespace baton::handoff {

bool SeenAttempts::Admit(const AttemptKey& key) {
  auto [it, inserted] = latest_.try_emplace(key.request, key.attempt);
  if (!inserted) {
    if (key.attempt <= it->second) return false;
    it->second = key.attempt;
    return true;
  }
  if (order_.size() < max_requests_) {
    order_.push_back(key.request);
  } else {
    latest_.erase(order_[oldest_]);
    order_[oldest_] = key.request;
    oldest_ = (oldest_ + 1) % max_requests_;
  }
  return true;
}

}  // namespace baton::handoff
