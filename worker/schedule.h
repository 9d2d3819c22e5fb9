// SPDX-License-Identifier: Apache-2.0
// Decides what one step computes: pure functions of a snapshot.
//
// A step is a ragged batch under a token budget. Sequences that decode come first: each needs one token, and all of
// them share one read of the weights. The rest of the budget goes to prompts, oldest first, cut into chunks. Where a
// sequence that decodes has an objective for its time per token, the chunks leave the step that time.
//
// While prompts of several tenants are there, the tenant that has got the fewest tokens goes first (the virtual token
// counter of Sheng et al., OSDI'24). Deficit round robin gives the same shares, but a quantum of a chunk's size would
// let a tenant's turn take a whole step. Batch prompts that are not due yet go last.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "common/ids.h"
#include "common/step_cost.h"

namespace baton {

// When the prompts that wait may start. kStatic and kWindow are for comparison.
enum class Batching : uint8_t {
  kContinuous,  // at the next step
  kStatic,      // when no sequence runs: all of a batch start together, and the next batch waits for the last of them
  kWindow,      // the same, but an idle worker waits for batch_window, or for a full batch, before it starts
};

struct ScheduleLimits {
  int token_budget = 512;  // tokens per step
  int chunk_tokens = 512;  // of one prompt per step
  int max_sequences = 64;  // per step
  Batching batching = Batching::kContinuous;
  absl::Duration batch_window = absl::Milliseconds(100);
};

// Of two attempts, the older attempt is served first and preempted last: the older attempt is due earlier. The router
// decides when a request is due: the arrival, and the time that the request's objective or priority leaves. A request
// keeps its age through preemption and retries. A request that may wait is served in the end, because each new request
// is due later than the last.
struct Age {
  absl::Time due;
  AttemptKey key;  // breaks ties

  friend bool operator<(const Age& a, const Age& b) {  // a is older
    return a.due != b.due ? a.due < b.due : a.key < b.key;
  }
  bool operator==(const Age&) const = default;
};

// A runnable sequence.
struct Candidate {
  Age age;
  int pending_tokens = 0;        // 1: decodes; more: a prompt
  int position = 0;              // tokens whose KV is there
  absl::Duration tpot_slo = {};  // 0: none
  size_t tenant = 0;             // index into StepTimes::tenant_tokens
  bool can_wait = false;         // a batch prompt that is not due yet
};

// The times that a plan needs.
struct StepTimes {
  StepCost cost = {};
  // Steps in a row in which the objectives left no time for a prompt that waited.
  int steps_without_prompt = 0;
  // Prompt tokens that each tenant has got. A tenant without an entry has got none.
  std::vector<double> tenant_tokens = {};
};

struct Share {
  AttemptKey key;
  int tokens = 0;
  bool operator==(const Share&) const = default;
};

// The least chunk of a prompt, and how many steps a prompt waits for time before it gets such a chunk all the same.
inline constexpr int kLeastChunk = 16;
inline constexpr int kPatientSteps = 8;

// Prompts before their start, and attempts that have claimed capacity or run.
struct BatchState {
  int in_progress = 0;
  int waiting = 0;
  absl::Duration oldest_wait = {};
};
bool MayStartPrompts(const ScheduleLimits& limits, const BatchState& state);

// Returns shares in the order of the batch. If the budget is smaller than the number of decoding sequences, the oldest
// sequences run.
std::vector<Share> PlanStep(std::vector<Candidate> candidates, const ScheduleLimits& limits,
                            const StepTimes& times = {});

// Returns the sequence of `running` (oldest first) that gives up its pages so that another sequence can grow: the
// youngest. Returns nullopt if only the oldest is left.
std::optional<AttemptKey> PickVictim(std::span<const Age> running);

}  // namespace baton
