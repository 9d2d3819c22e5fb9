// SPDX-License-Identifier: Apache-2.0
#include "cli/report/plan_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/report/table.h"

namespace baton {
namespace {

std::string NameOf(const plan::Deployment& deployment) {
  std::vector<std::string> parts;
  if (deployment.prefill > 0) parts.push_back(absl::StrCat(deployment.prefill, " prefill"));
  if (deployment.decode > 0) parts.push_back(absl::StrCat(deployment.decode, " decode"));
  if (deployment.both > 0) parts.push_back(absl::StrCat(deployment.both, " both"));
  return absl::StrJoin(parts, " + ");
}

// A speed per second with three digits.
std::string Rate(double rate) { return absl::StrFormat("%.3g", rate); }
std::string Percent(double share) { return absl::StrFormat("%.1f", 100 * share); }
std::string InMilliseconds(double seconds) { return absl::StrFormat("%.1f", 1e3 * seconds); }

}  // namespace

std::string ToTable(const plan::PlanQuery& query, const std::vector<plan::PlanRow>& rows) {
  std::string text = absl::StrFormat("objectives: TTFT %s ms, TPOT %s ms, for %s %% of requests\n",
                                     InMilliseconds(query.options.ttft_slo), InMilliseconds(query.options.tpot_slo),
                                     Percent(query.share));
  if (query.rate) absl::StrAppendFormat(&text, "at %s requests per second:\n", Rate(*query.rate));
  absl::StrAppend(&text, "\n");
  std::vector<std::string> header = {"network GB/s", "workers", "cost", "goodput/s"};
  if (query.rate) {
    header.insert(header.end(), {"within both %", "TTFT %", "TPOT %", "TTFT p50 ms", "p90", "TPOT p50 ms", "p90"});
  }
  Table table(header);
  const plan::PlanRow* best = nullptr;
  for (const plan::PlanRow& row : rows) {
    std::vector<std::string> cells = {Rate(row.network_bytes_per_second / 1e9), NameOf(row.deployment),
                                      absl::StrFormat("%g", row.cost), row.goodput ? Rate(*row.goodput) : ""};
    if (row.at_rate) {
      const plan::Attainment& at = *row.at_rate;
      cells.insert(cells.end(),
                   {Percent(at.met), Percent(at.ttft_met), Percent(at.tpot_met), InMilliseconds(at.ttft_p50),
                    InMilliseconds(at.ttft_p90), InMilliseconds(at.tpot_p50), InMilliseconds(at.tpot_p90)});
    }
    table.AddRow(cells);
    if (row.is_cheapest && (best == nullptr || row.cost < best->cost)) best = &row;
  }
  absl::StrAppend(&text, table.ToString());
  if (!query.rate) return text;
  if (best == nullptr) return text + "\nNone of these deployments carries the rate.\n";
  return text + absl::StrFormat("\nThe cheapest that carries the rate: %s, at a cost of %g, with %s GB/s.\n",
                                NameOf(best->deployment), best->cost, Rate(best->network_bytes_per_second / 1e9));
}

std::string ToJson(const plan::PlanQuery& query, const std::vector<plan::PlanRow>& rows) {
  using Json = nlohmann::ordered_json;
  Json json = {{"ttft_slo", query.options.ttft_slo}, {"tpot_slo", query.options.tpot_slo}, {"share", query.share}};
  if (query.rate) json["rate"] = *query.rate;
  json["deployments"] = Json::array();
  for (const plan::PlanRow& row : rows) {
    Json entry = {{"network_bytes_per_second", row.network_bytes_per_second},
                  {"prefill", row.deployment.prefill},
                  {"decode", row.deployment.decode},
                  {"both", row.deployment.both},
                  {"cost", row.cost},
                  {"goodput", row.goodput ? Json(*row.goodput) : Json()}};
    if (row.at_rate) {
      const plan::Attainment& at = *row.at_rate;
      entry["at_rate"] = {{"requests", at.requests},      {"attained", at.met},      {"ttft_attained", at.ttft_met},
                          {"tpot_attained", at.tpot_met}, {"ttft_p50", at.ttft_p50}, {"ttft_p90", at.ttft_p90},
                          {"tpot_p50", at.tpot_p50},      {"tpot_p90", at.tpot_p90}, {"preemptions", at.preemptions}};
      entry["cheapest"] = row.is_cheapest;
    }
    json["deployments"].push_back(std::move(entry));
  }
  return json.dump();
}

}  // namespace baton
