// SPDX-License-Identifier: Apache-2.0
#include "router/placement.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace baton::router {
namespace {

// Until any worker has measured its speed. Only the order of magnitude matters: the speed weighs waiting tokens.
constexpr double kAssumedPrefillTokensPerSecond = 1000;

// A decode worker without room makes the request wait until another one ends there: seconds, not milliseconds. The
// penalty must outweigh a longer queue elsewhere, but not an endless one.
constexpr double kNoBatchSlotSeconds = 5;
constexpr double kNoPagesSeconds = 5;

// From Commit to Committed, until the path has measured it.
constexpr double kAssumedCommitSeconds = 0.002;

// A handoff of fewer bytes says nothing of the path's bandwidth.
constexpr uint64_t kMeasurableBytes = 64 << 10;
// How much of an earlier, better figure stays with each handoff.
constexpr double kFading = 0.95;

uint64_t PagesFor(uint64_t tokens, uint32_t page_tokens) { return (tokens + page_tokens - 1) / page_tokens; }

// A grant covers the prompt and one page to grow into.
uint64_t PagesToStart(const WorkerView& decode, uint32_t prompt_tokens) {
  return PagesFor(prompt_tokens, decode.page_tokens) + 1;
}

double ComputeSeconds(uint64_t tokens, const WorkerView& prefill, const AssumedSpeed& assumed) {
  const double measured = prefill.prefill_tokens_per_second;
  return static_cast<double>(tokens) / (measured > 0 ? measured : assumed.prefill_tokens_per_second);
}

// The KV of one layer travels while the next layer is computed: only what outlasts the computation counts.
double HandoffSeconds(const PairView& pair, const PlacementNeed& need, double compute_seconds,
                      const AssumedSpeed& assumed) {
  const double speed = pair.path.bytes_per_second > 0 ? pair.path.bytes_per_second : assumed.path_bytes_per_second;
  const uint64_t tokens = need.prompt_tokens - std::min(need.prompt_tokens, pair.decode.cached_tokens);
  const double transfer = speed > 0 ? static_cast<double>(tokens * pair.prefill.kv_token_bytes) / speed : 0;
  const double commit = pair.path.commit_seconds > 0 ? pair.path.commit_seconds : kAssumedCommitSeconds;
  return std::max(0.0, transfer - compute_seconds) + commit;
}

double DecodeSeconds(const WorkerView& decode, const PlacementNeed& need) {
  const double fullness = static_cast<double>(decode.running_sequences) / std::max(decode.max_sequences, 1u);
  double seconds = decode.step_seconds * (1 + fullness);
  if (decode.running_sequences >= decode.max_sequences) seconds += kNoBatchSlotSeconds;
  if (decode.pages_free < PagesToStart(decode, need.prompt_tokens)) seconds += kNoPagesSeconds;
  return seconds;
}

using Rank = std::tuple<double, uint32_t, int64_t>;

Rank RankOf(double seconds, const WorkerView& decode) {
  return {seconds, decode.running_sequences, -int64_t{decode.cached_tokens}};
}

// The indices whose rank is the least.
class Best {
 public:
  void Offer(size_t index, const Rank& rank) {
    if (!equals_.empty() && rank > rank_) return;
    if (equals_.empty() || rank < rank_) equals_.clear();
    rank_ = rank;
    equals_.push_back(index);
  }
  std::optional<size_t> Take(uint64_t turn) const {
    if (equals_.empty()) return std::nullopt;
    return equals_[turn % equals_.size()];
  }

 private:
  Rank rank_{};
  std::vector<size_t> equals_;
};

}  // namespace

void NoteHandoff(PathView& path, uint64_t bytes, double transfer_seconds, double commit_seconds) {
  if (commit_seconds > 0) {
    path.commit_seconds =
        path.commit_seconds > 0 ? std::min(path.commit_seconds / kFading, commit_seconds) : commit_seconds;
  }
  if (bytes < kMeasurableBytes || transfer_seconds <= 0) return;
  path.bytes_per_second = std::max(path.bytes_per_second * kFading, static_cast<double>(bytes) / transfer_seconds);
}

uint32_t LargestSequence(const WorkerView& decode) {
  // A grant is for a prompt's pages and one more; recovery prefills the output so far too. So that the last token can
  // be recovered, a sequence never gets the decode worker's last page.
  const uint64_t pages = decode.pages_total > 0 ? decode.pages_total - 1 : 0;
  return static_cast<uint32_t>(std::min<uint64_t>(pages * decode.page_tokens, decode.max_context_tokens));
}

uint32_t LargestSequence(const PairView& pair) {
  const uint64_t prefill_tokens =
      std::min<uint64_t>(pair.prefill.pages_total * pair.prefill.page_tokens, pair.prefill.max_context_tokens);
  return static_cast<uint32_t>(std::min<uint64_t>(prefill_tokens, LargestSequence(pair.decode)));
}

uint32_t TokensToCompute(const WorkerView& prefill, const PlacementNeed& need) {
  if (need.prompt_tokens == 0) return 0;
  return need.prompt_tokens - std::min(prefill.cached_tokens, need.prompt_tokens - 1);
}

AssumedSpeed FastestOf(std::span<const PairView> pairs) {
  AssumedSpeed fastest;
  for (const PairView& pair : pairs) {
    fastest.prefill_tokens_per_second =
        std::max(fastest.prefill_tokens_per_second, pair.prefill.prefill_tokens_per_second);
    fastest.path_bytes_per_second = std::max(fastest.path_bytes_per_second, pair.path.bytes_per_second);
  }
  if (fastest.prefill_tokens_per_second <= 0) fastest.prefill_tokens_per_second = kAssumedPrefillTokensPerSecond;
  return fastest;
}

double EstimateSeconds(const PairView& pair, const PlacementNeed& need, const AssumedSpeed& assumed) {
  const double compute = ComputeSeconds(TokensToCompute(pair.prefill, need), pair.prefill, assumed);
  const double handoff = pair.local ? 0 : HandoffSeconds(pair, need, compute, assumed);
  return ComputeSeconds(pair.prefill.waiting_tokens, pair.prefill, assumed) + compute + handoff +
         DecodeSeconds(pair.decode, need);
}

std::optional<size_t> ChoosePair(const PlacementRules& rules, std::span<const PairView> pairs,
                                 const PlacementNeed& need, uint64_t turn) {
  const auto is_possible = [&](const PairView& pair) {
    return need.total_tokens <= LargestSequence(pair) && !pair.prefill.avoided && !pair.decode.avoided;
  };
  const bool other_than_local =
      std::any_of(pairs.begin(), pairs.end(), [&](const PairView& pair) { return !pair.local && is_possible(pair); });
  const AssumedSpeed assumed = FastestOf(pairs);
  Best best;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const PairView& pair = pairs[i];
    if (!is_possible(pair)) continue;
    const bool too_long = TokensToCompute(pair.prefill, need) > rules.max_local_prefill_tokens;
    if (pair.local && too_long && other_than_local) continue;
    const bool in_turn = rules.policy == PlacementPolicy::kRoundRobin;
    best.Offer(i, in_turn ? Rank{} : RankOf(EstimateSeconds(pair, need, assumed), pair.decode));
  }
  return best.Take(turn);
}

std::optional<size_t> ChooseDecode(const PlacementRules& rules, std::span<const WorkerView> decodes,
                                   const PlacementNeed& need, uint64_t turn) {
  Best best;
  for (size_t i = 0; i < decodes.size(); ++i) {
    if (decodes[i].avoided || need.total_tokens > LargestSequence(decodes[i])) continue;
    const bool in_turn = rules.policy == PlacementPolicy::kRoundRobin;
    best.Offer(i, in_turn ? Rank{} : RankOf(DecodeSeconds(decodes[i], need), decodes[i]));
  }
  return best.Take(turn);
}

}  // namespace baton::router
