// SPDX-License-Identifier: Apache-2.0
#include "worker/schedule.h"

#include <algorithm>

namespace baton {

std::vector<Share> PlanStep(std::vector<Candidate> candidates, const ScheduleLimits& limits) {
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    const bool a_decodes = a.pending_tokens == 1;
    const bool b_decodes = b.pending_tokens == 1;
    return a_decodes != b_decodes ? a_decodes : a.age < b.age;
  });
  std::vector<Share> shares;
  int budget = limits.token_budget;
  for (const Candidate& candidate : candidates) {
    if (budget == 0 || static_cast<int>(shares.size()) == limits.max_sequences) break;
    const int tokens = std::min({candidate.pending_tokens, limits.chunk_tokens, budget});
    shares.push_back({candidate.age.key, tokens});
    budget -= tokens;
  }
  return shares;
}

std::optional<AttemptKey> PickVictim(std::span<const Age> running) {
  if (running.size() < 2) return std::nullopt;
  return running.back().key;
}

}  // namespace baton
