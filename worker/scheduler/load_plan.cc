// SPDX-License-Identifier: Apache-2.0
#include "worker/scheduler/load_plan.h"

#include <algorithm>

namespace baton {
namespace {

constexpr double kHangsSeconds = 1;

}  // namespace

double SecondsToCompute(int position, int tokens, int chunk_tokens, const StepCost& cost) {
  if (tokens <= 0) return 0;
  StepWork work;
  work.AddPrompt(position, tokens);
  const int steps = (tokens + chunk_tokens - 1) / std::max(chunk_tokens, 1);
  return cost.Seconds(work) + cost.step * (steps - 1);
}

int PagesToLoad(const LoadQuestion& question, const TierSpeed& speed, const StepCost& cost) {
  if (speed.overdue_seconds > kHangsSeconds) return 0;
  const int rows = static_cast<int>(question.found.size()) / question.groups;
  if (!cost.known()) return rows * question.groups;
  const double all = SecondsToCompute(question.position, question.pending, question.chunk_tokens, cost);
  const double ahead = SecondsToCompute(0, question.tokens_ahead, question.chunk_tokens, cost);
  double load = speed.wait_seconds + speed.queued_seconds;
  double most_saved = 0;
  int best = 0;
  for (int row = 1; row <= rows; ++row) {
    for (int group = 0; group < question.groups; ++group) {
      load += speed.page_seconds[static_cast<size_t>(question.found[(row - 1) * question.groups + group])];
    }
    const int loaded = row * question.page_tokens;
    const double rest =
        SecondsToCompute(question.position + loaded, question.pending - loaded, question.chunk_tokens, cost);
    if (const double saved = all + ahead - (rest + std::max(load, ahead)); saved > 0 && saved >= most_saved) {
      most_saved = saved;
      best = row;
    }
  }
  return best * question.groups;
}

}  // namespace baton
