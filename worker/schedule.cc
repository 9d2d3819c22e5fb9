// SPDX-License-Identifier: Apache-2.0
#include "worker/schedule.h"

#include <algorithm>
#include <tuple>

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

// The order of prompts: the least goes first.
auto TurnOf(const Candidate& prompt, const std::vector<double>& tenant_tokens) {
  const double got = prompt.tenant < tenant_tokens.size() ? tenant_tokens[prompt.tenant] : 0;
  return std::make_tuple(prompt.can_wait, got, prompt.age);
}

}  // namespace

bool MayStartPrompts(const ScheduleLimits& limits, const BatchState& state) {
  if (limits.batching == Batching::kContinuous) return true;
  if (state.in_progress > 0) return false;
  return limits.batching == Batching::kStatic || state.waiting >= limits.max_sequences ||
         state.oldest_wait >= limits.batch_window;
}

std::vector<Share> PlanStep(std::vector<Candidate> candidates, const ScheduleLimits& limits, const StepTimes& times) {
  const auto prompts =
      std::partition(candidates.begin(), candidates.end(), [](const Candidate& c) { return c.pending_tokens == 1; });
  std::sort(candidates.begin(), prompts, [](const Candidate& a, const Candidate& b) { return a.age < b.age; });
  const double seconds = TimeLimit(candidates);
  std::vector<Share> shares;
  int budget = limits.token_budget;
  StepWork work;
  const auto has_room = [&] { return budget > 0 && static_cast<int>(shares.size()) < limits.max_sequences; };
  for (auto decoding = candidates.begin(); decoding != prompts && has_room(); ++decoding) {
    work.AddDecode(decoding->position);
    shares.push_back({decoding->age.key, 1});
    --budget;
  }
  std::vector<double> got = times.tenant_tokens;
  bool impatient = times.steps_without_prompt >= kPatientSteps;
  for (auto next = prompts; next != candidates.end() && has_room(); ++next) {
    std::iter_swap(next, std::min_element(next, candidates.end(), [&](const Candidate& a, const Candidate& b) {
                     return TurnOf(a, got) < TurnOf(b, got);
                   }));
    int tokens = std::min({next->pending_tokens, limits.chunk_tokens, budget});
    const int least = std::min(tokens, kLeastChunk);
    tokens = std::min(tokens, times.cost.PromptTokensWithin(seconds, work, next->position));
    if (tokens < least && !impatient) break;
    impatient = false;
    tokens = std::max(tokens, least);
    work.AddPrompt(next->position, tokens);
    if (next->tenant < got.size()) got[next->tenant] += tokens;
    shares.push_back({next->age.key, tokens});
    budget -= tokens;
  }
  return shares;
}

std::optional<AttemptKey> PickVictim(std::span<const Age> running) {
  if (running.size() < 2) return std::nullopt;
  return running.back().key;
}

}  // namespace baton
