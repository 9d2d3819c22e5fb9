// SPDX-License-Identifier: Apache-2.0
// Compares deployments: the goodput of each, or the cheapest that carries a rate.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/plan/goodput.h"
#include "cli/plan/simulation.h"

namespace baton::plan {

struct Deployment {
  int prefill = 0;
  int decode = 0;
  int both = 0;
};

// Returns every deployment of at most `most_workers` workers that serves requests: prefill workers with decode workers
// or with workers of role both, and workers of role both alone.
std::vector<Deployment> DeploymentsOf(int most_workers);

struct PlanQuery {
  WorkerKind prefill;  // prefill workers
  WorkerKind decode;   // decode workers, and workers of role both
  double prefill_cost = 1;
  double decode_cost = 1;
  std::vector<Deployment> deployments;
  std::vector<double> networks;  // bytes per second; the deployments are compared on each
  SimulationOptions options;     // without workers and network
  Load load;
  double share = 0.9;               // of requests that must meet both objectives
  std::optional<double> rate = {};  // requests per second to carry
  bool stop_at_cheapest = false;    // with `rate`: leave out the deployments that cost more than the cheapest
  int threads = 1;
};

struct PlanRow {
  double network_bytes_per_second = 0;
  Deployment deployment;
  double cost = 0;
  std::optional<Attainment> at_rate = {};  // if a rate is asked for
  // Without a rate; with stop_at_cheapest, of each deployment that carries the rate.
  std::optional<double> goodput = {};
  bool is_cheapest = false;  // of those that carry the rate
};

// Returns a row for each deployment by network, in the order of costs. Asks `interrupted` between simulations:
// CANCELLED when it returns true. Runs `threads` threads.
absl::StatusOr<std::vector<PlanRow>> MakePlan(const PlanQuery& query, const std::function<bool()>& interrupted);

}  // namespace baton::plan
