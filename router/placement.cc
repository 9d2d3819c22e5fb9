// SPDX-License-Identifier: Apache-2.0
#include "router/placement.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace baton::router {
namespace {

// Until any worker has measured its speed. Only the order of magnitude matters: the speed weighs waiting tokens, and
// refuses nobody (Judge).
constexpr double kAssumedPrefillTokensPerSecond = 1000;

// A handoff of fewer bytes says nothing of the path's bandwidth.
constexpr uint64_t kMeasurableBytes = 64 << 10;
// The weight of the latest handoff in a mean.
constexpr double kLatest = 0.25;

void NoteStep(AssumedSpeed& fastest, const WorkerView& decode) {
  const double step = decode.step_seconds;
  if (step > 0 && (fastest.step_seconds <= 0 || step < fastest.step_seconds)) fastest.step_seconds = step;
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

void NoteHandoff(PathView& path, uint64_t bytes, double transfer_seconds, double exposed_seconds) {
  if (bytes < kMeasurableBytes || transfer_seconds <= 0) return;
  const double speed = static_cast<double>(bytes) / transfer_seconds;
  double& mean = path.bytes_per_second;
  if (2 * exposed_seconds >= transfer_seconds) {
    mean = mean > 0 ? mean + kLatest * (speed - mean) : speed;
  } else if (mean > 0) {
    mean = std::max(mean, speed);
  }
}

uint32_t LargestSequence(const WorkerView& decode) {
  // A grant is for a prompt's pages and one more; recovery prefills the output so far too. So that the last token can
  // be recovered, a sequence never gets the decode worker's last page.
  const uint64_t pages = decode.pages_total > 0 ? decode.pages_total - 1 : 0;
  return static_cast<uint32_t>(std::min<uint64_t>(pages * decode.page_tokens, decode.max_context_tokens));
}

uint32_t LargestPrompt(const WorkerView& prefill) {
  return static_cast<uint32_t>(
      std::min<uint64_t>(prefill.pages_total * prefill.page_tokens, prefill.max_context_tokens));
}

uint32_t LargestSequence(const PairView& pair) {
  return std::min(LargestPrompt(pair.prefill), LargestSequence(pair.decode));
}

bool IsPossible(const PairView& pair, const PlacementNeed& need) {
  return need.total_tokens <= LargestSequence(pair) && !pair.prefill.avoided && !pair.decode.avoided;
}

AssumedSpeed FastestOf(std::span<const PairView> pairs) {
  AssumedSpeed fastest;
  for (const PairView& pair : pairs) {
    fastest.prefill_tokens_per_second =
        std::max(fastest.prefill_tokens_per_second, pair.prefill.prefill_tokens_per_second);
    fastest.path_bytes_per_second = std::max(fastest.path_bytes_per_second, pair.path.bytes_per_second);
    NoteStep(fastest, pair.decode);
  }
  fastest.is_measured = fastest.prefill_tokens_per_second > 0;
  if (!fastest.is_measured) fastest.prefill_tokens_per_second = kAssumedPrefillTokensPerSecond;
  return fastest;
}

std::optional<size_t> ChoosePair(const PlacementRules& rules, std::span<const PairView> pairs,
                                 const PlacementNeed& need, uint64_t turn) {
  const bool other_than_local = std::any_of(
      pairs.begin(), pairs.end(), [&](const PairView& pair) { return !pair.local && IsPossible(pair, need); });
  const AssumedSpeed assumed = FastestOf(pairs);
  Best best;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const PairView& pair = pairs[i];
    if (!IsPossible(pair, need)) continue;
    const bool too_long = TokensToCompute(pair.prefill, need) > rules.max_local_prefill_tokens;
    if (pair.local && too_long && other_than_local) continue;
    const bool in_turn = rules.policy == PlacementPolicy::kRoundRobin;
    best.Offer(i, in_turn ? Rank{} : RankOf(CostOf(pair, need, assumed), pair.decode));
  }
  return best.Take(turn);
}

std::optional<size_t> ChooseDecode(const PlacementRules& rules, std::span<const WorkerView> decodes,
                                   const PlacementNeed& need, uint64_t turn) {
  AssumedSpeed assumed;
  for (const WorkerView& decode : decodes) NoteStep(assumed, decode);
  Best best;
  for (size_t i = 0; i < decodes.size(); ++i) {
    if (decodes[i].avoided || need.total_tokens > LargestSequence(decodes[i])) continue;
    const bool in_turn = rules.policy == PlacementPolicy::kRoundRobin;
    const double cost = CostOf(ForecastOfDecoding(decodes[i], need, assumed));
    best.Offer(i, in_turn ? Rank{} : RankOf(cost, decodes[i]));
  }
  return best.Take(turn);
}

}  // namespace baton::router
