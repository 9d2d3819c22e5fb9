// SPDX-License-Identifier: Apache-2.0
// The metrics of a worker. Every name begins with baton_worker_, every series has the labels model and role.
//
// Functions take the attempt, because probes are no requests: a probe counts only in baton_worker_probes_total, when
// the probe ends.
//
// Thread-safe.
#pragma once

#include <prometheus/registry.h>

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/mutex.h"
#include "common/outcome.h"
#include "common/steady_time.h"
#include "engine/kv/page_pool.h"
#include "kvtransfer/endpoints/endpoints.h"
#include "worker/attempt.h"
#include "worker/step.h"
#include "worker/tier_metrics.h"

namespace baton {

class WorkerMetrics {
 public:
  WorkerMetrics(prometheus::Registry& registry, const std::string& model, const std::string& role);
  ~WorkerMetrics();

  enum class Stage {
    kPrefill,  // until the first step of a prompt that this worker computes
    kDecode,   // until the first step of a received sequence
  };
  void Queued(const Attempt& attempt, Stage stage, absl::Duration waited);
  void Prefilled(const Attempt& attempt, absl::Duration first_chunk_to_first_token);
  // Each token of an attempt's first context is computed here, cached here, or received.
  void TokensComputed(const Attempt& attempt, int tokens);
  void TokensCached(const Attempt& attempt, int tokens);
  void TokensReceived(const Attempt& attempt, int tokens);
  void TokenSampled(const Attempt& attempt);
  void HandedOver(const Attempt& attempt, const HandoffStats& stats);
  // A handoff was cut off or lost. A refusal is no failure.
  void HandoffFailed(const Attempt& attempt);
  void AttemptEnded(const Attempt& attempt, Cause cause);

  // A step that holds only probes is not counted.
  void StepDone(const std::vector<StepEntry>& entries, absl::Duration duration);

  void SetLimits(uint32_t running, uint32_t waiting);
  void SetSequences(uint32_t running, uint32_t waiting);
  void SetPages(const PageCounts& counts);
  // Of prompts that ask the tiers.
  void TiersAsked(const Attempt& attempt, size_t asked, std::span<const TierKind> found, int to_load);
  void TiersLoaded(const Attempt& attempt, absl::Duration duration);
  void SetTiers(const KvTiersCounts& counts, size_t page_bytes);
  // `since` of PagePool::quarantined_since.
  void SetQuarantine(std::optional<SteadyTime> since, SteadyTime now);

  // Later counts have the label of `role`. The counters of the former role stay, its levels are 0 from now on. Counts
  // of another thread meanwhile may still go to the former role.
  void SetRole(const std::string& role);

 private:
  class Builder;
  struct Series;  // of one role

  Series& series() const { return *current_; }

  prometheus::Registry& registry_;
  const std::string model_;
  Mutex mutex_;
  std::map<std::string, std::unique_ptr<Series>> by_role_ ABSL_GUARDED_BY(mutex_);  // none is ever removed
  std::atomic<Series*> current_{nullptr};
};

}  // namespace baton
