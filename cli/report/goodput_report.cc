// SPDX-License-Identifier: Apache-2.0
#include "cli/report/goodput_report.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/report/answer_text.h"

namespace baton {
namespace {

using Json = nlohmann::ordered_json;

Json OptionalJson(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

std::string RateText(const std::optional<double>& rate, const char* otherwise) {
  return rate ? absl::StrFormat("%.4g", *rate) : otherwise;
}

}  // namespace

std::string GoodputHeadline(const GoodputOptions& options, const Slo& slo) {
  std::string times;
  if (slo.ttft < absl::InfiniteDuration()) absl::StrAppend(&times, "TTFT within ", absl::FormatDuration(slo.ttft));
  if (slo.tpot < absl::InfiniteDuration()) {
    absl::StrAppend(&times, times.empty() ? "" : " and ", "TPOT within ", absl::FormatDuration(slo.tpot));
  }
  return absl::StrFormat("goodput: the highest rate at which %g %% of requests have %s", 100 * options.attain, times);
}

std::string GoodputHeader(const GoodputOptions& options, const Slo& slo) {
  return absl::StrCat(
      GoodputHeadline(options, slo), "\n",
      absl::StrFormat("%10s %8s %15s %10s %8s %10s %10s %10s %10s\n", "REQUESTS/S", "WITHIN %", "95 % INTERVAL",
                      "COMPLETED", "FAILED", "TTFT P50", "P99, MS", "TPOT P50", "P99, MS"));
}

std::string GoodputRow(double rate, const LoadReport& report) {
  const Attainment attainment = {.met = report.slo->met, .requests = report.slo->requests};
  const Interval interval = WilsonInterval(attainment);
  size_t failed = 0;
  for (const auto& [kind, errors] : report.errors) failed += errors.count;
  const auto ms = [](const LatencySummary& summary, double seconds) {
    return summary.count > 0 ? absl::StrFormat("%.2f", seconds * 1e3) : "-";
  };
  return absl::StrFormat("%10.4g %8.1f %15s %10d %8d %10s %10s %10s %10s\n", rate, 100 * attainment.share(),
                         absl::StrFormat("%.1f to %.1f", 100 * interval.low, 100 * interval.high), report.completed,
                         failed, ms(report.ttft, report.ttft.p50), ms(report.ttft, report.ttft.p99),
                         ms(report.tpot, report.tpot.p50), ms(report.tpot, report.tpot.p99));
}

std::string GoodputSummary(const GoodputOptions& options, const GoodputResult& result) {
  if (!result.goodput) {
    return absl::StrFormat("no rate met the objectives; the lowest tried is %s requests/s\n",
                           RateText(result.missed, "none"));
  }
  std::string text = absl::StrFormat("goodput %.4g requests/s, 95 %% interval %s to %s\n", *result.goodput,
                                     RateText(result.surely_met, "?"), RateText(result.surely_missed, "?"));
  if (!result.is_narrow && result.missed) {
    absl::StrAppendFormat(&text, "the search used up its %s: %.4g requests/s missed\n",
                          Count(static_cast<uint64_t>(options.max_runs), "run"), *result.missed);
  }
  if (!result.missed) absl::StrAppend(&text, "no rate that was tried missed the objectives\n");
  return text;
}

std::string GoodputJson(const GoodputOptions& options, const GoodputResult& result) {
  Json rates = Json::array();
  for (const RateResult& rate : result.rates) {
    const Interval interval = WilsonInterval(rate.attainment);
    rates.push_back({{"requests_per_second", rate.rate},
                     {"runs", rate.runs},
                     {"requests", rate.attainment.requests},
                     {"attained", rate.attainment.share()},
                     {"attained_interval_95", {interval.low, interval.high}}});
  }
  const Json search = {{"attain", options.attain},
                       {"goodput_requests_per_second", OptionalJson(result.goodput)},
                       {"missed", OptionalJson(result.missed)},
                       {"surely_met", OptionalJson(result.surely_met)},
                       {"surely_missed", OptionalJson(result.surely_missed)},
                       {"is_narrow", result.is_narrow},
                       {"rates", rates}};
  return Json({{"goodput_search", search}}).dump();
}

}  // namespace baton
