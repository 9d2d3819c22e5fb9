// SPDX-License-Identifier: Apache-2.0
// Which pairs of workers there are to try, and which migrations. Plain values and pure functions.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "baton/v1/inference.pb.h"

namespace baton {

// A pair of workers by their ids. If both are equal, the decode worker computes the prompt.
struct WorkerPair {
  std::string prefill;
  std::string decode;

  bool local() const { return prefill == decode; }
  std::string name() const { return local() ? decode : prefill + "+" + decode; }
  auto operator<=>(const WorkerPair&) const = default;
};

// A sequence that begins on a pair and migrates to another decode worker.
struct PlannedMigration {
  WorkerPair from;
  std::string to;

  std::string name() const { return from.name() + ">" + to; }
};

// The workers of one model that compute the same numbers.
struct WorkerGroup {
  std::string model = {};
  std::string numerics_id = {};
  uint32_t vocab_size = 0;
  uint32_t max_context_tokens = 0;
  std::vector<WorkerPair> pairs = {};  // chosen
  size_t possible_pairs = 0;
  std::vector<PlannedMigration> migrations = {};  // chosen
  size_t possible_migrations = 0;
};

struct PlanOptions {
  std::string model = {};  // empty: all models
  size_t max_pairs = 0;    // of a group; and as many migrations
  uint64_t seed = 0;       // of the choice
};

// Returns the groups of serving workers, by model and numerics id. A group whose workers form no pair has none.
std::vector<WorkerGroup> MakePlan(const v1::GetStatusResponse& status, const v1::ListModelsResponse& models,
                                  const PlanOptions& options);

// Returns at most `most` of the pairs, chosen by seed: as many different workers as can be come first.
std::vector<WorkerPair> Choose(std::vector<WorkerPair> pairs, size_t most, uint64_t seed);

// Returns the pin of a request for `pair`.
v1::Pin PinTo(const WorkerPair& pair);

}  // namespace baton
