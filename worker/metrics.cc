// SPDX-License-Identifier: Apache-2.0
#include "worker/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

#include <algorithm>
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

// Registers metrics that all carry the labels model and role. The labels are of the series, not of the family: after a
// change of the role, the page still has each family once.
class WorkerMetrics::Builder {
 public:
  Builder(prometheus::Registry& registry, const std::string& model, const std::string& role)
      : registry_(registry), constant_{{"model", model}, {"role", role}} {}

  // Returns `labels` with the labels that all series carry.
  Labels With(Labels labels) const {
    labels.insert(constant_.begin(), constant_.end());
    return labels;
  }
  Family<Histogram>& Observes(const char* name, const char* help) const {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry_);
  }
  Histogram& Observed(const char* name, const char* help, const BucketSet& buckets, const Labels& labels = {}) const {
    return Observes(name, help).Add(With(labels), buckets.boundaries);
  }
  Histogram& Queue(const char* stage) const {
    return Observed("baton_worker_queue_seconds",
                    "Waiting for the first step. Stage prefill: of a prompt that is computed here; decode: of a "
                    "sequence that was handed over",
                    WaitBuckets(), {{"stage", stage}});
  }
  Family<Counter>& Counts(const char* name, const char* help) const {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry_);
  }
  Counter& Counted(const char* name, const char* help) const { return Counts(name, help).Add(With({})); }
  Gauge& Level(const char* name, const char* help, const Labels& labels = {}) const {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry_).Add(With(labels));
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

struct WorkerMetrics::Series {
  Series(const Builder& make, const TierMetrics& of_tiers)
      : labels(make),
        tiers(of_tiers),
        prefill_queue(make.Queue("prefill")),
        decode_queue(make.Queue("decode")),
        prefill(make.Observed("baton_worker_prefill_seconds", "First step of a prompt to its first token",
                              FirstTokenBuckets())),
        step(make.Observed("baton_worker_step_seconds", "Duration of a step", StepBuckets())),
        step_sequences(make.Observed("baton_worker_step_sequences", "Sequences in a step", BatchBuckets())),
        kv_transfer(make.Observes("baton_worker_kv_transfer_seconds",
                                  "First KV page sent to the other worker's report that the sequence has arrived, by "
                                  "the transport that carried the pages")),
        kv_transfer_exposed(make.Observes("baton_worker_kv_transfer_exposed_seconds",
                                          "The part of a KV transfer that follows the end of the prefill, so that "
                                          "compute does not hide it")),
        kv_transfer_bytes(make.Counts("baton_worker_kv_transfer_bytes_total", "KV bytes sent in handoffs that worked")),
        kv_transfer_failures(make.Counted("baton_worker_kv_transfer_failures_total",
                                          "Handoffs that were cut off or lost; refusals are not counted")),
        tokens_computed(make.Counted("baton_worker_prompt_tokens_computed_total",
                                     "Tokens of prompts computed here, output of earlier attempts included")),
        tokens_cached(make.Counted("baton_worker_prompt_tokens_cached_total",
                                   "Tokens of prompts whose KV pages were cached here, output of earlier attempts "
                                   "included")),
        tokens_received(make.Counted("baton_worker_prompt_tokens_received_total",
                                     "Tokens of prompts whose KV pages another worker sent, output of earlier attempts "
                                     "included")),
        tokens_sampled(make.Counted("baton_worker_output_tokens_sampled_total",
                                    "Output tokens sampled here, also those that a client never gets")),
        attempts(make.Counts("baton_worker_attempts_total", "Attempts at requests that ended here, by outcome")),
        probes(make.Counts("baton_worker_probes_total",
                           "Routers' probes of a pair of workers that ended here, by outcome; no other metric counts "
                           "probes")),
        running(make.Level("baton_worker_running_sequences", "Sequences that hold a place in the batch")),
        waiting(make.Level("baton_worker_waiting_sequences", "Attempts that wait for pages or a place in the batch")),
        max_running(make.Level("baton_worker_max_running_sequences", "Places in the batch")),
        max_waiting(make.Level("baton_worker_max_waiting_sequences", "Places in the queue")),
        pages_free(make.Pages("free")),
        pages_used(make.Pages("used")),
        pages_cached(make.Pages("cached")),
        pages_quarantined(make.Pages("quarantined")),
        quarantine_oldest(make.Level("baton_worker_quarantine_oldest_seconds",
                                     "How long the page that has been in quarantine longest has been there; 0 without "
                                     "quarantined pages")) {}

  // Everything that goes up and down.
  std::vector<prometheus::Gauge*> Levels() {
    return {&running,    &waiting,      &max_running,       &max_waiting,      &pages_free,
            &pages_used, &pages_cached, &pages_quarantined, &quarantine_oldest};
  }

  const Builder labels;
  TierMetrics tiers;
  prometheus::Histogram& prefill_queue;
  prometheus::Histogram& decode_queue;
  prometheus::Histogram& prefill;
  prometheus::Histogram& step;
  prometheus::Histogram& step_sequences;
  // By transport.
  prometheus::Family<prometheus::Histogram>& kv_transfer;
  prometheus::Family<prometheus::Histogram>& kv_transfer_exposed;
  prometheus::Family<prometheus::Counter>& kv_transfer_bytes;
  prometheus::Counter& kv_transfer_failures;
  prometheus::Counter& tokens_computed;
  prometheus::Counter& tokens_cached;
  prometheus::Counter& tokens_received;
  prometheus::Counter& tokens_sampled;
  prometheus::Family<prometheus::Counter>& attempts;
  prometheus::Family<prometheus::Counter>& probes;
  prometheus::Gauge& running;
  prometheus::Gauge& waiting;
  prometheus::Gauge& max_running;
  prometheus::Gauge& max_waiting;
  prometheus::Gauge& pages_free;
  prometheus::Gauge& pages_used;
  prometheus::Gauge& pages_cached;
  prometheus::Gauge& pages_quarantined;
  prometheus::Gauge& quarantine_oldest;
};

WorkerMetrics::WorkerMetrics(prometheus::Registry& registry, const std::string& model, const std::string& role)
    : registry_(registry), model_(model) {
  SetRole(role);
}

WorkerMetrics::~WorkerMetrics() = default;

void WorkerMetrics::SetRole(const std::string& role) {
  MutexLock lock(mutex_);
  std::unique_ptr<Series>& next = by_role_[role];
  if (next == nullptr)
    next = std::make_unique<Series>(Builder(registry_, model_, role), TierMetrics(registry_, model_, role));
  Series* const former = current_.exchange(next.get());
  if (former == nullptr || former == next.get()) return;
  next->max_running.Set(former->max_running.Value());
  next->max_waiting.Set(former->max_waiting.Value());
  next->tiers.Continue(former->tiers);
  for (prometheus::Gauge* level : former->Levels()) level->Set(0);
}

void WorkerMetrics::Queued(const Attempt& attempt, Stage stage, absl::Duration waited) {
  Observe(attempt, stage == Stage::kPrefill ? series().prefill_queue : series().decode_queue, waited);
}

void WorkerMetrics::Prefilled(const Attempt& attempt, absl::Duration first_chunk_to_first_token) {
  Observe(attempt, series().prefill, first_chunk_to_first_token);
}

void WorkerMetrics::TokensComputed(const Attempt& attempt, int tokens) {
  Count(attempt, series().tokens_computed, tokens);
}
void WorkerMetrics::TokensCached(const Attempt& attempt, int tokens) { Count(attempt, series().tokens_cached, tokens); }
void WorkerMetrics::TokensReceived(const Attempt& attempt, int tokens) {
  Count(attempt, series().tokens_received, tokens);
}
void WorkerMetrics::TokenSampled(const Attempt& attempt) { Count(attempt, series().tokens_sampled, 1); }

void WorkerMetrics::HandedOver(const Attempt& attempt, const HandoffStats& stats) {
  Series& now = series();
  const Labels transport = now.labels.With({{"transport", stats.transport}});
  Observe(attempt, now.kv_transfer.Add(transport, StepBuckets().boundaries), stats.transfer);
  Observe(attempt, now.kv_transfer_exposed.Add(transport, TokenGapBuckets().boundaries), stats.exposed);
  Count(attempt, now.kv_transfer_bytes.Add(transport), static_cast<double>(stats.bytes));
}

void WorkerMetrics::HandoffFailed(const Attempt& attempt) { Count(attempt, series().kv_transfer_failures, 1); }

void WorkerMetrics::AttemptEnded(const Attempt& attempt, Cause cause) {
  Series& now = series();
  (attempt.is_probe ? now.probes : now.attempts)
      .Add(now.labels.With({{"outcome", std::string(Name(cause))}}))
      .Increment();
}

void WorkerMetrics::StepDone(const std::vector<StepEntry>& entries, absl::Duration duration) {
  if (std::all_of(entries.begin(), entries.end(),
                  [](const StepEntry& entry) { return entry.sequence->attempt().is_probe; })) {
    return;
  }
  series().step.Observe(absl::ToDoubleSeconds(duration));
  series().step_sequences.Observe(static_cast<double>(entries.size()));
}

// A level that is set here is never of a role that the worker has left: SetRole, which zeroes such levels, has the
// lock.
void WorkerMetrics::SetLimits(uint32_t running, uint32_t waiting) {
  MutexLock lock(mutex_);
  series().max_running.Set(running);
  series().max_waiting.Set(waiting);
}

void WorkerMetrics::SetSequences(uint32_t running, uint32_t waiting) {
  MutexLock lock(mutex_);
  series().running.Set(running);
  series().waiting.Set(waiting);
}

void WorkerMetrics::SetPages(const PageCounts& counts) {
  MutexLock lock(mutex_);
  series().pages_free.Set(counts.free);
  series().pages_used.Set(counts.used);
  series().pages_cached.Set(counts.cached);
  series().pages_quarantined.Set(counts.quarantined);
}

void WorkerMetrics::SetQuarantine(std::optional<SteadyTime> since, SteadyTime now) {
  MutexLock lock(mutex_);
  series().quarantine_oldest.Set(since.has_value() ? absl::ToDoubleSeconds(now - *since) : 0);
}

void WorkerMetrics::TiersAsked(const Attempt& attempt, size_t asked, std::span<const TierKind> found, int to_load) {
  if (!attempt.is_probe) series().tiers.Asked(asked, found, to_load);
}

void WorkerMetrics::TiersLoaded(const Attempt& attempt, absl::Duration duration) {
  if (!attempt.is_probe) series().tiers.Loaded(duration);
}

void WorkerMetrics::SetTiers(const KvTiersCounts& counts, size_t page_bytes) {
  MutexLock lock(mutex_);
  series().tiers.Set(counts, page_bytes);
}

}  // namespace baton
