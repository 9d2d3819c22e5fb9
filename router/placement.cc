// SPDX-License-Identifier: Apache-2.0
#include "router/placement.h"

#include <algorithm>
#include <cmath>
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

// Reserve and Commit travel between the workers: of no weight but against a prompt that is mostly cached, which is
// soonest computed where it is decoded. Real differences between paths are smaller than the noise.
constexpr double kHandoffSeconds = 0.002;

// The price of a missed objective. More than any queue in which the objective could still be met.
constexpr double kMissSeconds = 5;
// How uncertain the estimates are, as a share of the objective: half of the requests whose estimate is the objective
// miss the objective.
constexpr double kTtftSpread = 0.2;
constexpr double kTpotSpread = 0.05;

// A pause in a stream is worse than the same wait before the first token.
constexpr double kDelayWeight = 3;

// The share of an objective that a worker's steps take (worker/schedule.cc), and the least share of a worker's time
// that prompts get beside sequences with an objective.
constexpr double kUsableShare = 0.9;
constexpr double kLeastPromptShare = 0.02;

// A handoff of fewer bytes says nothing of the path's bandwidth.
constexpr uint64_t kMeasurableBytes = 64 << 10;
// The weight of the latest handoff in a mean.
constexpr double kLatest = 0.25;

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
  return std::max(0.0, transfer - compute_seconds) + kHandoffSeconds;
}

// In proportion to the sequences, so that no small difference between two steps draws all requests to one worker.
double DecodeSeconds(const WorkerView& decode, const PlacementNeed& need, const AssumedSpeed& assumed) {
  const double fullness = static_cast<double>(decode.running_sequences) / std::max(decode.max_sequences, 1u);
  double seconds = (decode.step_seconds > 0 ? decode.step_seconds : assumed.step_seconds) * fullness;
  if (decode.running_sequences >= decode.max_sequences) seconds += kNoBatchSlotSeconds;
  if (decode.pages_free < PagesToStart(decode, need.prompt_tokens)) seconds += kNoPagesSeconds;
  return seconds;
}

// The odds that a time with this estimate misses the objective.
double OddsOfMiss(double seconds, double objective, double spread) {
  return objective > 0 ? 1 / (1 + std::exp((1 - seconds / objective) / spread)) : 0;
}

StepWork RunningWork(const WorkerView& worker) {
  StepWork work;
  work.decode_rows = worker.running_sequences;
  work.attended = static_cast<double>(worker.running_tokens + worker.running_sequences);
  return work;
}

// Returns the share of its time that a worker computes prompts beside the sequences that decode there.
double PromptShare(const WorkerView& worker, const PlacementNeed& need) {
  if (need.tpot_slo <= 0 || worker.running_sequences == 0 || !worker.cost.known()) return 1;
  const double step = kUsableShare * need.tpot_slo;
  return std::clamp(1 - worker.cost.Seconds(RunningWork(worker)) / step, kLeastPromptShare, 1.0);
}

// Returns the delay of all sequences that decode where `tokens` of a prompt are computed, together.
double DelayOfOthers(const WorkerView& worker, const PlacementNeed& need, uint64_t tokens,
                     const AssumedSpeed& assumed) {
  // Chunks leave the sequences their time, if there is any to leave.
  if (need.tpot_slo > 0 && worker.cost.known() && PromptShare(worker, need) > kLeastPromptShare) return 0;
  const double each = worker.cost.prompt_token > 0 ? worker.cost.prompt_token * static_cast<double>(tokens)
                                                   : ComputeSeconds(tokens, worker, assumed);
  return kDelayWeight * worker.running_sequences * each;
}

// Returns how many objectives for the time per token a further sequence makes miss, its own among them.
double MissedTpots(const WorkerView& decode, const PlacementNeed& need) {
  if (need.tpot_slo <= 0 || !decode.cost.known()) return 0;
  StepWork work = RunningWork(decode);
  const double before = OddsOfMiss(decode.cost.Seconds(work), need.tpot_slo, kTpotSpread);
  work.AddDecode(static_cast<int>(need.prompt_tokens));
  const double after = OddsOfMiss(decode.cost.Seconds(work), need.tpot_slo, kTpotSpread);
  return after + decode.running_sequences * (after - before);
}

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

uint32_t PagesToStart(const WorkerView& decode, uint32_t prompt_tokens) {
  return prompt_tokens / decode.page_tokens + (prompt_tokens % decode.page_tokens > 0 ? 1 : 0) + 1;
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
    NoteStep(fastest, pair.decode);
  }
  if (fastest.prefill_tokens_per_second <= 0) fastest.prefill_tokens_per_second = kAssumedPrefillTokensPerSecond;
  return fastest;
}

double CostOf(const PairView& pair, const PlacementNeed& need, const AssumedSpeed& assumed) {
  const uint64_t tokens = TokensToCompute(pair.prefill, need);
  const double share = pair.local ? PromptShare(pair.prefill, need) : 1;
  const double compute = ComputeSeconds(tokens, pair.prefill, assumed) / share;
  const double handoff = pair.local ? 0 : HandoffSeconds(pair, need, compute, assumed);
  const double estimate = ComputeSeconds(pair.prefill.waiting_tokens, pair.prefill, assumed) / share + compute +
                          handoff + DecodeSeconds(pair.decode, need, assumed);
  const double delay = pair.local ? DelayOfOthers(pair.prefill, need, tokens, assumed) : 0;
  const double misses = OddsOfMiss(estimate, need.ttft_slo, kTtftSpread) + MissedTpots(pair.decode, need);
  return estimate + delay + kMissSeconds * misses;
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
    const double cost = DecodeSeconds(decodes[i], need, assumed) + kMissSeconds * MissedTpots(decodes[i], need);
    best.Offer(i, in_turn ? Rank{} : RankOf(cost, decodes[i]));
  }
  return best.Take(turn);
}

}  // namespace baton::router
