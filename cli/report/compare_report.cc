// SPDX-License-Identifier: Apache-2.0
#include "cli/report/compare_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "cli/report/answer_text.h"
#include "cli/report/table.h"
#include "common/json.h"
#include "common/status_macros.h"
#include "common/strings.h"

namespace baton {
namespace {

using ResultJson = nlohmann::json;

// The settings that make results incomparable when they differ.
constexpr const char* kSettings[] = {"model", "rate",   "arrivals",      "concurrency",   "requests",
                                     "turns", "warmup", "prompt_tokens", "output_tokens", "trace"};

struct Metric {
  std::string name;
  std::string pointer;  // of the value in a run's JSON
  double scale = 1;
  int decimals = 2;
};

std::vector<Metric> Metrics() {
  std::vector<Metric> metrics = {{"requests/s", "/requests_per_second"},
                                 {"output tokens/s", "/output_tokens_per_second", 1, 1},
                                 {"completed", "/completed", 1, 0}};
  const std::pair<const char*, const char*> latencies[] = {
      {"TTFT", "ttft"}, {"TPOT", "tpot"}, {"ITL", "itl"}, {"end to end", "end_to_end"}};
  for (const auto& [name, field] : latencies) {
    for (const char* value : {"mean", "p50", "p95", "p99"}) {
      metrics.push_back({Concat(name, " ", value, ", ms"), Concat("/", field, "_seconds/", value), 1e3});
    }
  }
  metrics.push_back({"within objectives, %", "/slo/attained", 100, 1});
  metrics.push_back({"met objectives, requests/s", "/slo/goodput_requests_per_second"});
  metrics.push_back({"cached prompt tokens", "/cached_prompt_tokens", 1, 0});
  return metrics;
}

struct Results {
  std::vector<ResultJson> runs;
  std::optional<ResultJson> search;  // the last line of a search
};

absl::StatusOr<Results> ReadResults(const CompareInput& input) {
  Results results;
  std::string_view text = input.text;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    BATON_ASSIGN_OR_RETURN(ResultJson json, ParseJson(line, Concat(input.name, ":", number)));
    if (json.is_object() && json.contains("goodput_search")) {
      results.search = json["goodput_search"];
    } else if (json.is_object() && json.contains("ttft_seconds") && json.contains("requests_per_second")) {
      results.runs.push_back(std::move(json));
    } else {
      return absl::InvalidArgumentError(
          Concat(input.name, ":", number, ": expected a line that `baton bench serve --json` printed"));
    }
  }
  if (results.runs.empty()) return absl::InvalidArgumentError(Concat(input.name, ": expected a run a line, got none"));
  return results;
}

struct Values {
  double mean = 0;
  double min = 0;
  double max = 0;
  size_t runs = 0;
};

Values ValuesOf(const std::vector<ResultJson>& runs, const Metric& metric) {
  std::vector<double> values;
  const ResultJson::json_pointer pointer(metric.pointer);
  for (const ResultJson& run : runs) {
    if (run.contains(pointer) && run[pointer].is_number()) values.push_back(run[pointer].get<double>() * metric.scale);
  }
  if (values.empty()) return {};
  const auto [min, max] = std::ranges::minmax(values);
  return {.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size()),
          .min = min,
          .max = max,
          .runs = values.size()};
}

std::string ValueCell(const Values& values, int decimals) {
  if (values.runs == 0) return "";
  if (values.runs == 1) return absl::StrFormat("%.*f", decimals, values.mean);
  return absl::StrFormat("%.*f (%.*f to %.*f)", decimals, values.mean, decimals, values.min, decimals, values.max);
}

std::string Verdict(const Values& a, const Values& b) {
  if (a.runs < 2 || b.runs < 2) return "";
  return a.max < b.min || b.max < a.min ? "yes" : "no";
}

std::string RatioCell(double a, double b) { return a > 0 ? absl::StrFormat("%.3f", b / a) : ""; }

std::string SettingLines(const ResultJson& a, const ResultJson& b) {
  std::string text;
  for (const char* name : kSettings) {
    const ResultJson of_a = a.value(name, ResultJson());
    const ResultJson of_b = b.value(name, ResultJson());
    if (of_a != of_b)
      Append(text, "the results differ in ", name, ": ", ShortJson(of_a), " and ", ShortJson(of_b), "\n");
  }
  return text;
}

absl::Status CheckOneSetting(const CompareInput& input, const Results& results) {
  for (const ResultJson& run : results.runs) {
    for (const char* name : kSettings) {
      const ResultJson expected = results.runs.front().value(name, ResultJson());
      if (run.value(name, ResultJson()) == expected) continue;
      return absl::InvalidArgumentError(Concat(input.name, ": expected runs of one setting, got ", name, " ",
                                               ShortJson(expected), " and ", ShortJson(run.value(name, ResultJson()))));
    }
  }
  return absl::OkStatus();
}

// Compares the results of two searches by their rates and intervals.
std::string CompareSearches(const ResultJson& a, const ResultJson& b) {
  const auto number = [](const ResultJson& search, const char* name) {
    const ResultJson value = search.value(name, ResultJson());
    return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
  };
  const auto cell = [&](const ResultJson& search) {
    const auto shown = [](std::optional<double> rate) { return rate ? absl::StrFormat("%.3f", *rate) : "?"; };
    return absl::StrFormat("%s (%s to %s)", shown(number(search, "goodput_requests_per_second")),
                           shown(number(search, "surely_met")), shown(number(search, "surely_missed")));
  };
  const auto below = [&](const ResultJson& low, const ResultJson& high) {
    const auto end = number(low, "surely_missed");
    const auto begin = number(high, "surely_met");
    return end && begin && *end <= *begin;
  };
  Table table({"METRIC", "A", "B", "B/A", "BEYOND THE INTERVALS"});
  table.AddRow({"goodput, requests/s", cell(a), cell(b),
                RatioCell(number(a, "goodput_requests_per_second").value_or(0),
                          number(b, "goodput_requests_per_second").value_or(0)),
                below(a, b) || below(b, a) ? "yes" : "no"});
  return table.ToString();
}

}  // namespace

absl::StatusOr<std::string> CompareResults(const CompareInput& a, const CompareInput& b) {
  BATON_ASSIGN_OR_RETURN(const Results of_a, ReadResults(a));
  BATON_ASSIGN_OR_RETURN(const Results of_b, ReadResults(b));
  std::string text = Concat("A: ", a.name, ", ", Count(of_a.runs.size(), "run"), "\nB: ", b.name, ", ",
                            Count(of_b.runs.size(), "run"), "\n");
  if (of_a.search.has_value() != of_b.search.has_value()) {
    return absl::InvalidArgumentError(Concat(of_a.search ? b.name : a.name, ": expected the result of a search too"));
  }
  if (of_a.search) return Concat(text, "\n", CompareSearches(*of_a.search, *of_b.search));
  BATON_RETURN_IF_ERROR(CheckOneSetting(a, of_a));
  BATON_RETURN_IF_ERROR(CheckOneSetting(b, of_b));
  text += SettingLines(of_a.runs.front(), of_b.runs.front());
  Table table({"METRIC", "A", "B", "B/A", "BEYOND THE SPREAD"});
  for (const Metric& metric : Metrics()) {
    const Values values_a = ValuesOf(of_a.runs, metric);
    const Values values_b = ValuesOf(of_b.runs, metric);
    if (values_a.runs == 0 && values_b.runs == 0) continue;
    table.AddRow({metric.name, ValueCell(values_a, metric.decimals), ValueCell(values_b, metric.decimals),
                  values_b.runs > 0 ? RatioCell(values_a.mean, values_b.mean) : "", Verdict(values_a, values_b)});
  }
  return Concat(text, "\n", table.ToString());
}

}  // namespace baton
