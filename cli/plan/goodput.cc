// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/goodput.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/time/time.h"

namespace baton::plan {
namespace {

constexpr double kLeastRate = 1e-3;
constexpr double kMostRate = 1e6;
constexpr double kMostRequests = 1e6;  // of a simulation
constexpr double kPrecision = 0.02;

size_t WarmupOf(size_t requests) { return requests / 10; }

double At(std::vector<double>& values, double quantile) {
  if (values.empty()) return 0;
  const auto rank = static_cast<ptrdiff_t>(quantile * static_cast<double>(values.size() - 1));
  std::ranges::nth_element(values, values.begin() + rank);
  return values[static_cast<size_t>(rank)];
}

bool Meets(const SimulationOptions& options, const Load& load, double rate, double share) {
  const std::vector<SimulatedRequest> requests = RequestsAt(load, rate);
  SimulationOptions judged = options;
  judged.warmup = WarmupOf(requests.size());
  judged.most_misses = static_cast<uint64_t>((1 - share) * static_cast<double>(requests.size() - judged.warmup));
  return Simulate(judged, requests).misses <= judged.most_misses;
}

}  // namespace

std::vector<SimulatedRequest> RequestsAt(const Load& load, double rate) {
  Workload workload = load.workload;
  workload.rate = rate;
  workload.requests =
      std::max(load.least_requests, static_cast<int>(std::min(std::ceil(rate * load.seconds), kMostRequests)));
  std::vector<SimulatedRequest> requests;
  requests.reserve(workload.requests);
  for (const absl::Duration arrival : Arrivals(workload)) {
    SimulatedRequest request{absl::ToDoubleSeconds(arrival), workload.prompt_tokens, workload.output_tokens};
    if (workload.trace.has_value()) {
      const TraceRequest& recorded = workload.trace->requests[requests.size() % workload.trace->requests.size()];
      request.prompt_tokens = recorded.input_tokens;
      request.output_tokens = recorded.output_tokens;
    }
    requests.push_back(request);
  }
  return requests;
}

Attainment SimulateAt(const SimulationOptions& options, const Load& load, double rate) {
  const std::vector<SimulatedRequest> requests = RequestsAt(load, rate);
  const SimulationResult result = Simulate(options, requests);
  Attainment attainment{.rate = rate, .preemptions = result.preemptions};
  std::vector<double> ttfts;
  std::vector<double> tpots;
  for (size_t i = WarmupOf(requests.size()); i < requests.size(); ++i) {
    const RequestResult& request = result.requests[i];
    ++attainment.requests;
    if (!request.complete) continue;
    const bool ttft_met = options.ttft_slo <= 0 || request.first_token <= options.ttft_slo;
    const bool tpot_met = options.tpot_slo <= 0 || request.tpot() <= options.tpot_slo;
    attainment.ttft_met += ttft_met ? 1 : 0;
    attainment.tpot_met += tpot_met ? 1 : 0;
    attainment.met += ttft_met && tpot_met ? 1 : 0;
    ttfts.push_back(request.first_token);
    if (request.tokens > 1) tpots.push_back(request.tpot());
  }
  const auto all = static_cast<double>(std::max<size_t>(attainment.requests, 1));
  attainment.met /= all;
  attainment.ttft_met /= all;
  attainment.tpot_met /= all;
  attainment.ttft_p50 = At(ttfts, 0.5);
  attainment.ttft_p90 = At(ttfts, 0.9);
  attainment.tpot_p50 = At(tpots, 0.5);
  attainment.tpot_p90 = At(tpots, 0.9);
  return attainment;
}

double Goodput(const SimulationOptions& options, const Load& load, double share) {
  double low = 0;
  double high = 1;
  if (Meets(options, load, high, share)) {
    for (low = high; high < kMostRate; low = high) {
      high *= 2;
      if (!Meets(options, load, high, share)) break;
    }
  } else {
    while (low == 0 && high > kLeastRate) {
      if (Meets(options, load, high / 2, share)) {
        low = high / 2;
      } else {
        high /= 2;
      }
    }
  }
  while (low > 0 && high > low * (1 + kPrecision)) {
    const double middle = std::sqrt(low * high);
    (Meets(options, load, middle, share) ? low : high) = middle;
  }
  return low;
}

}  // namespace baton::plan
