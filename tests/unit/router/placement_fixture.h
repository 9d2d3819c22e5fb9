// SPDX-License-Identifier: Apache-2.0
// Pairs as tests of placement write them, and the plainest choice among pairs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "router/placement.h"

namespace baton::router {

inline WorkerView Worker() {
  WorkerView worker;
  worker.prefill_tokens_per_second = 1000;
  worker.max_sequences = 8;
  worker.pages_total = 101;
  worker.pages_free = 101;
  worker.page_tokens = 16;
  worker.max_context_tokens = 4096;
  return worker;
}

inline PairView Pair() { return {0, false, Worker(), Worker(), {}}; }

// Each pair has workers of its own.
inline std::optional<size_t> ChoosePair(const PlacementRules& rules, std::span<const PairView> pairs,
                                        const PlacementNeed& need, uint64_t turn) {
  Candidates candidates;
  for (const PairView& pair : pairs) {
    const auto prefill = static_cast<uint32_t>(candidates.workers.size());
    candidates.workers.push_back(pair.prefill);
    if (!pair.local) candidates.workers.push_back(pair.decode);
    candidates.pairs.push_back({pair.pair, prefill, pair.local ? prefill : prefill + 1, pair.path});
  }
  candidates.NoteWorkersOfPairs();
  return ChoosePair(rules, candidates, need, turn);
}

// The choice that ChoosePair must make: compares the costs of all pairs.
inline std::optional<size_t> ChooseOfAll(const PlacementRules& rules, const Candidates& candidates,
                                         const PlacementNeed& need, uint64_t turn) {
  std::vector<PairView> pairs;
  for (size_t i = 0; i < candidates.pairs.size(); ++i) pairs.push_back(candidates.View(i));
  const bool other_than_local =
      std::ranges::any_of(pairs, [&](const PairView& pair) { return !pair.local && IsPossible(pair, need); });
  std::vector<std::tuple<double, uint32_t, int64_t, size_t>> ranks;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const PairView& pair = pairs[i];
    const bool too_long = TokensToCompute(pair.prefill, need) > rules.max_local_prefill_tokens;
    if (!IsPossible(pair, need) || (pair.local && too_long && other_than_local)) continue;
    if (rules.policy == PlacementPolicy::kRoundRobin) {
      ranks.emplace_back(0, 0, 0, i);
    } else {
      const double cost = CostOf(pair, need, FastestOf(candidates));
      ranks.emplace_back(cost, pair.decode.running_sequences, -int64_t{pair.decode.cached_tokens}, i);
    }
  }
  std::ranges::sort(ranks);
  const auto is_best = [&](const auto& rank) {
    const auto& [cost, running, cached, i] = rank;
    return std::tie(cost, running, cached) ==
           std::tie(std::get<0>(ranks[0]), std::get<1>(ranks[0]), std::get<2>(ranks[0]));
  };
  const auto equals = static_cast<uint64_t>(std::ranges::count_if(ranks, is_best));
  if (equals == 0) return std::nullopt;
  return std::get<3>(ranks[turn % equals]);
}

}  // namespace baton::router
