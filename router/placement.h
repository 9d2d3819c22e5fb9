// SPDX-License-Identifier: Apache-2.0
// Which pair of workers serves a request. Pure functions of a snapshot: no threads, no clock, no I/O.
//
// The estimated TTFT of a pair is the time until the prefill worker has computed what waits there and what it does not
// have of this prompt, at the speed it has measured, plus what handing over takes, plus a penalty for each thing that
// the decode worker lacks at the moment. The least wins; equals are told apart by running sequences, by what the decode
// worker has, then in turn.
//
// A decode worker that can prefill is a pair with itself, one among others: the estimate decides whether a prompt is
// computed where it is decoded (conditional disaggregation). It slows down what runs there, so that longer prompts go
// elsewhere whenever they can.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "router/worker_ref.h"

namespace baton::router {

enum class PlacementPolicy {
  kPrefix,       // as above
  kLeastLoaded,  // as if no worker had any page
  kRoundRobin,   // pairs in turn
};

struct PlacementRules {
  PlacementPolicy policy = PlacementPolicy::kPrefix;
  // A prompt with more tokens left to compute is prefilled on a decode worker only where no other pair takes it.
  uint32_t max_local_prefill_tokens = 512;
};

struct WorkerView {
  WorkerKey key;
  uint64_t waiting_tokens = 0;           // reported, and sent but not yet in a report
  double prefill_tokens_per_second = 0;  // 0: not measured yet
  uint32_t running_sequences = 0;
  uint32_t max_sequences = 0;
  uint64_t pages_total = 0;
  uint64_t pages_free = 0;  // cached pages included
  uint32_t page_tokens = 1;
  uint32_t max_context_tokens = 0;
  uint32_t cached_tokens = 0;  // of the prompt in question, as far as is known
};

// A ready pair. When the decode worker prefills locally both views are of the same worker.
struct PairView {
  uint64_t pair = 0;
  bool local = false;
  WorkerView prefill;
  WorkerView decode;
};

struct PlacementNeed {
  uint32_t prompt_tokens = 0;  // to be prefilled: prior output included
  uint32_t total_tokens = 0;   // prompt and max_tokens
  bool migrates = false;       // its KV is there and comes from elsewhere: only decode workers are compared
};

// Of the prompt. The last token is always computed.
uint32_t TokensToCompute(const WorkerView& prefill, const PlacementNeed& need);

// Whether the pair could serve the request when idle.
bool Fits(const PairView& pair, const PlacementNeed& need);

// Prompt and output of the longest sequence that the pair could serve when idle.
uint32_t LargestSequence(const PairView& pair);

// `assumed_speed`, in tokens per second, is that of a prefill worker that has measured none.
double EstimateTtftSeconds(const PairView& pair, const PlacementNeed& need, double assumed_speed);

// Index into `pairs` of the best one that fits and has no worker among `avoid`. `turn` decides between equals: callers
// count it up.
std::optional<size_t> ChoosePair(const PlacementRules& rules, std::span<const PairView> pairs,
                                 const PlacementNeed& need, std::span<const WorkerKey> avoid, uint64_t turn);

}  // namespace baton::router
