// SPDX-License-Identifier: Apache-2.0
#include "cli/report/load_report.h"

#include <algorithm>
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
  const Interval interval = WilsonInterval({.met = report.met, .requests = report.requests});
  return {{"ttft_seconds", seconds(report.slo.ttft)},
          {"tpot_seconds", seconds(report.slo.tpot)},
          {"requests", report.requests},
          {"ttft_attained", ShareOf(report.ttft_met, report)},
          {"tpot_attained", ShareOf(report.tpot_met, report)},
          {"attained", ShareOf(report.met, report)},
          {"attained_interval_95", {interval.low, interval.high}},
          {"goodput_requests_per_second", report.goodput}};
}

SloReport MakeSloReport(const Slo& slo, const LoadResult& result, const LoadSeries& series) {
  SloReport report = {.slo = slo, .requests = result.outcomes.size()};
  report.requests += static_cast<size_t>(result.not_sent) + static_cast<size_t>(result.skipped_turns);
  for (const RequestLatency& request : series.requests) {
    if (!request.ttft) continue;
    const bool in_ttft = *request.ttft <= absl::ToDoubleSeconds(slo.ttft);
    const bool in_tpot = request.tpot.value_or(0) <= absl::ToDoubleSeconds(slo.tpot);
    report.ttft_met += in_ttft ? 1 : 0;
    report.tpot_met += in_tpot ? 1 : 0;
    report.met += in_ttft && in_tpot ? 1 : 0;
  }
  const double seconds = absl::ToDoubleSeconds(result.duration);
  if (seconds > 0) report.goodput = static_cast<double>(report.met) / seconds;
  return report;
}

std::vector<TurnReport> MakeTurnReports(const LoadSeries& series) {
  int turns = 0;
  for (const RequestLatency& request : series.requests) turns = std::max(turns, request.turn + 1);
  if (turns < 2) return {};
  std::vector<TurnReport> reports(static_cast<size_t>(turns));
  std::vector<std::vector<double>> ttfts(reports.size());
  for (const RequestLatency& request : series.requests) {
    TurnReport& report = reports[static_cast<size_t>(request.turn)];
    ++report.completed;
    report.prompt_tokens += request.prompt_tokens;
    report.cached_tokens += request.cached_tokens;
    if (request.ttft) ttfts[static_cast<size_t>(request.turn)].push_back(*request.ttft);
  }
  for (size_t turn = 0; turn < reports.size(); ++turn) reports[turn].ttft = Summarize(std::move(ttfts[turn]));
  return reports;
}

double CachedShare(const TurnReport& turn) {
  return turn.prompt_tokens > 0 ? static_cast<double>(turn.cached_tokens) / static_cast<double>(turn.prompt_tokens) : 0;
}

Json TurnsJson(const std::vector<TurnReport>& turns) {
  Json json = Json::array();
  for (const TurnReport& turn : turns) {
    json.push_back({{"completed", turn.completed},
                    {"prompt_tokens", turn.prompt_tokens},
                    {"cached_prompt_tokens", turn.cached_tokens},
                    {"cached_share", CachedShare(turn)},
                    {"ttft_seconds", SummaryJson(turn.ttft)}});
  }
  return json;
}

std::string TurnTable(const std::vector<TurnReport>& turns) {
  Table table({"TURN", "COMPLETED", "PROMPT TOKENS", "CACHED %", "TTFT P50", "P95"});
  for (size_t i = 0; i < turns.size(); ++i) {
    const TurnReport& turn = turns[i];
    const auto ms = [&turn](double seconds) {
      return turn.ttft.count > 0 ? absl::StrFormat("%.2f", seconds * 1e3) : "";
    };
    table.AddRow({absl::StrCat(i + 1), absl::StrCat(turn.completed), absl::StrCat(turn.prompt_tokens),
                  absl::StrFormat("%.1f", 100 * CachedShare(turn)), ms(turn.ttft.p50), ms(turn.ttft.p95)});
  }
  return absl::StrCat("\n", table.ToString());
}

const char* ArrivalsName(ArrivalProcess arrivals) {
  switch (arrivals) {
    case ArrivalProcess::kPoisson: return "poisson";
    case ArrivalProcess::kGamma: return "gamma";
    case ArrivalProcess::kConstant: return "constant";
    case ArrivalProcess::kTrace: return "trace";
  }
  return "";
}

}  // namespace

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
  for (const RequestOutcome& outcome : result.outcomes) {
    if (outcome.error.empty()) continue;
    LoadErrors& errors = report.errors[outcome.error];
    ++errors.count;
    if (errors.first_reason.empty()) errors.first_reason = outcome.reason;
  }
  if (result.not_sent > 0) {
    report.errors["NOT_SENT"] = {static_cast<size_t>(result.not_sent), "as many as --max-in-flight were under way"};
  }
  if (result.skipped_turns > 0) {
    report.errors["SKIPPED_TURN"] = {static_cast<size_t>(result.skipped_turns), "a turn before failed or was not sent"};
  }
  report.unknown_answers = static_cast<size_t>(result.unknown_answers);
  LoadSeries series = MakeSeries(result);
  size_t output_tokens = 0;
  for (const RequestLatency& request : series.requests) {
    ++report.completed;
    report.prompt_tokens += request.prompt_tokens;
    report.cached_tokens += request.cached_tokens;
    report.short_answers += request.is_short ? 1 : 0;
    output_tokens += static_cast<size_t>(request.output_tokens);
  }
  report.duration_seconds = absl::ToDoubleSeconds(result.duration);
  if (report.duration_seconds > 0) {
    report.requests_per_second = static_cast<double>(report.completed) / report.duration_seconds;
    report.output_tokens_per_second = static_cast<double>(output_tokens) / report.duration_seconds;
  }
  if (slo) report.slo = MakeSloReport(*slo, result, series);
  report.turns = MakeTurnReports(series);
  report.ttft = Summarize(Sorted(series, &RequestLatency::ttft));
  report.tpot = Summarize(Sorted(series, &RequestLatency::tpot));
  report.itl = Summarize(std::move(series.itl));
  report.end_to_end = Summarize(SortedEndToEnd(series));
  return report;
}

std::string LoadLine(const Workload& workload, const LoadOptions& options) {
  std::string text = workload.turns > 1
                         ? absl::StrCat(Count(workload.requests, "conversation"), " of ", workload.turns, " turns")
                         : Count(workload.requests, "request");
  if (workload.trace) absl::StrAppend(&text, " of a trace");
  if (options.concurrency > 0) {
    absl::StrAppend(&text, ", ", options.concurrency, " at a time");
  } else if (workload.arrivals != ArrivalProcess::kTrace) {
    absl::StrAppendFormat(&text, " at %g/s", workload.rate);
  }
  if (!workload.trace) {
    absl::StrAppend(&text, ", ", Count(workload.prompt_tokens, "prompt token"), " and ",
                    Count(workload.output_tokens, "output token"), workload.turns > 1 ? " a turn" : " each");
  }
  if (options.warmup > 0) absl::StrAppend(&text, "; the first ", options.warmup, " are not measured");
  return absl::StrCat(text, "\n");
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
  if (report.short_answers > 0) {
    absl::StrAppend(&text, Count(report.short_answers, "answer"), " ended before the length that was asked for\n");
  }
  if (report.unknown_answers > 0) {
    absl::StrAppend(&text, Count(report.unknown_answers, "turn"),
                    " followed an answer whose token ids the server did not ",
                    "tell: random tokens took their place\n");
  }
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
  return absl::StrCat(text, "\n", table.ToString(), report.turns.empty() ? "" : TurnTable(report.turns));
}

std::string ToJson(const std::string& target, const Workload& workload, const LoadOptions& options,
                   const LoadReport& report) {
  Json json = {
      {"target", target},
      {"model", workload.model},
      {"rate", options.concurrency > 0 || workload.arrivals == ArrivalProcess::kTrace ? Json() : Json(workload.rate)},
      {"arrivals", ArrivalsName(workload.arrivals)},
      {"concurrency", options.concurrency > 0 ? Json(options.concurrency) : Json()},
      {"requests", workload.requests},
      {"turns", workload.turns},
      {"warmup", options.warmup},
      {"prompt_tokens", workload.trace ? Json() : Json(workload.prompt_tokens)},
      {"output_tokens", workload.trace ? Json() : Json(workload.output_tokens)},
      {"seed", workload.seed},
      {"cache_salt", workload.cache_salt.empty() ? Json() : Json(workload.cache_salt)},
      {"completed", report.completed},
      {"errors", ErrorsJson(report.errors)},
      {"duration_seconds", report.duration_seconds},
      {"requests_per_second", report.requests_per_second},
      {"output_tokens_per_second", report.output_tokens_per_second},
      {"all_prompt_tokens", report.prompt_tokens},
      {"cached_prompt_tokens", report.cached_tokens},
      {"short_answers", report.short_answers},
      {"ttft_seconds", SummaryJson(report.ttft)},
      {"tpot_seconds", SummaryJson(report.tpot)},
      {"itl_seconds", SummaryJson(report.itl)},
      {"end_to_end_seconds", SummaryJson(report.end_to_end)}};
  if (report.slo) json["slo"] = SloJson(*report.slo);
  if (!report.turns.empty()) {
    json["by_turn"] = TurnsJson(report.turns);
    json["turns_after_unknown_answers"] = report.unknown_answers;
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace baton
