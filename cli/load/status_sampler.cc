// SPDX-License-Identifier: Apache-2.0
#include "cli/load/status_sampler.h"

#include "absl/strings/str_cat.h"
#include "cli/client.h"

namespace baton {

StatusSampler::StatusSampler(Client& client, absl::Duration interval)
    : client_(client), ticker_(interval, [this] { Sample(); }) {}

void StatusSampler::Sample() {
  const absl::StatusOr<v1::GetStatusResponse> status = client_.GetStatus(absl::Seconds(1));
  if (!status.ok()) return;
  const absl::Duration at = SteadyTime::Now() - start_;
  MutexLock lock(mutex_);
  for (const v1::WorkerInfo& worker : status->workers()) {
    std::vector<WorkerSample>& samples = samples_[absl::StrCat(worker.worker_id(), " (", worker.role(), ")")];
    if (samples.size() >= kMaxSamples) continue;
    samples.push_back({.at = at,
                       .waiting = static_cast<int>(worker.waiting_requests()),
                       .running = static_cast<int>(worker.running_sequences()),
                       .pages_used = static_cast<int>(worker.pages_used())});
  }
}

WorkerSamples StatusSampler::Take() const {
  MutexLock lock(mutex_);
  return samples_;
}

}  // namespace baton
