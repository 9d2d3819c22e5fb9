// What a worker counts, under the names that the dashboards use. Labels: model and role.
//
// Thread-safe.
#pragma once

#include <prometheus/registry.h>

#include <string>

#include "engine/kv/page_pool.h"

namespace baton {

struct WorkerMetrics {
  WorkerMetrics(prometheus::Registry& registry, const std::string& model, const std::string& role);

  prometheus::Histogram& prefill_queue_seconds;  // baton_queue_seconds{stage}: until a prompt's first chunk
  prometheus::Histogram& decode_queue_seconds;   // until the first step of a sequence handed over
  prometheus::Histogram& prefill_seconds;        // first chunk to first token
  prometheus::Histogram& kv_transfer_seconds;    // first put to Committed
  prometheus::Histogram& kv_transfer_exposed_seconds;
  prometheus::Histogram& batch_sequences;  // per step
  prometheus::Histogram& step_seconds;
  prometheus::Counter& prompt_tokens;    // computed here
  prometheus::Counter& cached_tokens;    // neither computed nor received, because their pages were here
  prometheus::Counter& received_tokens;  // handed over by another worker
  prometheus::Counter& generated_tokens;
  prometheus::Counter& transfer_bytes;
  prometheus::Counter& transfer_failures;
  prometheus::Gauge& running_sequences;
  prometheus::Gauge& waiting_sequences;

  void AttemptEnded(const std::string& cause);  // baton_attempts_total{cause}
  void SetPages(const PageCounts& counts);      // baton_pages{state}

 private:
  class Builder;
  explicit WorkerMetrics(const Builder& builder);

  prometheus::Family<prometheus::Counter>& attempts_;
  prometheus::Gauge& pages_free_;
  prometheus::Gauge& pages_used_;
  prometheus::Gauge& pages_cached_;
  prometheus::Gauge& pages_quarantined_;
};

}  // namespace baton
