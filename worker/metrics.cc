#include "worker/metrics.h"

#include <map>

#include "common/metrics.h"

namespace baton {

// Registers metrics that all carry the labels model and role.
class WorkerMetrics::Builder {
 public:
  using Labels = std::map<std::string, std::string>;

  Builder(prometheus::Registry& registry, const std::string& model, const std::string& role)
      : registry_(registry), constant_{{"model", model}, {"role", role}} {}

  prometheus::Histogram& Seconds(const char* name, const char* help, const Labels& labels = {}) const {
    return Histogram(name, help, LatencyBuckets(), labels);
  }
  prometheus::Histogram& Histogram(const char* name, const char* help,
                                   const prometheus::Histogram::BucketBoundaries& buckets,
                                   const Labels& labels = {}) const {
    return prometheus::BuildHistogram().Name(name).Help(help).Labels(constant_).Register(registry_).Add(labels,
                                                                                                        buckets);
  }
  prometheus::Counter& Counter(const char* name, const char* help) const { return Counters(name, help).Add({}); }
  prometheus::Family<prometheus::Counter>& Counters(const char* name, const char* help) const {
    return prometheus::BuildCounter().Name(name).Help(help).Labels(constant_).Register(registry_);
  }
  prometheus::Gauge& Gauge(const char* name, const char* help, const Labels& labels = {}) const {
    return prometheus::BuildGauge().Name(name).Help(help).Labels(constant_).Register(registry_).Add(labels);
  }
  prometheus::Gauge& Pages(const char* state) const {
    return Gauge("baton_pages", "KV pages by state", {{"state", state}});
  }

 private:
  prometheus::Registry& registry_;
  const Labels constant_;
};

WorkerMetrics::WorkerMetrics(prometheus::Registry& registry, const std::string& model, const std::string& role)
    : WorkerMetrics(Builder(registry, model, role)) {}

WorkerMetrics::WorkerMetrics(const Builder& make)
    : prefill_queue_seconds(make.Seconds("baton_queue_seconds", "Waiting, by stage", {{"stage", "prefill"}})),
      decode_queue_seconds(make.Seconds("baton_queue_seconds", "Waiting, by stage", {{"stage", "decode"}})),
      prefill_seconds(make.Seconds("baton_prefill_seconds", "First chunk of a prompt to its first token")),
      kv_transfer_seconds(make.Seconds("baton_kv_transfer_seconds", "First page put to handover")),
      kv_transfer_exposed_seconds(
          make.Seconds("baton_kv_transfer_exposed_seconds", "End of prefill to handover: what compute did not hide")),
      batch_sequences(make.Histogram("baton_batch_sequences", "Sequences in a step",
                                     {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024})),
      step_seconds(make.Seconds("baton_step_seconds", "Duration of a step")),
      prompt_tokens(make.Counter("baton_prompt_tokens_total", "Prompt tokens computed here")),
      cached_tokens(make.Counter("baton_cached_tokens_total", "Prompt tokens whose pages were here already")),
      received_tokens(make.Counter("baton_received_tokens_total", "Prompt tokens whose pages were handed over")),
      generated_tokens(make.Counter("baton_generated_tokens_total", "Tokens sampled here")),
      transfer_bytes(make.Counter("baton_kv_transfer_bytes_total", "KV bytes handed over")),
      transfer_failures(
          make.Counter("baton_kv_transfer_failures_total", "Handoffs that were cut off or lost, refusals not counted")),
      running_sequences(make.Gauge("baton_running_sequences", "Sequences holding pages")),
      waiting_sequences(make.Gauge("baton_waiting_sequences", "Requests that wait")),
      attempts_(make.Counters("baton_attempts_total", "Attempts ended here, by cause")),
      pages_free_(make.Pages("free")),
      pages_used_(make.Pages("used")),
      pages_cached_(make.Pages("cached")),
      pages_quarantined_(make.Pages("quarantined")) {}

void WorkerMetrics::AttemptEnded(const std::string& cause) { attempts_.Add({{"cause", cause}}).Increment(); }

void WorkerMetrics::SetPages(const PageCounts& counts) {
  pages_free_.Set(counts.free);
  pages_used_.Set(counts.used);
  pages_cached_.Set(counts.cached);
  pages_quarantined_.Set(counts.quarantined);
}

}  // namespace baton
