// SPDX-License-Identifier: Apache-2.0
#include "worker/metrics.h"

#include <algorithm>
#include <map>
#include <utility>

#include "common/metrics_buckets.h"

namespace baton {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using Labels = std::map<std::string, std::string>;

void Observe(const Attempt& attempt, Histogram& histogram, absl::Duration duration) {
  if (!attempt.is_probe) histogram.Observe(absl::ToDoubleSeconds(duration));
}

void Count(const Attempt& attempt, Counter& counter, double amount) {
  if (!attempt.is_probe) counter.Increment(amount);
}

}  // namespace

// Registers metrics that all carry the labels model and role.
class WorkerMetrics::Builder {
 public:
  Builder(prometheus::Registry& registry, const std::string& model, const std::string& role)
      : registry_(registry), constant_{{"model", model}, {"role", role}} {}

  Family<Histogram>& Observes(const char* name, const char* help) const {
    return prometheus::BuildHistogram().Name(name).Help(help).Labels(constant_).Register(registry_);
  }
  Histogram& Observed(const char* name, const char* help, const BucketSet& buckets, const Labels& labels = {}) const {
    return Observes(name, help).Add(labels, buckets.boundaries);
  }
  Histogram& Queue(const char* stage) const {
    return Observed("baton_worker_queue_seconds",
                    "Waiting for the first step. Stage prefill: of a prompt that is computed here; decode: of a "
                    "sequence that was handed over",
                    WaitBuckets(), {{"stage", stage}});
  }
  Family<Counter>& Counts(const char* name, const char* help) const {
    return prometheus::BuildCounter().Name(name).Help(help).Labels(constant_).Register(registry_);
  }
  Counter& Counted(const char* name, const char* help) const { return Counts(name, help).Add({}); }
  Gauge& Level(const char* name, const char* help, const Labels& labels = {}) const {
    return prometheus::BuildGauge().Name(name).Help(help).Labels(constant_).Register(registry_).Add(labels);
  }
  Gauge& Pages(const char* state) const {
    return Level("baton_worker_kv_pages",
                 "KV pages of this worker's pool by state: free; used by a sequence; cached, kept for later prompts; "
                 "quarantined, because a silent or lost peer may still write",
                 {{"state", state}});
  }

 private:
  prometheus::Registry& registry_;
  const Labels constant_;
};

WorkerMetrics::WorkerMetrics(prometheus::Registry& registry, const std::string& model, const std::string& role)
    : WorkerMetrics(Builder(registry, model, role), TierMetrics(registry, model, role)) {}

WorkerMetrics::WorkerMetrics(const Builder& make, TierMetrics tiers)
    : tiers_(std::move(tiers)),
      prefill_queue_(make.Queue("prefill")),
      decode_queue_(make.Queue("decode")),
      prefill_(make.Observed("baton_worker_prefill_seconds", "First step of a prompt to its first token",
                             FirstTokenBuckets())),
      step_(make.Observed("baton_worker_step_seconds", "Duration of a step", StepBuckets())),
      step_sequences_(make.Observed("baton_worker_step_sequences", "Sequences in a step", BatchBuckets())),
      kv_transfer_(make.Observes("baton_worker_kv_transfer_seconds",
                                 "First KV page sent to the other worker's report that the sequence has arrived, by "
                                 "the transport that carried the pages")),
      kv_transfer_exposed_(make.Observes("baton_worker_kv_transfer_exposed_seconds",
                                         "The part of a KV transfer that follows the end of the prefill, so that "
                                         "compute does not hide it")),
      kv_transfer_bytes_(make.Counts("baton_worker_kv_transfer_bytes_total", "KV bytes sent in handoffs that worked")),
      kv_transfer_failures_(make.Counted("baton_worker_kv_transfer_failures_total",
                                         "Handoffs that were cut off or lost; refusals are not counted")),
      tokens_computed_(make.Counted("baton_worker_prompt_tokens_computed_total",
                                    "Tokens of prompts computed here, output of earlier attempts included")),
      tokens_cached_(make.Counted("baton_worker_prompt_tokens_cached_total",
                                  "Tokens of prompts whose KV pages were cached here, output of earlier attempts "
                                  "included")),
      tokens_received_(make.Counted("baton_worker_prompt_tokens_received_total",
                                    "Tokens of prompts whose KV pages another worker sent, output of earlier attempts "
                                    "included")),
      tokens_sampled_(make.Counted("baton_worker_output_tokens_sampled_total",
                                   "Output tokens sampled here, also those that a client never gets")),
      attempts_(make.Counts("baton_worker_attempts_total", "Attempts at requests that ended here, by outcome")),
      probes_(make.Counts("baton_worker_probes_total",
                          "Routers' probes of a pair of workers that ended here, by outcome; no other metric counts "
                          "probes")),
      running_(make.Level("baton_worker_running_sequences", "Sequences that hold a place in the batch")),
      waiting_(make.Level("baton_worker_waiting_sequences", "Attempts that wait for pages or a place in the batch")),
      max_running_(make.Level("baton_worker_max_running_sequences", "Places in the batch")),
      max_waiting_(make.Level("baton_worker_max_waiting_sequences", "Places in the queue")),
      pages_free_(make.Pages("free")),
      pages_used_(make.Pages("used")),
      pages_cached_(make.Pages("cached")),
      pages_quarantined_(make.Pages("quarantined")),
      quarantine_oldest_(make.Level("baton_worker_quarantine_oldest_seconds",
                                    "How long the page that has been in quarantine longest has been there; 0 without "
                                    "quarantined pages")) {}

void WorkerMetrics::Queued(const Attempt& attempt, Stage stage, absl::Duration waited) {
  Observe(attempt, stage == Stage::kPrefill ? prefill_queue_ : decode_queue_, waited);
}

void WorkerMetrics::Prefilled(const Attempt& attempt, absl::Duration first_chunk_to_first_token) {
  Observe(attempt, prefill_, first_chunk_to_first_token);
}

void WorkerMetrics::TokensComputed(const Attempt& attempt, int tokens) { Count(attempt, tokens_computed_, tokens); }
void WorkerMetrics::TokensCached(const Attempt& attempt, int tokens) { Count(attempt, tokens_cached_, tokens); }
void WorkerMetrics::TokensReceived(const Attempt& attempt, int tokens) { Count(attempt, tokens_received_, tokens); }
void WorkerMetrics::TokenSampled(const Attempt& attempt) { Count(attempt, tokens_sampled_, 1); }

void WorkerMetrics::HandedOver(const Attempt& attempt, const HandoffStats& stats) {
  const Labels transport = {{"transport", stats.transport}};
  Observe(attempt, kv_transfer_.Add(transport, StepBuckets().boundaries), stats.transfer);
  Observe(attempt, kv_transfer_exposed_.Add(transport, TokenGapBuckets().boundaries), stats.exposed);
  Count(attempt, kv_transfer_bytes_.Add(transport), static_cast<double>(stats.bytes));
}

void WorkerMetrics::HandoffFailed(const Attempt& attempt) { Count(attempt, kv_transfer_failures_, 1); }

void WorkerMetrics::AttemptEnded(const Attempt& attempt, Cause cause) {
  (attempt.is_probe ? probes_ : attempts_).Add({{"outcome", std::string(Name(cause))}}).Increment();
}

void WorkerMetrics::StepDone(const std::vector<StepEntry>& entries, absl::Duration duration) {
  if (std::all_of(entries.begin(), entries.end(),
                  [](const StepEntry& entry) { return entry.sequence->attempt().is_probe; })) {
    return;
  }
  step_.Observe(absl::ToDoubleSeconds(duration));
  step_sequences_.Observe(static_cast<double>(entries.size()));
}

void WorkerMetrics::SetLimits(uint32_t running, uint32_t waiting) {
  max_running_.Set(running);
  max_waiting_.Set(waiting);
}

void WorkerMetrics::SetSequences(uint32_t running, uint32_t waiting) {
  running_.Set(running);
  waiting_.Set(waiting);
}

void WorkerMetrics::SetPages(const PageCounts& counts) {
  pages_free_.Set(counts.free);
  pages_used_.Set(counts.used);
  pages_cached_.Set(counts.cached);
  pages_quarantined_.Set(counts.quarantined);
}

void WorkerMetrics::SetQuarantine(std::optional<SteadyTime> since, SteadyTime now) {
  quarantine_oldest_.Set(since.has_value() ? absl::ToDoubleSeconds(now - *since) : 0);
}

}  // namespace baton
