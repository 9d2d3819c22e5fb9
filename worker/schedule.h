// SPDX-License-Identifier: Apache-2.0
// Decides what one step computes: pure functions of a snapshot.
//
// A step is a ragged batch under a token budget. Sequences that decode come first: each needs one token, and all of
// them share one read of the weights. The rest of the budget goes to prompts, oldest first, cut into chunks.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "common/ids.h"

namespace baton {

struct ScheduleLimits {
  int token_budget = 512;  // tokens per step
  int chunk_tokens = 512;  // of one prompt per step
  int max_sequences = 64;  // per step
};

// Of two attempts, the older attempt is served first and preempted last. A request keeps its age through preemption and
// retries, because `arrival` is the time at which the router received the request.
struct Age {
  absl::Time arrival;
  AttemptKey key;  // breaks ties

  friend bool operator<(const Age& a, const Age& b) {  // a is older
    return a.arrival != b.arrival ? a.arrival < b.arrival : a.key < b.key;
  }
  bool operator==(const Age&) const = default;
};

// A runnable sequence.
struct Candidate {
  Age age;
  int pending_tokens = 0;  // 1: decodes; more: a prompt
};

struct Share {
  AttemptKey key;
  int tokens = 0;
  bool operator==(const Share&) const = default;
};

// Returns shares in the order of the batch. If the budget is smaller than the number of decoding sequences, the oldest
// sequences run.
std::vector<Share> PlanStep(std::vector<Candidate> candidates, const ScheduleLimits& limits);

// Returns the sequence of `running` (oldest first) that gives up its pages so that another sequence can grow: the
// youngest. Returns nullopt if only the oldest is left.
std::optional<AttemptKey> PickVictim(std::span<const Age> running);

}  // namespace baton
