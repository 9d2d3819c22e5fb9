// SPDX-License-Identifier: Apache-2.0
#include "worker/tier_metrics.h"

#include <map>

#include "common/metrics_buckets.h"

namespace baton {

TierMetrics::TierMetrics(prometheus::Registry& registry, const std::string& model, const std::string& role) {
  using Labels = std::map<std::string, std::string>;
  const Labels constant = {{"model", model}, {"role", role}};
  const auto counts = [&](const char* name, const char* help, const Labels& labels) {
    return &prometheus::BuildCounter().Name(name).Help(help).Labels(constant).Register(registry).Add(labels);
  };
  const auto level = [&](const char* name, const char* help, const Labels& labels) {
    return &prometheus::BuildGauge().Name(name).Help(help).Labels(constant).Register(registry).Add(labels);
  };
  constexpr const char* kDropped = "baton_worker_kv_tier_dropped_pages_total";
  constexpr const char* kDroppedHelp =
      "Cached KV pages that did not reach a tier. Reason evicted: the pool evicted the page before its copy; failed: "
      "an "
      "error of the tier";
  for (size_t kind = 0; kind < kTierKinds; ++kind) {
    const std::string name(Name(static_cast<TierKind>(kind)));
    const Labels tier = {{"tier", name}};
    tiers_[kind] = {
        .hits = counts("baton_worker_kv_tier_hit_pages_total",
                       "KV pages of admitted prompts that the pool lacked and the tier had", tier),
        .pages = level("baton_worker_kv_tier_pages", "KV pages in the tier", tier),
        .bytes = level("baton_worker_kv_tier_bytes", "Bytes of the KV pages in the tier", tier),
        .max_pages = level("baton_worker_kv_tier_max_pages", "KV pages that the tier has room for", tier),
        .stored = {counts("baton_worker_kv_tier_stored_pages_total", "KV pages written to the tier", tier)},
        .evicted = {counts("baton_worker_kv_tier_evicted_pages_total",
                           "KV pages that the tier evicted to make room for others", tier)},
        .loaded = {counts("baton_worker_kv_tier_loaded_pages_total", "KV pages that came back from the tier", tier)},
        .corrupt = {counts("baton_worker_kv_tier_corrupt_pages_total",
                           "KV pages that could not be read or whose checksum differed; they were computed instead",
                           tier)},
        .failed = {counts(kDropped, kDroppedHelp, {{"reason", "failed"}, {"tier", name}})}};
  }
  lost_.counter = counts(kDropped, kDroppedHelp, {{"reason", "evicted"}, {"tier", "all"}});
  misses_ = counts("baton_worker_kv_tier_missed_pages_total",
                   "KV pages of admitted prompts that the pool lacked and no tier had; 0 without tiers", {});
  not_loaded_ = counts("baton_worker_kv_tier_not_loaded_pages_total",
                       "KV pages of admitted prompts that a tier had and that were computed all the same, because the "
                       "load was estimated to take longer",
                       {});
  load_seconds_ = &prometheus::BuildHistogram()
                       .Name("baton_worker_kv_tier_load_seconds")
                       .Help("How long a prompt waited for its KV pages from tiers")
                       .Labels(constant)
                       .Register(registry)
                       .Add({}, StepBuckets().boundaries);
}

void TierMetrics::Followed::Follow(uint64_t count) {
  if (count <= last) return;
  counter->Increment(static_cast<double>(count - last));
  last = count;
}

void TierMetrics::Asked(size_t asked, std::span<const TierKind> found, int to_load) {
  for (const TierKind kind : found) tiers_[static_cast<size_t>(kind)].hits->Increment();
  misses_->Increment(static_cast<double>(asked - found.size()));
  not_loaded_->Increment(static_cast<double>(found.size()) - to_load);
}

void TierMetrics::Loaded(absl::Duration duration) { load_seconds_->Observe(absl::ToDoubleSeconds(duration)); }

void TierMetrics::Set(const KvTiersCounts& counts, size_t page_bytes) {
  for (const auto& [kind, tier] : counts.tiers) {
    OfTier& metrics = tiers_[static_cast<size_t>(kind)];
    metrics.pages->Set(tier.pages);
    metrics.bytes->Set(static_cast<double>(tier.pages * page_bytes));
    metrics.max_pages->Set(tier.slots);
    metrics.stored.Follow(tier.stored);
    metrics.evicted.Follow(tier.evicted);
    metrics.loaded.Follow(tier.loaded);
    metrics.corrupt.Follow(tier.corrupt);
    metrics.failed.Follow(tier.failed);
  }
  lost_.Follow(counts.lost);
}

}  // namespace baton
