// SPDX-License-Identifier: Apache-2.0
// The metrics of a worker. Every name begins with baton_worker_, every series has the labels model and role.
//
// Functions take the attempt, because probes are no requests: a probe counts only in baton_worker_probes_total, when
// the probe ends.
//
// Thread-safe.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
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
  TierMetrics& tiers() { return tiers_; }
  // `since` of PagePool::quarantined_since.
  void SetQuarantine(std::optional<SteadyTime> since, SteadyTime now);

 private:
  class Builder;
  WorkerMetrics(const Builder& builder, TierMetrics tiers);

  TierMetrics tiers_;
  prometheus::Histogram& prefill_queue_;
  prometheus::Histogram& decode_queue_;
  prometheus::Histogram& prefill_;
  prometheus::Histogram& step_;
  prometheus::Histogram& step_sequences_;
  // By transport.
  prometheus::Family<prometheus::Histogram>& kv_transfer_;
  prometheus::Family<prometheus::Histogram>& kv_transfer_exposed_;
  prometheus::Family<prometheus::Counter>& kv_transfer_bytes_;
  prometheus::Counter& kv_transfer_failures_;
  prometheus::Counter& tokens_computed_;
  prometheus::Counter& tokens_cached_;
  prometheus::Counter& tokens_received_;
  prometheus::Counter& tokens_sampled_;
  prometheus::Family<prometheus::Counter>& attempts_;
  prometheus::Family<prometheus::Counter>& probes_;
  prometheus::Gauge& running_;
  prometheus::Gauge& waiting_;
  prometheus::Gauge& max_running_;
  prometheus::Gauge& max_waiting_;
  prometheus::Gauge& pages_free_;
  prometheus::Gauge& pages_used_;
  prometheus::Gauge& pages_cached_;
  prometheus::Gauge& pages_quarantined_;
  prometheus::Gauge& quarantine_oldest_;
};

}  // namespace baton
