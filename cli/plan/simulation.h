// SPDX-License-Identifier: Apache-2.0
// Simulates a deployment under a load: router, workers, handoffs, and the messages between them, event by event.
// Results are a function of the arguments.
//
// Placement (router/placement.h) and the plan of each step (worker/schedule.h) are the code that runs in Baton.
// Admission, growth, preemption and the delay of status reports follow the same rules in code of their own.
// A handoff sends the KV of each chunk while later layers compute. A worker sends, and receives, at the speed of the
// network in total.
//
// Left out are prefix caches, refusals by workers, failures, migration, and the CPU time of Baton itself but
// for a constant time per message. A preempted sequence computes its prompt and its output again.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cli/plan/simulated_router.h"
#include "cli/plan/simulated_worker.h"

namespace baton::plan {

struct SimulatedRequest {
  double arrival = 0;  // seconds, ascending
  int prompt_tokens = 0;
  int output_tokens = 0;
};

struct SimulationOptions {
  std::vector<WorkerSpec> workers;
  router::PlacementRules placement = {};
  double network_bytes_per_second = 0;  // of each worker, in each direction
  double message_seconds = 2e-4;        // from one process to the next
  double report_interval_seconds = 0.1;
  // Objectives that the router knows, in seconds; 0: none.
  double ttft_slo = 0;
  double tpot_slo = 0;
  // Ends the simulation early once more than this many requests have missed an objective.
  uint64_t most_misses = UINT64_MAX;
  // The first requests, whose misses do not count.
  size_t warmup = 0;
};

// The outcome of a request. Times are those of the client, in seconds from the request's arrival.
struct RequestResult {
  bool refused = false;  // late, or no worker could ever serve the request
  bool complete = false;
  double first_token = 0;
  double last_token = 0;
  int tokens = 0;  // of output
  int attempts = 0;

  // The mean time per token after the first; 0 for an answer of one token.
  double tpot() const { return tokens > 1 ? (last_token - first_token) / (tokens - 1) : 0; }
};

struct SimulationResult {
  std::vector<RequestResult> requests;
  uint64_t misses = 0;  // requests after the warm-up that missed an objective
  double end = 0;       // seconds: when the last event happened
  uint64_t steps = 0;
  uint64_t preemptions = 0;
  uint64_t handoffs = 0;
  double handoff_bytes = 0;
  double exposed_seconds = 0;  // of all handoffs: from the end of the computation to the last byte
  // Held by the workers at the end.
  int pages_held = 0;
  int slots_held = 0;
  int jobs_held = 0;
};

SimulationResult Simulate(const SimulationOptions& options, std::span<const SimulatedRequest> requests);

}  // namespace baton::plan
