// SPDX-License-Identifier: Apache-2.0
// Which pair of workers serves a request. Pure functions of a snapshot: no threads, no clock, no I/O.
//
// The cost of a pair is the estimate of router/forecast.h, the delay of others, and a penalty for missed objectives.
// The penalty counts the request and the sequences at the decode worker, times the odds. The least cost wins. Equals
// are told apart by running sequences, then by the decode worker's cached tokens, then in turn.
//
// A decode worker that can prefill is a pair with itself, one among others: the cost decides whether a prompt is
// computed where it is decoded (conditional disaggregation).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "router/forecast.h"

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

// If most of a transfer came after the computation (`exposed_seconds`), the handoff measures the bandwidth. Else the
// transfer waited for the computation: the bandwidth is at least bytes over time.
void NoteHandoff(PathView& path, uint64_t bytes, double transfer_seconds, double exposed_seconds);

// Prompt and output of the longest sequence that the pair, or the decode worker alone, could serve when idle.
uint32_t LargestSequence(const PairView& pair);
uint32_t LargestSequence(const WorkerView& decode);
// The longest sequence that the worker could prefill when idle.
uint32_t LargestPrompt(const WorkerView& prefill);

// A ready pair of two workers, by their positions among Candidates::workers.
struct ReadyPair {
  uint64_t id = 0;
  uint32_t prefill = 0;
  uint32_t decode = 0;  // the same as `prefill`: the decode worker computes the prompt
  PathView path = {};

  bool local() const { return prefill == decode; }
};

// The workers that could serve a request, and the ready pairs among them.
struct Candidates {
  std::vector<WorkerView> workers = {};
  std::vector<ReadyPair> pairs = {};
  // The workers of `pairs`, by position, each once; from NoteWorkersOfPairs.
  std::vector<uint32_t> prefills = {};
  std::vector<uint32_t> decodes = {};

  void NoteWorkersOfPairs();
  PairView View(size_t pair) const;
};

AssumedSpeed FastestOf(const Candidates& candidates);

// Whether the pair could serve the request when idle, and has no worker to avoid.
bool IsPossible(const PairView& pair, const PlacementNeed& need);

// Index into `candidates.pairs` of the best pair that fits and has no worker to avoid. `turn` decides between equals:
// callers count it up.
std::optional<size_t> ChoosePair(const PlacementRules& rules, const Candidates& candidates, const PlacementNeed& need,
                                 uint64_t turn);

// The workers among which ChoosePairToProve looks, by position: all fit each other.
struct Provable {
  std::vector<uint32_t> prefills = {};
  std::vector<uint32_t> decodes = {};
};
// The positions of the prefill and the decode worker whose pair would cost least, among the pairs that could serve the
// request, cost less than `most` and are not held. Looks only at the kMostCompared workers of each kind that cost
// least.
constexpr size_t kMostCompared = 32;
struct PairToProve {
  uint32_t prefill = 0;
  uint32_t decode = 0;
  double cost = 0;
};
std::optional<PairToProve> ChoosePairToProve(const Candidates& candidates, const Provable& provable,
                                             const PlacementNeed& need, double most,
                                             absl::FunctionRef<bool(uint32_t prefill, uint32_t decode)> is_held);

// Index of the best decode worker for a sequence whose KV another decode worker hands over.
std::optional<size_t> ChooseDecode(const PlacementRules& rules, std::span<const WorkerView> decodes,
                                   const PlacementNeed& need, uint64_t turn);

}  // namespace baton::router
