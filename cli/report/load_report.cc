// SPDX-License-Identifier: Apache-2.0
#include "cli/report/load_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/report/answer_text.h"
#include "cli/report/table.h"

namespace baton {
namespace {

using Json = nlohmann::ordered_json;

Json SummaryJson(const LatencySummary& summary) {
  const auto value = [&summary](double seconds) { return summary.count > 0 ? Json(seconds) : Json(); };
  return {{"count", summary.count},    {"mean", value(summary.mean)}, {"p50", value(summary.p50)},
          {"p95", value(summary.p95)}, {"p99", value(summary.p99)},   {"max", value(summary.max)}};
}

Json ErrorsJson(const std::map<std::string, LoadErrors>& errors) {
  Json json = Json::object();
  for (const auto& [code, error] : errors) json[code] = {{"count", error.count}, {"first_reason", error.first_reason}};
  return json;
}

// Returns a line such as "INVALID_ARGUMENT: 3, the first: the prompt has ...".
std::string ErrorLine(const std::string& code, const LoadErrors& errors) {
  return absl::StrCat(code, ": ", errors.count, errors.first_reason.empty() ? "" : ", the first: ", errors.first_reason,
                      "\n");
}

double ShareOf(size_t part, const SloReport& report) {
  return report.requests > 0 ? static_cast<double>(part) / static_cast<double>(report.requests) : 0;
}

std::string SloLine(const SloReport& report) {
  const auto within = [&](const char* name, absl::Duration limit, size_t met) {
    if (limit == absl::InfiniteDuration()) return std::string();
    return absl::StrFormat("%s within %s: %.1f %%; ", name, absl::FormatDuration(limit), 100 * ShareOf(met, report));
  };
  return absl::StrCat(
      within("TTFT", report.slo.ttft, report.ttft_met), within("TPOT", report.slo.tpot, report.tpot_met),
      absl::StrFormat("all: %.1f %% of %s, goodput %.2f requests/s\n", 100 * ShareOf(report.met, report),
                      Count(report.requests, "request"), report.goodput));
}

Json SloJson(const SloReport& report) {
  const auto seconds = [](absl::Duration limit) {
    return limit == absl::InfiniteDuration() ? Json() : Json(absl::ToDoubleSeconds(limit));
  };
  return {{"ttft_seconds", seconds(report.slo.ttft)},
          {"tpot_seconds", seconds(report.slo.tpot)},
          {"requests", report.requests},
          {"ttft_attained", ShareOf(report.ttft_met, report)},
          {"tpot_attained", ShareOf(report.tpot_met, report)},
          {"attained", ShareOf(report.met, report)},
          {"goodput_requests_per_second", report.goodput}};
}

// Returns the first line of the table: what load was sent.
std::string LoadLine(const Workload& workload, const LoadOptions& options) {
  std::string text = Count(workload.requests, "request");
  if (workload.trace) absl::StrAppend(&text, " of a trace");
  if (options.concurrency > 0) {
    absl::StrAppend(&text, ", ", options.concurrency, " at a time");
  } else if (workload.arrivals != ArrivalProcess::kTrace) {
    absl::StrAppendFormat(&text, " at %g/s", workload.rate);
  }
  if (!workload.trace) {
    absl::StrAppend(&text, ", ", Count(workload.prompt_tokens, "prompt token"), " and ",
                    Count(workload.output_tokens, "output token"), " each");
  }
  if (options.warmup > 0) absl::StrAppend(&text, "; the first ", options.warmup, " are not measured");
  return absl::StrCat(text, "\n");
}

}  // namespace

double Percentile(const std::vector<double>& sorted, double q) {
  const double rank = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(std::floor(rank));
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], rank - static_cast<double>(below));
}

LatencySummary Summarize(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  return {.count = values.size(),
          .mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size()),
          .p50 = Percentile(values, 0.50),
          .p95 = Percentile(values, 0.95),
          .p99 = Percentile(values, 0.99),
          .max = values.back()};
}

LoadReport MakeReport(const LoadResult& result, const std::optional<Slo>& slo) {
  LoadReport report;
  SloReport met;
  std::vector<double> ttft, tpot, itl, end_to_end;
  size_t output_tokens = 0;
  for (const RequestOutcome& outcome : result.outcomes) {
    if (outcome.code != grpc::StatusCode::OK) {
      LoadErrors& errors = report.errors[absl::StatusCodeToString(static_cast<absl::StatusCode>(outcome.code))];
      ++errors.count;
      if (errors.first_reason.empty()) errors.first_reason = outcome.reason;
      continue;
    }
    ++report.completed;
    report.prompt_tokens += outcome.prompt_tokens;
    report.cached_tokens += outcome.cached_tokens;
    end_to_end.push_back(absl::ToDoubleSeconds(outcome.total));
    const std::vector<TokenArrival>& arrivals = outcome.arrivals;
    if (arrivals.empty()) continue;
    int tokens = arrivals.front().tokens;
    for (size_t i = 1; i < arrivals.size(); ++i) {
      const int count = arrivals[i].tokens;
      const double gap = absl::ToDoubleSeconds(arrivals[i].at - arrivals[i - 1].at);
      itl.insert(itl.end(), count, gap / count);
      tokens += count;
    }
    output_tokens += tokens;
    ttft.push_back(absl::ToDoubleSeconds(arrivals.front().at));
    const absl::Duration per_token = (arrivals.back().at - arrivals.front().at) / std::max(tokens - 1, 1);
    if (tokens > 1) tpot.push_back(absl::ToDoubleSeconds(per_token));
    if (!slo) continue;
    const bool in_ttft = arrivals.front().at <= slo->ttft;
    const bool in_tpot = per_token <= slo->tpot;
    met.ttft_met += in_ttft ? 1 : 0;
    met.tpot_met += in_tpot ? 1 : 0;
    met.met += in_ttft && in_tpot ? 1 : 0;
  }
  if (result.not_sent > 0) {
    report.errors["NOT_SENT"] = {static_cast<size_t>(result.not_sent), "as many as --max-in-flight were under way"};
  }
  report.duration_seconds = absl::ToDoubleSeconds(result.duration);
  if (report.duration_seconds > 0) {
    report.requests_per_second = static_cast<double>(report.completed) / report.duration_seconds;
    report.output_tokens_per_second = static_cast<double>(output_tokens) / report.duration_seconds;
  }
  if (slo) {
    met.slo = *slo;
    met.requests = result.outcomes.size() + result.not_sent;
    if (report.duration_seconds > 0) met.goodput = static_cast<double>(met.met) / report.duration_seconds;
    report.slo = met;
  }
  report.ttft = Summarize(std::move(ttft));
  report.tpot = Summarize(std::move(tpot));
  report.itl = Summarize(std::move(itl));
  report.end_to_end = Summarize(std::move(end_to_end));
  return report;
}

std::string ToTable(const Workload& workload, const LoadOptions& options, const LoadReport& report) {
  std::string text = LoadLine(workload, options);
  absl::StrAppendFormat(&text,
                        "%d completed in %.2f s: %.2f requests/s, %.1f output tokens/s\n"
                        "%d of %s cached; %s\n",
                        report.completed, report.duration_seconds, report.requests_per_second,
                        report.output_tokens_per_second, report.cached_tokens,
                        Count(report.prompt_tokens, "prompt token"),
                        workload.cache_salt.empty() ? "prefixes of earlier runs may be reused (--reuse-cache)"
                                                    : "prefixes of earlier runs are not reused (fresh cache_salt)");
  for (const auto& [code, errors] : report.errors) absl::StrAppend(&text, ErrorLine(code, errors));
  if (report.slo) absl::StrAppend(&text, SloLine(*report.slo));
  Table table({"MILLISECONDS", "MEAN", "P50", "P95", "P99", "MAX"});
  const auto add = [&table](const char* name, const LatencySummary& s) {
    const auto ms = [&s](double seconds) { return s.count > 0 ? absl::StrFormat("%.2f", seconds * 1e3) : ""; };
    table.AddRow({name, ms(s.mean), ms(s.p50), ms(s.p95), ms(s.p99), ms(s.max)});
  };
  add("TTFT", report.ttft);
  add("TPOT", report.tpot);
  add("ITL", report.itl);
  add("end to end", report.end_to_end);
  return absl::StrCat(text, "\n", table.ToString());
}

std::string ToJson(const std::string& target, const Workload& workload, const LoadReport& report) {
  Json json = {{"target", target},
               {"model", workload.model},
               {"rate", workload.rate},
               {"requests", workload.requests},
               {"prompt_tokens", workload.prompt_tokens},
               {"output_tokens", workload.output_tokens},
               {"seed", workload.seed},
               {"cache_salt", workload.cache_salt.empty() ? Json() : Json(workload.cache_salt)},
               {"completed", report.completed},
               {"errors", ErrorsJson(report.errors)},
               {"duration_seconds", report.duration_seconds},
               {"requests_per_second", report.requests_per_second},
               {"output_tokens_per_second", report.output_tokens_per_second},
               {"all_prompt_tokens", report.prompt_tokens},
               {"cached_prompt_tokens", report.cached_tokens},
               {"ttft_seconds", SummaryJson(report.ttft)},
               {"tpot_seconds", SummaryJson(report.tpot)},
               {"itl_seconds", SummaryJson(report.itl)},
               {"end_to_end_seconds", SummaryJson(report.end_to_end)}};
  if (report.slo) json["slo"] = SloJson(*report.slo);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace baton
