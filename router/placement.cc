// SPDX-License-Identifier: Apache-2.0
#include "router/placement.h"

#include <algorithm>
#include <tuple>

namespace baton::router {
namespace {

// Until any worker has measured its speed. Only its order of magnitude matters: it weighs waiting tokens.
constexpr double kAssumedPrefillTokensPerSecond = 1000;

// A worker that has not measured its speed is as fast as the fastest: so it soon gets what it can measure.
double AssumedSpeed(std::span<const PairView> pairs) {
  double fastest = 0;
  for (const PairView& pair : pairs) fastest = std::max(fastest, pair.prefill.prefill_tokens_per_second);
  return fastest > 0 ? fastest : kAssumedPrefillTokensPerSecond;
}

// A decode worker without room makes the request wait until another one ends there: seconds, not milliseconds. It must
// outweigh a longer queue elsewhere but not an endless one.
constexpr double kNoBatchSlotSeconds = 5;
constexpr double kNoPagesSeconds = 5;

// Reserve, Granted and Commit travel between the workers, and the last pages: of no weight but against a prompt that is
// mostly cached, which is soonest computed where it is decoded.
constexpr double kHandoffSeconds = 0.002;

uint64_t PagesFor(uint64_t tokens, uint32_t page_tokens) { return (tokens + page_tokens - 1) / page_tokens; }

// A grant covers the prompt and one page to grow into.
uint64_t PagesToStart(const WorkerView& decode, uint32_t prompt_tokens) {
  return PagesFor(prompt_tokens, decode.page_tokens) + 1;
}

bool IsAvoided(const PairView& pair, std::span<const WorkerKey> avoid) {
  return std::any_of(avoid.begin(), avoid.end(),
                     [&](const WorkerKey& key) { return key == pair.prefill.key || key == pair.decode.key; });
}

}  // namespace

uint32_t LargestSequence(const PairView& pair) {
  // A grant is for a prompt's pages and one more; recovery prefills the output so far too. So that the last token can
  // be recovered, a sequence never gets the decode worker's last page, and all of it fits the prefill worker.
  const uint64_t decode_pages = pair.decode.pages_total > 0 ? pair.decode.pages_total - 1 : 0;
  const uint64_t pool_tokens =
      std::min(pair.prefill.pages_total * pair.prefill.page_tokens, decode_pages * pair.decode.page_tokens);
  const uint64_t context = std::min(pair.prefill.max_context_tokens, pair.decode.max_context_tokens);
  return static_cast<uint32_t>(std::min(pool_tokens, context));
}

bool Fits(const PairView& pair, const PlacementNeed& need) { return need.total_tokens <= LargestSequence(pair); }

uint32_t TokensToCompute(const WorkerView& prefill, const PlacementNeed& need) {
  if (need.prompt_tokens == 0) return 0;
  return need.prompt_tokens - std::min(prefill.cached_tokens, need.prompt_tokens - 1);
}

namespace {

// A penalty for each thing that the decode worker lacks at the moment.
double DecodePenaltySeconds(const WorkerView& decode, const PlacementNeed& need) {
  double seconds = 0;
  if (decode.running_sequences >= decode.max_sequences) seconds += kNoBatchSlotSeconds;
  if (decode.pages_free < PagesToStart(decode, need.prompt_tokens)) seconds += kNoPagesSeconds;
  return seconds;
}

}  // namespace

double EstimateTtftSeconds(const PairView& pair, const PlacementNeed& need, double assumed_speed) {
  const double measured = pair.prefill.prefill_tokens_per_second;
  const double speed = measured > 0 ? measured : assumed_speed;
  double seconds = (static_cast<double>(pair.prefill.waiting_tokens) + TokensToCompute(pair.prefill, need)) / speed;
  if (!pair.local) seconds += kHandoffSeconds;
  return seconds + DecodePenaltySeconds(pair.decode, need);
}

std::optional<size_t> ChoosePair(const PlacementRules& rules, std::span<const PairView> pairs,
                                 const PlacementNeed& need, std::span<const WorkerKey> avoid, uint64_t turn) {
  const auto is_possible = [&](const PairView& pair) { return Fits(pair, need) && !IsAvoided(pair, avoid); };
  const bool other_than_local =
      std::any_of(pairs.begin(), pairs.end(), [&](const PairView& pair) { return !pair.local && is_possible(pair); });
  const double assumed_speed = AssumedSpeed(pairs);
  using Rank = std::tuple<double, uint32_t, int64_t>;
  std::optional<Rank> best;
  std::vector<size_t> equals;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const PairView& pair = pairs[i];
    if (!is_possible(pair)) continue;
    const bool too_long = TokensToCompute(pair.prefill, need) > rules.max_local_prefill_tokens;
    if (!need.migrates && pair.local && too_long && other_than_local) continue;
    Rank rank{};
    if (rules.policy != PlacementPolicy::kRoundRobin) {
      const double seconds =
          need.migrates ? DecodePenaltySeconds(pair.decode, need) : EstimateTtftSeconds(pair, need, assumed_speed);
      rank = {seconds, pair.decode.running_sequences, -int64_t{pair.decode.cached_tokens}};
    }
    if (!best || rank < *best) {
      best = rank;
      equals.clear();
    }
    if (rank == *best) equals.push_back(i);
  }
  if (equals.empty()) return std::nullopt;
  std::sort(equals.begin(), equals.end(), [&](size_t a, size_t b) { return pairs[a].pair < pairs[b].pair; });
  return equals[turn % equals.size()];
}

}  // namespace baton::router
