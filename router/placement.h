// SPDX-License-Identifier: Apache-2.0
// Which pair of workers serves a request. Pure functions of a snapshot: no threads, no clock, no I/O.
//
// The estimate of a pair is the time until the sequence decodes:
//
//   what waits at the prefill worker and what the prefill worker lacks of the prompt, over the speed it has measured
//   + the part of the KV transfer that outlasts the computation, over the measured bandwidth of the path
//   + the decode worker's step times the share of its batch slots in use, and penalties for no batch slot and no pages
//
// The cost of a pair is the estimate and what the request does to its own objectives and to the sequences beside:
//
//   + the delay of every sequence that decodes where the prompt is computed
//   + a penalty for each objective that the request, or a sequence at the decode worker, would miss, times the odds
//
// The least cost wins. Equals are told apart by running sequences, then by what the decode worker has cached, then in
// turn.
//
// A decode worker that can prefill is a pair with itself, one among others: the cost decides whether a prompt is
// computed where it is decoded (conditional disaggregation). With an objective for the time per token, the worker cuts
// the prompt into chunks that delay nobody (worker/schedule.h). Then the prompt takes longer.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "common/step_cost.h"

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
  bool avoided = false;                  // the request must not go there
  uint64_t waiting_tokens = 0;           // reported, and sent but not yet in a report
  double prefill_tokens_per_second = 0;  // 0: not measured yet
  double step_seconds = 0;               // 0: not measured yet
  uint32_t running_sequences = 0;        // and sequences that will run there when they have their KV
  uint32_t max_sequences = 0;
  uint64_t pages_total = 0;
  uint64_t pages_free = 0;  // cached pages included
  uint32_t page_tokens = 1;
  uint32_t kv_token_bytes = 0;
  uint32_t max_context_tokens = 0;
  uint32_t cached_tokens = 0;   // of the prompt in question, as far as is known
  uint64_t running_tokens = 0;  // context of the running sequences
  StepCost cost;
};

// The figures of recent handoffs between two workers.
struct PathView {
  double bytes_per_second = 0;  // 0: not measured yet
};
// If most of a transfer came after the computation (`exposed_seconds`), the handoff measures the bandwidth. Else the
// transfer waited for the computation: the bandwidth is at least bytes over time.
void NoteHandoff(PathView& path, uint64_t bytes, double transfer_seconds, double exposed_seconds);

// A ready pair. When the decode worker prefills locally both views are of the same worker.
struct PairView {
  uint64_t pair = 0;
  bool local = false;
  WorkerView prefill;
  WorkerView decode;
  PathView path;
};

struct PlacementNeed {
  uint32_t prompt_tokens = 0;  // to be prefilled: prior output included
  uint32_t total_tokens = 0;   // prompt and max_tokens
  double ttft_slo = 0;         // seconds that are left; 0: none
  double tpot_slo = 0;         // seconds; 0: none
};

// Returns the tokens of the prompt that the worker lacks, and the last token, which is always computed.
uint32_t TokensToCompute(const WorkerView& prefill, const PlacementNeed& need);

// A grant of the decode worker covers the prompt and one page to grow into.
uint32_t PagesToStart(const WorkerView& decode, uint32_t prompt_tokens);

// Prompt and output of the longest sequence that the pair, or the decode worker alone, could serve when idle.
uint32_t LargestSequence(const PairView& pair);
uint32_t LargestSequence(const WorkerView& decode);
// The longest sequence that the worker could prefill when idle.
uint32_t LargestPrompt(const WorkerView& prefill);

// The speed of a worker or a path that has measured nothing is taken for the best that others have measured. Such a
// worker soon gets work, which it can measure.
struct AssumedSpeed {
  double prefill_tokens_per_second = 0;
  double path_bytes_per_second = 0;
  double step_seconds = 0;
};
AssumedSpeed FastestOf(std::span<const PairView> pairs);

// Whether the pair could serve the request when idle, and has no worker to avoid.
bool IsPossible(const PairView& pair, const PlacementNeed& need);

// The cost of a pair, in seconds.
double CostOf(const PairView& pair, const PlacementNeed& need, const AssumedSpeed& assumed);

// Index into `pairs` of the best pair that fits and has no worker to avoid. `turn` decides between equals: callers
// count it up.
std::optional<size_t> ChoosePair(const PlacementRules& rules, std::span<const PairView> pairs,
                                 const PlacementNeed& need, uint64_t turn);

// Index of the best decode worker for a sequence whose KV another decode worker hands over.
std::optional<size_t> ChooseDecode(const PlacementRules& rules, std::span<const WorkerView> decodes,
                                   const PlacementNeed& need, uint64_t turn);

}  // namespace baton::router
