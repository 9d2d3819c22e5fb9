// SPDX-License-Identifier: Apache-2.0
// Metrics of a worker's KV tiers, all with the labels model and role. docs/metrics.md lists them.
//
// Thread-safe, but for Set and Continue, which one thread at a time may call.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/time/time.h"
#include "engine/kv/tiers/kv_tiers.h"

namespace baton {

class TierMetrics {
 public:
  TierMetrics(prometheus::Registry& registry, const std::string& model, const std::string& role);

  // A prompt lacks `asked` pages in the pool. Tiers have the pages `found`, of which the first `to_load` are loaded.
  void Asked(size_t asked, std::span<const TierKind> found, int to_load);
  void Loaded(absl::Duration duration);
  void Set(const KvTiersCounts& counts, size_t page_bytes);
  // Later changes of the counts are this object's, no longer those of `former`, whose levels become 0.
  void Continue(TierMetrics& former);

 private:
  // A counter that follows a count of another object.
  struct Followed {
    prometheus::Counter* counter = nullptr;
    uint64_t last = 0;
    void Follow(uint64_t count);
  };
  struct OfTier {
    std::array<prometheus::Gauge*, 3> levels() const { return {pages, bytes, max_pages}; }
    std::array<Followed*, 5> followed() { return {&stored, &evicted, &loaded, &corrupt, &failed}; }

    prometheus::Counter* hits = nullptr;
    prometheus::Gauge* pages = nullptr;
    prometheus::Gauge* bytes = nullptr;
    prometheus::Gauge* max_pages = nullptr;
    Followed stored;
    Followed evicted;
    Followed loaded;
    Followed corrupt;
    Followed failed;
  };

  std::array<OfTier, kTierKinds> tiers_;
  prometheus::Counter* misses_;
  prometheus::Counter* not_loaded_;
  prometheus::Histogram* load_seconds_;
  Followed lost_;
};

}  // namespace baton
