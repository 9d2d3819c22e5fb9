#include "cli/load_report.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/table.h"

namespace baton {
namespace {

using Json = nlohmann::ordered_json;

Json SummaryJson(const LatencySummary& summary) {
  return {{"count", summary.count}, {"mean", summary.mean}, {"p50", summary.p50},
          {"p95", summary.p95},     {"p99", summary.p99},   {"max", summary.max}};
}

std::string Ms(double seconds) { return absl::StrFormat("%.2f", seconds * 1e3); }

}  // namespace

LoadReport MakeReport(const LoadResult& result) {
  LoadReport report;
  std::vector<double> ttft, tpot, itl, end_to_end;
  size_t output_tokens = 0;
  for (const RequestOutcome& outcome : result.outcomes) {
    if (outcome.code != grpc::StatusCode::OK) {
      ++report.errors[absl::StatusCodeToString(static_cast<absl::StatusCode>(outcome.code))];
      continue;
    }
    ++report.completed;
    end_to_end.push_back(absl::ToDoubleSeconds(outcome.total));
    const std::vector<absl::Duration>& times = outcome.token_times;
    output_tokens += times.size();
    if (times.empty()) continue;
    ttft.push_back(absl::ToDoubleSeconds(times.front()));
    for (size_t i = 1; i < times.size(); ++i) itl.push_back(absl::ToDoubleSeconds(times[i] - times[i - 1]));
    if (times.size() > 1) {
      tpot.push_back(absl::ToDoubleSeconds(times.back() - times.front()) / static_cast<double>(times.size() - 1));
    }
  }
  if (result.not_sent > 0) report.errors["NOT_SENT"] = static_cast<size_t>(result.not_sent);
  report.duration_seconds = absl::ToDoubleSeconds(result.duration);
  if (report.duration_seconds > 0) {
    report.requests_per_second = static_cast<double>(report.completed) / report.duration_seconds;
    report.output_tokens_per_second = static_cast<double>(output_tokens) / report.duration_seconds;
  }
  report.ttft = Summarize(std::move(ttft));
  report.tpot = Summarize(std::move(tpot));
  report.itl = Summarize(std::move(itl));
  report.end_to_end = Summarize(std::move(end_to_end));
  return report;
}

std::string ToTable(const Workload& workload, const LoadReport& report) {
  std::string text = absl::StrFormat(
      "%d requests at %g/s, %d prompt and %d output tokens each\n"
      "%d completed in %.2f s: %.2f requests/s, %.1f output tokens/s\n",
      workload.requests, workload.rate, workload.prompt_tokens, workload.output_tokens, report.completed,
      report.duration_seconds, report.requests_per_second, report.output_tokens_per_second);
  for (const auto& [code, count] : report.errors) absl::StrAppend(&text, code, ": ", count, "\n");
  Table table({"MILLISECONDS", "MEAN", "P50", "P95", "P99", "MAX"});
  const auto add = [&table](const char* name, const LatencySummary& s) {
    table.AddRow({name, Ms(s.mean), Ms(s.p50), Ms(s.p95), Ms(s.p99), Ms(s.max)});
  };
  add("TTFT", report.ttft);
  add("TPOT", report.tpot);
  add("ITL", report.itl);
  add("end to end", report.end_to_end);
  return absl::StrCat(text, "\n", table.ToString());
}

std::string ToJson(const std::string& target, const Workload& workload, const LoadReport& report) {
  const Json json = {{"target", target},
                     {"model", workload.model},
                     {"rate", workload.rate},
                     {"requests", workload.requests},
                     {"prompt_tokens", workload.prompt_tokens},
                     {"output_tokens", workload.output_tokens},
                     {"seed", workload.seed},
                     {"completed", report.completed},
                     {"errors", Json(report.errors)},
                     {"duration_seconds", report.duration_seconds},
                     {"requests_per_second", report.requests_per_second},
                     {"output_tokens_per_second", report.output_tokens_per_second},
                     {"ttft_seconds", SummaryJson(report.ttft)},
                     {"tpot_seconds", SummaryJson(report.tpot)},
                     {"itl_seconds", SummaryJson(report.itl)},
                     {"end_to_end_seconds", SummaryJson(report.end_to_end)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace baton
