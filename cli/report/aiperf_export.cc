// SPDX-License-Identifier: Apache-2.0
#include "cli/report/aiperf_export.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/report/load_series.h"

namespace baton {
namespace {

using Json = nlohmann::ordered_json;

// A metric with a value for each request.
Json RecordMetric(const char* unit, std::vector<double> values, double scale = 1) {
  for (double& value : values) value *= scale;
  std::ranges::sort(values);
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  const auto count = static_cast<double>(values.size());
  const double mean = sum / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  Json metric = {{"unit", unit}, {"avg", mean}};
  for (const int percent : {1, 5, 10, 25, 50, 75, 90, 95, 99}) {
    metric[absl::StrCat("p", percent)] = Percentile(values, percent / 100.0);
  }
  metric["min"] = values.front();
  metric["max"] = values.back();
  metric["std"] = values.size() > 1 ? std::sqrt(squares / (count - 1)) : 0.0;
  metric["count"] = values.size();
  metric["sum"] = sum;
  return metric;
}

// A metric with one value for the run.
Json RunMetric(const char* unit, double value) { return {{"unit", unit}, {"avg", value}}; }

std::string Utc(absl::Time time) { return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", time, absl::UTCTimeZone()); }

Json ErrorSummary(const std::map<std::string, LoadErrors>& errors) {
  Json json = Json::array();
  for (const auto& [kind, error] : errors) {
    json.push_back({{"error_details", {{"message", error.first_reason}, {"type", kind}}}, {"count", error.count}});
  }
  return json;
}

}  // namespace

std::string ToAiperfJson(const LoadResult& result, const LoadReport& report, const AiperfRun& run) {
  const LoadSeries series = MakeSeries(result);
  Json json = {{"schema_version", "1.1"}, {"benchmark_id", run.benchmark_id}};
  const auto add = [&json](const char* name, const char* unit, std::vector<double> values, double scale = 1) {
    if (!values.empty()) json[name] = RecordMetric(unit, std::move(values), scale);
  };
  std::vector<double> input, output, per_user;
  for (const RequestLatency& request : series.requests) {
    input.push_back(request.prompt_tokens);
    output.push_back(request.output_tokens);
    if (request.tpot.value_or(0) > 0) per_user.push_back(1 / *request.tpot);
  }
  const double all_input = std::accumulate(input.begin(), input.end(), 0.0);
  const double all_output = std::accumulate(output.begin(), output.end(), 0.0);
  add("time_to_first_token", "ms", Sorted(series, &RequestLatency::ttft), 1e3);
  add("inter_token_latency", "ms", Sorted(series, &RequestLatency::tpot), 1e3);
  add("request_latency", "ms", SortedEndToEnd(series), 1e3);
  add("output_token_throughput_per_user", "tokens/sec/user", std::move(per_user));
  add("input_sequence_length", "tokens", std::move(input));
  add("output_sequence_length", "tokens", std::move(output));
  json["request_throughput"] = RunMetric("requests/sec", report.requests_per_second);
  json["output_token_throughput"] = RunMetric("tokens/sec", report.output_tokens_per_second);
  json["request_count"] = RunMetric("requests", static_cast<double>(report.completed));
  json["total_isl"] = RunMetric("tokens", all_input);
  json["total_osl"] = RunMetric("tokens", all_output);
  json["benchmark_duration"] = RunMetric("sec", report.duration_seconds);
  if (report.slo) {
    json["goodput"] = RunMetric("requests/sec", report.slo->goodput);
    json["good_request_count"] = RunMetric("requests", static_cast<double>(report.slo->met));
  }
  size_t failed = 0;
  for (const auto& [kind, error] : report.errors) failed += error.count;
  json["error_request_count"] = RunMetric("requests", static_cast<double>(failed));
  json["error_summary"] = ErrorSummary(report.errors);
  json["was_cancelled"] = run.was_cancelled;
  json["start_time"] = Utc(run.start);
  json["end_time"] = Utc(run.end);
  return absl::StrCat(json.dump(2, ' ', false, Json::error_handler_t::replace), "\n");
}

}  // namespace baton
