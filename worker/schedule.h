// What to run next: pure functions of a snapshot.
//
// A step is a ragged batch under a token budget. Sequences that decode come first, because each waits for one token and
// all of them share one read of the weights; what is left of the budget goes to prompts, oldest first, cut into chunks.
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

// Seniority: the older of two is served first and preempted last. Kept through preemption and retries, since `arrival`
// is the request's at the router.
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

// Shares are in the order of the batch. When the budget is smaller than the number of decoding sequences, the oldest
// run.
std::vector<Share> PlanStep(std::vector<Candidate> candidates, const ScheduleLimits& limits);

// Who of `running`, oldest first, gives up its pages so that another one can grow: the youngest. Never the oldest:
// nullopt when there is nobody else.
std::optional<AttemptKey> PickVictim(std::span<const Age> running);

}  // namespace baton
