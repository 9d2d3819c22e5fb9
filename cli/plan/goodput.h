// SPDX-License-Identifier: Apache-2.0
// The goodput of a deployment, found by simulations at several rates. Pure functions of their arguments; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cli/load/workload.h"
#include "cli/plan/simulation.h"

namespace baton::plan {

// The requests of a simulation. `workload.rate` and `workload.requests` are those of each simulation.
struct Load {
  Workload workload;
  double seconds = 120;      // how long requests arrive in a simulation, a million at most
  int least_requests = 300;  // however long these take to arrive
};

// Returns the requests that arrive at `rate` requests per second. The lengths of a trace repeat from its start.
std::vector<SimulatedRequest> RequestsAt(const Load& load, double rate);

// The figures of a simulation at one rate, without the first tenth of the requests.
struct Attainment {
  double rate = 0;
  size_t requests = 0;
  double met = 0;  // share of the requests within both objectives
  double ttft_met = 0;
  double tpot_met = 0;
  // Seconds, of complete requests.
  double ttft_p50 = 0;
  double ttft_p90 = 0;
  double tpot_p50 = 0;
  double tpot_p90 = 0;
  uint64_t preemptions = 0;
};

Attainment SimulateAt(const SimulationOptions& options, const Load& load, double rate);

// Returns the highest rate at which at least `share` of the requests meet both objectives, to 2 %. Returns 0 if not
// even an idle deployment meets them.
double Goodput(const SimulationOptions& options, const Load& load, double share);

}  // namespace baton::plan
