// SPDX-License-Identifier: Apache-2.0
#include "router/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

#include <utility>

#include "common/metrics_buckets.h"

namespace baton::router {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Labels;

Family<Histogram>& Seconds(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Labels({{"role", "router"}}).Register(registry);
}

Family<Counter>& Count(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Labels({{"role", "router"}}).Register(registry);
}

Family<Gauge>& Level(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Labels({{"role", "router"}}).Register(registry);
}

// The label role of these families is a worker's role.
Family<Gauge>& LevelByRole(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}

Family<Counter>& CountByRole(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

}  // namespace

struct RouterMetrics::Families {
  explicit Families(prometheus::Registry& r)
      : ttft(Seconds(r, "baton_time_to_first_token_seconds", "A request's arrival to its first token")),
        tpot(Seconds(r, "baton_time_per_output_token_seconds",
                     "Mean time per output token after the first, one value per request that finished")),
        itl(Seconds(
            r, "baton_inter_token_latency_seconds",
            "Gap between consecutive output tokens. A message with n tokens that comes g after the last message "
            "counts as n gaps of g / n")),
        pause(Seconds(r, "baton_pause_seconds",
                      "Gap between the last token of one attempt and the first token of the next, by the first "
                      "attempt's outcome")),
        duration(Seconds(r, "baton_request_duration_seconds", "A request's arrival to its end")),
        queue(Seconds(r, "baton_request_queue_seconds",
                      "A request's arrival to the start of its last attempt before the first token")),
        requests(Count(r, "baton_requests_total",
                       "Requests that ended, by outcome: stop, length, or the name of a status code")),
        slo_requests(Count(r, "baton_slo_requests_total",
                           "Requests with objectives that finished or failed. A request that its client cancelled does "
                           "not count")),
        slo_attained(Count(r, "baton_slo_attained_total",
                           "Requests that met an objective. Label slo: ttft, tpot, or all for both")),
        late_requests(Count(r, "baton_late_requests_total",
                            "Late requests that ended. Label treatment: refused; batch, interactive requests that were "
                            "served with priority batch")),
        prompt_tokens(Count(r, "baton_prompt_tokens_total", "Prompt tokens of requests that finished")),
        generated_tokens(Count(r, "baton_generated_tokens_total", "Output tokens of requests that finished")),
        placements(Count(r, "baton_placements_total",
                         "Attempts placed on workers. Label prefill: local, the decode worker computes the prompt; "
                         "remote, a prefill worker does")),
        expected_cached_tokens(
            Count(r, "baton_expected_cached_tokens_total",
                  "Prompt tokens that the chosen workers were expected to have cached when an attempt was placed")),
        attempts(Count(
            r, "baton_attempts_total",
            "Attempts that ended, by outcome. Every retry and every migration of a request is a further attempt")),
        disagreements(Count(r, "baton_token_disagreements_total",
                            "Output tokens that came twice and differed, which ends their request")),
        traces_exported(Count(r, "baton_traces_exported_total", "Sampled traces that the collector took")),
        traces_dropped(Count(r, "baton_traces_dropped_total",
                             "Sampled traces that were dropped. Reason queue: too many waited; collector: the "
                             "collector did not take them")),
        running(Level(r, "baton_running_requests", "Requests that run or wait here")),
        max_running(Level(r, "baton_max_running_requests", "Requests that may run or wait here at a time")),
        ready_pairs(Level(r, "baton_ready_pairs", "Pairs of workers that passed their probe and take requests")),
        workers(Level(r, "baton_workers", "Workers by state, as this router sees them")),
        desired_workers(LevelByRole(r, "baton_desired_workers",
                                    "Workers of a role that the load wants, by the workers' role. For autoscalers")),
        role_pressure(LevelByRole(r, "baton_role_pressure_ratio",
                                  "Load of a role's workers, by the workers' role; 1: what the workers can take")),
        role_switches(CountByRole(r, "baton_role_switches_total",
                                  "Changes of a worker's role that the balance controller asked for, by the new role. "
                                  "Label result: begun, or refused")) {}

  Family<Histogram>& ttft;
  Family<Histogram>& tpot;
  Family<Histogram>& itl;
  Family<Histogram>& pause;
  Family<Histogram>& duration;
  Family<Histogram>& queue;
  Family<Counter>& requests;
  Family<Counter>& slo_requests;
  Family<Counter>& slo_attained;
  Family<Counter>& late_requests;
  Family<Counter>& prompt_tokens;
  Family<Counter>& generated_tokens;
  Family<Counter>& placements;
  Family<Counter>& expected_cached_tokens;
  Family<Counter>& attempts;
  Family<Counter>& disagreements;
  Family<Counter>& traces_exported;
  Family<Counter>& traces_dropped;
  Family<Gauge>& running;
  Family<Gauge>& max_running;
  Family<Gauge>& ready_pairs;
  Family<Gauge>& workers;
  Family<Gauge>& desired_workers;
  Family<Gauge>& role_pressure;
  Family<Counter>& role_switches;
};

// The metrics of one model, so that observing a token builds no labels.
struct RouterMetrics::OfModel {
  OfModel(Families& f, const std::string& model)
      : label{{"model", model}},
        ttft(f.ttft.Add(label, FirstTokenBuckets().boundaries)),
        tpot(f.tpot.Add(label, StepBuckets().boundaries)),
        itl(f.itl.Add(label, TokenGapBuckets().boundaries)),
        duration(f.duration.Add(label, WholeRequestBuckets().boundaries)),
        queue(f.queue.Add(label, WaitBuckets().boundaries)),
        prompt_tokens(f.prompt_tokens.Add(label)),
        generated_tokens(f.generated_tokens.Add(label)),
        refused_late(f.late_requests.Add({{"model", model}, {"treatment", "refused"}})),
        served_late(f.late_requests.Add({{"model", model}, {"treatment", "batch"}})),
        disagreements(f.disagreements.Add(label)) {
    // A rate sees the first request of an outcome only if its series began at 0.
    for (const char* outcome :
         {"stop", "length", "CANCELLED", "DEADLINE_EXCEEDED", "INTERNAL", "RESOURCE_EXHAUSTED", "UNAVAILABLE"}) {
      f.requests.Add({{"model", model}, {"outcome", outcome}});
    }
  }

  const Labels label;
  Histogram& ttft;
  Histogram& tpot;
  Histogram& itl;
  Histogram& duration;
  Histogram& queue;
  Counter& prompt_tokens;
  Counter& generated_tokens;
  Counter& refused_late;
  Counter& served_late;
  Counter& disagreements;
};

RouterMetrics::RouterMetrics(prometheus::Registry& registry) : families_(std::make_unique<Families>(registry)) {}
RouterMetrics::~RouterMetrics() = default;

RouterMetrics::OfModel& RouterMetrics::Of(const std::string& model) {
  MutexLock lock(mutex_);
  std::unique_ptr<OfModel>& entry = models_[model];
  if (entry == nullptr) entry = std::make_unique<OfModel>(*families_, model);
  return *entry;
}

void RouterMetrics::Queued(const std::string& model, absl::Duration waited) {
  Of(model).queue.Observe(absl::ToDoubleSeconds(waited));
}

void RouterMetrics::FirstToken(const std::string& model, absl::Duration since_received) {
  Of(model).ttft.Observe(absl::ToDoubleSeconds(since_received));
}

void RouterMetrics::NextTokens(const std::string& model, int tokens, absl::Duration gap) {
  OfModel& of = Of(model);
  const double each = absl::ToDoubleSeconds(gap) / tokens;
  for (int i = 0; i < tokens; ++i) of.itl.Observe(each);
}

void RouterMetrics::Finished(const std::string& model, const v1::Usage& usage, const v1::Timings& timings) {
  OfModel& of = Of(model);
  of.prompt_tokens.Increment(usage.prompt_tokens());
  of.generated_tokens.Increment(usage.completion_tokens());
  if (usage.completion_tokens() > 1) of.tpot.Observe(timings.tpot_seconds());
}

void RouterMetrics::RequestEnded(const std::string& model, std::string_view outcome, absl::Duration total) {
  families_->requests.Add({{"model", model}, {"outcome", std::string(outcome)}}).Increment();
  if (!model.empty()) Of(model).duration.Observe(absl::ToDoubleSeconds(total));
}

void RouterMetrics::ObjectivesKnown(const std::string& model, bool ttft_met, bool tpot_met) {
  families_->slo_requests.Add({{"model", model}}).Increment();
  const std::pair<const char*, bool> objectives[] = {
      {"ttft", ttft_met}, {"tpot", tpot_met}, {"all", ttft_met && tpot_met}};
  for (const auto& [slo, met] : objectives) {
    families_->slo_attained.Add({{"model", model}, {"slo", slo}}).Increment(met ? 1 : 0);
  }
}

void RouterMetrics::Late(const std::string& model, WhenLate treatment) {
  OfModel& of = Of(model);
  (treatment == WhenLate::kRefuse ? of.refused_late : of.served_late).Increment();
}

void RouterMetrics::Placed(const std::string& model, bool local, uint32_t cached_tokens) {
  families_->placements.Add({{"model", model}, {"prefill", local ? "local" : "remote"}}).Increment();
  families_->expected_cached_tokens.Add({{"model", model}}).Increment(cached_tokens);
}

void RouterMetrics::AttemptEnded(const std::string& model, Cause cause) {
  families_->attempts.Add({{"model", model}, {"outcome", std::string(Name(cause))}}).Increment();
}

void RouterMetrics::Resumed(const std::string& model, Cause after, absl::Duration pause) {
  families_->pause.Add({{"model", model}, {"cause", std::string(Name(after))}}, WaitBuckets().boundaries)
      .Observe(absl::ToDoubleSeconds(pause));
}

void RouterMetrics::TokenDisagreement(const std::string& model) { Of(model).disagreements.Increment(); }

void RouterMetrics::TracesExported(size_t count) {
  families_->traces_exported.Add(Labels{}).Increment(static_cast<double>(count));
}

void RouterMetrics::TracesDropped(const char* reason, size_t count) {
  families_->traces_dropped.Add({{"reason", reason}}).Increment(static_cast<double>(count));
}

void RouterMetrics::SetMaxRequests(size_t count) {
  families_->max_running.Add(Labels{}).Set(static_cast<double>(count));
}

void RouterMetrics::SetRunningRequests(size_t count) {
  families_->running.Add(Labels{}).Set(static_cast<double>(count));
}

void RouterMetrics::SetWorkers(const std::map<std::string, int>& count_by_state) {
  for (const auto& [state, count] : count_by_state) families_->workers.Add({{"state", state}}).Set(count);
}

void RouterMetrics::SetReadyPairs(size_t count) {
  families_->ready_pairs.Add(Labels{}).Set(static_cast<double>(count));
}

void RouterMetrics::SetBalance(const std::string& model, const char* role, int wanted_workers, double pressure) {
  const Labels labels = {{"model", model}, {"role", role}};
  families_->desired_workers.Add(labels).Set(wanted_workers);
  families_->role_pressure.Add(labels).Set(pressure);
}

void RouterMetrics::RoleSwitched(const std::string& model, const std::string& role, bool taken) {
  families_->role_switches.Add({{"model", model}, {"role", role}, {"result", taken ? "begun" : "refused"}}).Increment();
}

}  // namespace baton::router
