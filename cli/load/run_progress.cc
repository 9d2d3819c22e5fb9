// SPDX-License-Identifier: Apache-2.0
#include "cli/load/run_progress.h"

#include <algorithm>
#include <utility>

namespace baton {

void RunProgress::Begin(int64_t planned) {
  MutexLock lock(mutex_);
  counts_ = Snapshot();
  counts_.planned = planned;
  began_ = SteadyTime::Now();
  ttfts_.clear();
  next_ttft_ = 0;
}

void RunProgress::Sent() {
  MutexLock lock(mutex_);
  ++counts_.sent;
}

void RunProgress::FirstToken(absl::Duration ttft) {
  MutexLock lock(mutex_);
  if (ttfts_.size() < kLatest) {
    ttfts_.push_back(ttft);
  } else {
    ttfts_[next_ttft_] = ttft;
  }
  next_ttft_ = (next_ttft_ + 1) % kLatest;
}

void RunProgress::Tokens(int count) {
  MutexLock lock(mutex_);
  counts_.tokens += count;
}

void RunProgress::Ended(bool succeeded) {
  MutexLock lock(mutex_);
  ++(succeeded ? counts_.done : counts_.failed);
}

RunProgress::Snapshot RunProgress::Take() const {
  MutexLock lock(mutex_);
  Snapshot snapshot = counts_;
  snapshot.elapsed = SteadyTime::Now() - began_;
  if (!ttfts_.empty()) {
    std::vector<absl::Duration> sorted = ttfts_;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    snapshot.ttft = *middle;
  }
  return snapshot;
}

}  // namespace baton
