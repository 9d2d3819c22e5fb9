// SPDX-License-Identifier: Apache-2.0
#include "cli/report/load_series.h"

#include <algorithm>
#include <cmath>

namespace baton {

LoadSeries MakeSeries(const LoadResult& result) {
  LoadSeries series;
  for (const RequestOutcome& outcome : result.outcomes) {
    if (!outcome.error.empty()) continue;
    RequestLatency request = {.start = absl::ToDoubleSeconds(outcome.start),
                              .ttft = {},
                              .tpot = {},
                              .end_to_end = absl::ToDoubleSeconds(outcome.total),
                              .turn = outcome.turn,
                              .prompt_tokens = outcome.prompt_tokens,
                              .cached_tokens = outcome.cached_tokens};
    const auto& arrivals = outcome.arrivals;
    for (size_t i = 0; i < arrivals.size(); ++i) {
      const int count = arrivals[i].tokens;
      request.output_tokens += count;
      if (i == 0) continue;
      const double gap = absl::ToDoubleSeconds(arrivals[i].at - arrivals[i - 1].at);
      series.itl.insert(series.itl.end(), static_cast<size_t>(count), gap / count);
    }
    request.is_short = request.output_tokens < outcome.wanted_tokens;
    if (!arrivals.empty()) request.ttft = absl::ToDoubleSeconds(arrivals.front().at);
    if (request.output_tokens > 1) {
      const absl::Duration after_first = arrivals.back().at - arrivals.front().at;
      request.tpot = absl::ToDoubleSeconds(after_first / (request.output_tokens - 1));
    }
    series.requests.push_back(request);
  }
  return series;
}

std::vector<double> Sorted(const LoadSeries& series, std::optional<double> RequestLatency::* value) {
  std::vector<double> values;
  for (const RequestLatency& request : series.requests) {
    if ((request.*value).has_value()) values.push_back(*(request.*value));
  }
  std::ranges::sort(values);
  return values;
}

std::vector<double> SortedEndToEnd(const LoadSeries& series) {
  std::vector<double> values;
  values.reserve(series.requests.size());
  for (const RequestLatency& request : series.requests) values.push_back(request.end_to_end);
  std::ranges::sort(values);
  return values;
}

double Percentile(const std::vector<double>& sorted, double q) {
  const double rank = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(std::floor(rank));
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], rank - static_cast<double>(below));
}

std::vector<InFlightStep> InFlight(const LoadResult& result) {
  std::vector<std::pair<double, int>> changes;
  for (const RequestOutcome& outcome : result.outcomes) {
    changes.emplace_back(absl::ToDoubleSeconds(outcome.start), 1);
    changes.emplace_back(absl::ToDoubleSeconds(outcome.start + outcome.total), -1);
  }
  std::ranges::sort(changes);
  std::vector<InFlightStep> steps;
  int requests = 0;
  for (const auto& [at, change] : changes) {
    requests += change;
    if (!steps.empty() && steps.back().at == at) {
      steps.back().requests = requests;
    } else {
      steps.push_back({.at = at, .requests = requests});
    }
  }
  return steps;
}

}  // namespace baton
