// SPDX-License-Identifier: Apache-2.0
#include "common/metrics_vllm.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace baton {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

// Families that differ in nothing but the name.
struct Renaming {
  std::string_view baton;
  const char* vllm;
};
constexpr Renaming kRenamings[] = {
    {"baton_time_to_first_token_seconds", "vllm:time_to_first_token_seconds"},
    {"baton_inter_token_latency_seconds", "vllm:inter_token_latency_seconds"},
    {"baton_time_per_output_token_seconds", "vllm:request_time_per_output_token_seconds"},
    {"baton_request_duration_seconds", "vllm:e2e_request_latency_seconds"},
    {"baton_prompt_tokens_total", "vllm:prompt_tokens_total"},
    {"baton_generated_tokens_total", "vllm:generation_tokens_total"},
    {"baton_worker_running_sequences", "vllm:num_requests_running"},
    {"baton_worker_waiting_sequences", "vllm:num_requests_waiting"},
};

std::string_view ValueOf(const Labels& labels, std::string_view name) {
  const auto found = std::ranges::find(labels, name, &ClientMetric::Label::name);
  return found == labels.end() ? std::string_view() : std::string_view(found->value);
}

Labels VllmLabels(Labels labels) {
  for (ClientMetric::Label& label : labels) {
    if (label.name == "model") label.name = "model_name";
  }
  return labels;
}

Labels Without(Labels labels, std::string_view name) {
  std::erase_if(labels, [name](const ClientMetric::Label& label) { return label.name == name; });
  return labels;
}

const MetricFamily* Find(const std::vector<MetricFamily>& families, std::string_view name) {
  const auto found = std::ranges::find(families, name, &MetricFamily::name);
  return found == families.end() || found->metric.empty() ? nullptr : &*found;
}

MetricFamily Rename(MetricFamily family, const char* name) {
  family.name = name;
  for (ClientMetric& metric : family.metric) metric.label = VllmLabels(std::move(metric.label));
  return family;
}

void AddIfAny(MetricFamily family, std::vector<MetricFamily>& out) {
  if (!family.metric.empty()) out.push_back(std::move(family));
}

// Requests that ended with an answer, by the reason of the end.
MetricFamily Successes(const MetricFamily& requests) {
  MetricFamily family{
      .name = "vllm:request_success_total", .help = requests.help, .type = MetricType::Counter, .metric = {}};
  for (ClientMetric metric : requests.metric) {
    const std::string_view outcome = ValueOf(metric.label, "outcome");
    if (outcome != "stop" && outcome != "length") continue;
    metric.label = VllmLabels(std::move(metric.label));
    std::ranges::find(metric.label, "outcome", &ClientMetric::Label::name)->name = "finished_reason";
    family.metric.push_back(std::move(metric));
  }
  return family;
}

// The share of pages that are neither free nor cached for nobody, 0 to 1.
MetricFamily KvUsage(const MetricFamily& pages) {
  struct Count {
    double busy = 0;
    double all = 0;
  };
  std::map<Labels, Count> counts;
  for (const ClientMetric& metric : pages.metric) {
    const std::string_view state = ValueOf(metric.label, "state");
    Count& count = counts[Without(metric.label, "state")];
    count.all += metric.gauge.value;
    if (state != "free" && state != "cached") count.busy += metric.gauge.value;
  }
  MetricFamily family{.name = "vllm:kv_cache_usage_perc",
                      .help = "Share of the KV pages that are neither free nor cached, 0 to 1",
                      .type = MetricType::Gauge,
                      .metric = {}};
  for (const auto& [labels, count] : counts) {
    ClientMetric metric;
    metric.label = VllmLabels(labels);
    metric.gauge.value = count.all > 0 ? count.busy / count.all : 0;
    family.metric.push_back(std::move(metric));
  }
  return family;
}

// Tokens of prompts that were looked for in the prefix cache: sums `counters`, series by series.
MetricFamily PrefixTokens(const char* name, const char* help, const std::vector<const MetricFamily*>& counters) {
  std::map<Labels, double> sums;
  for (const MetricFamily* counter : counters) {
    for (const ClientMetric& metric : counter->metric) {
      if (ValueOf(metric.label, "role") != "decode") sums[metric.label] += metric.counter.value;
    }
  }
  MetricFamily family{.name = name, .help = help, .type = MetricType::Counter, .metric = {}};
  for (const auto& [labels, sum] : sums) {
    ClientMetric metric;
    metric.label = VllmLabels(labels);
    metric.counter.value = sum;
    family.metric.push_back(std::move(metric));
  }
  return family;
}

}  // namespace

std::vector<MetricFamily> VllmFamilies(const std::vector<MetricFamily>& families) {
  std::vector<MetricFamily> out;
  for (const Renaming& renaming : kRenamings) {
    if (const MetricFamily* family = Find(families, renaming.baton)) out.push_back(Rename(*family, renaming.vllm));
  }
  if (const MetricFamily* requests = Find(families, "baton_requests_total")) AddIfAny(Successes(*requests), out);
  if (const MetricFamily* pages = Find(families, "baton_worker_kv_pages")) AddIfAny(KvUsage(*pages), out);
  const MetricFamily* const cached = Find(families, "baton_worker_prompt_tokens_cached_total");
  const MetricFamily* const computed = Find(families, "baton_worker_prompt_tokens_computed_total");
  if (cached != nullptr && computed != nullptr) {
    AddIfAny(PrefixTokens("vllm:prefix_cache_hits_total", "Tokens of prompts that the prefix cache had", {cached}),
             out);
    AddIfAny(PrefixTokens("vllm:prefix_cache_queries_total",
                          "Tokens of prompts that were looked for in the prefix cache", {cached, computed}),
             out);
  }
  return out;
}

}  // namespace baton
