// SPDX-License-Identifier: Apache-2.0
#include "worker/schedule.h"

#include <algorithm>

namespace baton {

namespace {

// The share of an objective that a step may take: the cost is an estimate, and tokens have a way to the client.
constexpr double kUsableShare = 0.9;

// The time that a step of `candidates` may take, in seconds.
double TimeLimit(const std::vector<Candidate>& candidates) {
  absl::Duration least = absl::InfiniteDuration();
  for (const Candidate& candidate : candidates) {
    const bool has_objective = candidate.pending_tokens == 1 && candidate.tpot_slo > absl::ZeroDuration();
    if (has_objective) least = std::min(least, candidate.tpot_slo);
  }
  return kUsableShare * absl::ToDoubleSeconds(least);
}

}  // namespace

std::vector<Share> PlanStep(std::vector<Candidate> candidates, const ScheduleLimits& limits, const StepTimes& times) {
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    const bool a_decodes = a.pending_tokens == 1;
    const bool b_decodes = b.pending_tokens == 1;
    return a_decodes != b_decodes ? a_decodes : a.age < b.age;
  });
  std::vector<Share> shares;
  int budget = limits.token_budget;
  const double seconds = TimeLimit(candidates);
  StepWork work;
  bool impatient = times.steps_without_prompt >= kPatientSteps;
  for (const Candidate& candidate : candidates) {
    if (budget == 0 || static_cast<int>(shares.size()) == limits.max_sequences) break;
    int tokens = std::min({candidate.pending_tokens, limits.chunk_tokens, budget});
    if (candidate.pending_tokens == 1) {
      work.AddDecode(candidate.position);
    } else {
      const int least = std::min(tokens, kLeastChunk);
      tokens = std::min(tokens, times.cost.PromptTokensWithin(seconds, work, candidate.position));
      if (tokens < least && !impatient) break;
      impatient = false;
      tokens = std::max(tokens, least);
      work.AddPrompt(candidate.position, tokens);
    }
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
