// SPDX-License-Identifier: Apache-2.0
// How busy a worker is. The scheduler writes the fields; the status reports read them.
//
// Thread-safe: atomics, and a lock for the lists. A reader may see one field newer than another.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/mutex.h"
#include "common/step_cost.h"

namespace baton {

struct WorkerLoadBoard {
  std::atomic<uint32_t> waiting_requests{0};
  std::atomic<uint64_t> waiting_tokens{0};
  std::atomic<uint32_t> running_sequences{0};
  std::atomic<double> prefill_tokens_per_second{0};
  std::atomic<double> step_seconds{0};
  std::atomic<uint64_t> waiting_batch_tokens{0};  // of waiting_tokens, with priority batch
  std::atomic<uint64_t> blocked_tokens{0};        // of waiting_tokens, of prompts that wait for a decode worker's room
  std::atomic<uint32_t> waiting_reservations{0};  // of other workers, for room here
  std::atomic<uint64_t> running_tokens{0};        // context of the running sequences
  std::atomic<uint32_t> tpot_objectives{0};       // attempts with an objective for the time per token
  std::atomic<double> tpot_slo_seconds{0};        // the least of these objectives; 0: none
  std::atomic<double> sequence_seconds{0};        // mean time that recent sequences decoded; 0: not measured
  std::atomic<int64_t> step_began_nanos{0};       // SteadyTime of the step that runs; 0: none

  // Tokens of waiting interactive prompts by tenant.
  void SetTenants(std::map<std::string, uint64_t> tenants) {
    MutexLock lock(mutex_);
    tenants_ = std::move(tenants);
  }
  std::map<std::string, uint64_t> tenants() const {
    MutexLock lock(mutex_);
    return tenants_;
  }

  // The requests of attempts that came lately, the latest last.
  void SetRecent(std::vector<uint64_t> requests) {
    MutexLock lock(mutex_);
    recent_ = std::move(requests);
  }
  std::vector<uint64_t> recent() const {
    MutexLock lock(mutex_);
    return recent_;
  }

  void SetCost(const StepCost& cost) {
    MutexLock lock(mutex_);
    cost_ = cost;
  }
  StepCost cost() const {
    MutexLock lock(mutex_);
    return cost_;
  }

 private:
  mutable Mutex mutex_;
  std::map<std::string, uint64_t> tenants_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> recent_ ABSL_GUARDED_BY(mutex_);
  StepCost cost_ ABSL_GUARDED_BY(mutex_);
};

// Updates an exponential mean of about the last 1 / weight samples.
inline void UpdateMean(std::atomic<double>& mean, double sample, double weight = 0.1) {
  const double old = mean.load(std::memory_order_relaxed);
  mean.store(old == 0 ? sample : old + weight * (sample - old), std::memory_order_relaxed);
}

// The mean speed of recent steps. A step of few tokens does not count: such a step takes no less time than a larger
// step.
class MeanSpeed {
 public:
  void Add(int tokens, double seconds) {
    if (tokens < kEnoughTokens || seconds <= 0) return;
    tokens_ += kWeight * (tokens - tokens_);
    seconds_ += kWeight * (seconds - seconds_);
  }
  // Returns 0 before the first measurement.
  double tokens_per_second() const { return seconds_ > 0 ? tokens_ / seconds_ : 0; }

 private:
  static constexpr double kWeight = 0.1;
  static constexpr int kEnoughTokens = 64;
  double tokens_ = 0;
  double seconds_ = 0;
};

}  // namespace baton
