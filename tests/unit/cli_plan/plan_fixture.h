// SPDX-License-Identifier: Apache-2.0
// Workers, loads and deployments for the tests of the simulation.
#pragma once

#include <random>
#include <vector>

#include "cli/plan/simulation.h"

namespace baton::plan {

// A step of one sequence that decodes takes 11 ms, a prompt of 100 tokens takes 20 ms.
inline WorkerKind Kind() {
  constexpr StepCost kCost = {.step = 0.01, .prompt_token = 1e-4, .decode_row = 1e-3};
  return {.cost = kCost,
          .schedule = {},
          .pages = 1000,
          .page_tokens = 16,
          .kv_token_bytes = 1000,
          .layers = 4,
          .max_context_tokens = 8192};
}

inline std::vector<WorkerSpec> Workers(int prefill, int decode, int both, const WorkerKind& kind = Kind()) {
  std::vector<WorkerSpec> workers;
  workers.insert(workers.end(), prefill, {WorkerRole::kPrefill, kind});
  workers.insert(workers.end(), decode, {WorkerRole::kDecode, kind});
  workers.insert(workers.end(), both, {WorkerRole::kBoth, kind});
  return workers;
}

inline constexpr double kMessage = 1e-3;

inline SimulationOptions Options(std::vector<WorkerSpec> workers) {
  return {.workers = std::move(workers), .network_bytes_per_second = 1e9, .message_seconds = kMessage};
}

inline std::vector<SimulatedRequest> RandomRequests(int count, double rate, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto draw = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<uint64_t>(most - least + 1));
  };
  std::vector<SimulatedRequest> requests;
  double arrival = 0;
  for (int i = 0; i < count; ++i) {
    arrival += draw(0, 2000) / 1000.0 / rate;
    requests.push_back({arrival, draw(1, 700), draw(1, 40)});
  }
  return requests;
}

}  // namespace baton::plan
