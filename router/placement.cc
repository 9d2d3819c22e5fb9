// SPDX-License-Identifier: Apache-2.0
#include "router/placement.h"

#include <algorithm>
#include <compare>
#include <limits>
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

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kAnyCost = std::numeric_limits<double>::max();  // but not an infinite one

// The least cost of pairs is a sum in another order than their cost.
constexpr double kRounding = 1 - 1e-9;

// The cost of a request at single workers, computed once for all pairs of a worker.
struct PromptCost {
  double least = kInfinity;  // as LeastCostOf; infinite where the request must not or cannot go
  PromptForecast forecast = {};
};
struct DecodeCost {
  double least = kInfinity;  // as CostOf; infinite as above
  DecodeForecast forecast = {};
};

PromptCost CostOfPrompt(const WorkerView& prefill, bool local, const PlacementNeed& need, const AssumedSpeed& assumed) {
  if (prefill.avoided || need.total_tokens > LargestPrompt(prefill)) return {};
  const PromptForecast forecast = ForecastOfPrompt(prefill, local, need, assumed);
  return {LeastCostOf(forecast, need), forecast};
}

DecodeCost CostOfDecoding(const WorkerView& decode, const PlacementNeed& need, const AssumedSpeed& assumed) {
  if (decode.avoided || need.total_tokens > LargestSequence(decode)) return {};
  const DecodeForecast forecast = ForecastOfDecoding(decode, need, assumed);
  return {CostOf(forecast), forecast};
}

// Sorts by the least cost and drops all but the first kMostCompared.
template <typename Cost>
void KeepLeast(std::vector<std::pair<Cost, uint32_t>>& costs) {
  const size_t kept = std::min(costs.size(), kMostCompared);
  std::ranges::partial_sort(costs, costs.begin() + static_cast<ptrdiff_t>(kept), {},
                            [](const auto& cost) { return cost.first.least; });
  costs.resize(kept);
}

// The indices whose rank is the least.
class Best {
 public:
  // No index with a greater cost counts.
  double most() const { return equals_.empty() ? kAnyCost : std::get<0>(rank_); }
  void Offer(size_t index, const Rank& rank) {
    const auto order = equals_.empty() ? std::partial_ordering::less : rank <=> rank_;
    if (order > 0) return;
    if (order < 0) {
      equals_.clear();
      rank_ = rank;
    }
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

void Candidates::NoteWorkersOfPairs() {
  std::vector<bool> is_prefill(workers.size());
  std::vector<bool> is_decode(workers.size());
  for (const ReadyPair& pair : pairs) is_prefill[pair.prefill] = is_decode[pair.decode] = true;
  prefills.clear();
  decodes.clear();
  for (uint32_t worker = 0; worker < workers.size(); ++worker) {
    if (is_prefill[worker]) prefills.push_back(worker);
    if (is_decode[worker]) decodes.push_back(worker);
  }
}

PairView Candidates::View(size_t pair) const {
  const ReadyPair& ready = pairs[pair];
  return {ready.id, ready.local(), workers[ready.prefill], workers[ready.decode], ready.path};
}

AssumedSpeed FastestOf(const Candidates& candidates) {
  AssumedSpeed fastest;
  for (const uint32_t worker : candidates.prefills) {
    fastest.prefill_tokens_per_second =
        std::max(fastest.prefill_tokens_per_second, candidates.workers[worker].prefill_tokens_per_second);
  }
  for (const uint32_t worker : candidates.decodes) NoteStep(fastest, candidates.workers[worker]);
  for (const ReadyPair& pair : candidates.pairs) {
    fastest.path_bytes_per_second = std::max(fastest.path_bytes_per_second, pair.path.bytes_per_second);
  }
  fastest.is_measured = fastest.prefill_tokens_per_second > 0;
  if (!fastest.is_measured) fastest.prefill_tokens_per_second = kAssumedPrefillTokensPerSecond;
  return fastest;
}

std::optional<size_t> ChoosePair(const PlacementRules& rules, const Candidates& candidates, const PlacementNeed& need,
                                 uint64_t turn) {
  const std::vector<WorkerView>& workers = candidates.workers;
  const AssumedSpeed assumed = FastestOf(candidates);
  std::vector<PromptCost> prompts(workers.size());
  std::vector<DecodeCost> decodings(workers.size());
  for (const uint32_t i : candidates.prefills) prompts[i] = CostOfPrompt(workers[i], false, need, assumed);
  for (const uint32_t i : candidates.decodes) decodings[i] = CostOfDecoding(workers[i], need, assumed);
  const bool other_than_local = std::ranges::any_of(candidates.pairs, [&](const ReadyPair& pair) {
    return !pair.local() && prompts[pair.prefill].least + decodings[pair.decode].least < kInfinity;
  });
  const bool in_turn = rules.policy == PlacementPolicy::kRoundRobin;
  Best best;
  PromptCost local;
  for (size_t i = 0; i < candidates.pairs.size(); ++i) {
    const ReadyPair& pair = candidates.pairs[i];
    const PromptCost* prompt = &prompts[pair.prefill];
    if (pair.local()) {
      const bool too_long = TokensToCompute(workers[pair.prefill], need) > rules.max_local_prefill_tokens;
      if (too_long && other_than_local) continue;
      local = CostOfPrompt(workers[pair.prefill], true, need, assumed);
      prompt = &local;
    }
    const DecodeCost& decoding = decodings[pair.decode];
    const double least = prompt->least + decoding.least;
    if (least * kRounding > (in_turn ? kAnyCost : best.most())) continue;
    const PathView* path = pair.local() ? nullptr : &pair.path;
    const auto cost = [&] { return CostOf(ForecastOf(prompt->forecast, decoding.forecast, path, need, assumed)); };
    best.Offer(i, in_turn ? Rank{} : RankOf(cost(), workers[pair.decode]));
  }
  return best.Take(turn);
}

std::optional<PairToProve> ChoosePairToProve(const Candidates& candidates, const Provable& provable,
                                             const PlacementNeed& need, double most,
                                             absl::FunctionRef<bool(uint32_t prefill, uint32_t decode)> is_held) {
  const AssumedSpeed assumed = FastestOf(candidates);
  std::vector<std::pair<PromptCost, uint32_t>> prompts;
  std::vector<std::pair<DecodeCost, uint32_t>> decodings;
  prompts.reserve(provable.prefills.size());
  decodings.reserve(provable.decodes.size());
  for (const uint32_t i : provable.prefills) {
    prompts.emplace_back(CostOfPrompt(candidates.workers[i], false, need, assumed), i);
  }
  for (const uint32_t i : provable.decodes) {
    decodings.emplace_back(CostOfDecoding(candidates.workers[i], need, assumed), i);
  }
  KeepLeast(prompts);
  KeepLeast(decodings);
  std::optional<PairToProve> chosen;
  for (const auto& [decoding, decode] : decodings) {
    for (const auto& [prompt, prefill] : prompts) {
      if ((prompt.least + decoding.least) * kRounding >= most) break;  // the rest costs more
      const PathView path;
      const double cost = CostOf(ForecastOf(prompt.forecast, decoding.forecast, &path, need, assumed));
      if (cost >= most || is_held(prefill, decode)) continue;
      most = cost;
      chosen = {prefill, decode, cost};
    }
  }
  return chosen;
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
