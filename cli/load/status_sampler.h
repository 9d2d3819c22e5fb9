// SPDX-License-Identifier: Apache-2.0
// Asks a Baton router for its workers' state once a second, on a thread of its own. Thread-safe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "cli/load/ticker.h"
#include "common/mutex.h"

namespace baton {

class Client;

// The load of a worker at a moment.
struct WorkerSample {
  absl::Duration at;  // from the start of the sampler
  int waiting = 0;    // requests in the queue
  int running = 0;    // sequences in the batch
  int pages_used = 0;
};

// By worker, for instance "decode-0 (decode)".
using WorkerSamples = std::map<std::string, std::vector<WorkerSample>>;

class StatusSampler {
 public:
  static constexpr size_t kMaxSamples = 36'000;  // of each worker

  // `client` must outlive the sampler.
  explicit StatusSampler(Client& client, absl::Duration interval = absl::Seconds(1));

  // Returns the samples so far. A router that does not answer leaves a gap.
  WorkerSamples Take() const;

 private:
  void Sample();

  Client& client_;
  const SteadyTime start_ = SteadyTime::Now();
  mutable Mutex mutex_;
  WorkerSamples samples_ ABSL_GUARDED_BY(mutex_);
  Ticker ticker_;  // last: its thread uses the other members
};

}  // namespace baton
