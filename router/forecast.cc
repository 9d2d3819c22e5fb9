// SPDX-License-Identifier: Apache-2.0
#include "router/forecast.h"

#include <algorithm>
#include <cmath>

namespace baton::router {
namespace {

// The wait for a batch slot, and for pages, at a worker that has not measured how long its sequences run. The wait must
// outweigh a longer queue elsewhere, but not an endless one.
constexpr double kAssumedSecondsBetweenEnds = 5;

// Reserve and Commit travel between the workers: of no weight but against a prompt that is mostly cached, which is
// soonest computed where it is decoded. Real differences between paths are smaller than the noise.
constexpr double kHandoffSeconds = 0.002;

// The price of a missed objective. More than any queue in which the objective could still be met.
constexpr double kMissSeconds = 5;
// How uncertain the estimates are, as a share of the objective: half of the requests whose estimate is the objective
// miss the objective.
constexpr double kTtftSpread = 0.2;
constexpr double kTpotSpread = 0.05;

// A request is served if these odds of missing the objective for its first token, or fewer, remain.
constexpr double kMostLate = 0.3;
// A request is served if it adds at least this much to the expected number of requests within their objectives.
constexpr double kLeastGain = 0.5;
// A batch request, which has no objective to meet, may make this many others miss theirs.
constexpr double kMostHarm = 0.1;
// A batch request that has waited this long is served like an interactive one: nobody starves.
constexpr double kBatchPatienceSeconds = 60;

// A pause in a stream is worse than the same wait before the first token.
constexpr double kDelayWeight = 3;

// The share of an objective that a worker's steps take (worker/schedule.cc), and the least share of a worker's time
// that prompts get beside sequences with an objective.
constexpr double kUsableShare = 0.9;
constexpr double kLeastPromptShare = 0.02;

constexpr double kLeastRetrySeconds = 0.05;

double ComputeSeconds(uint64_t tokens, const WorkerView& prefill, const AssumedSpeed& assumed) {
  const double measured = prefill.prefill_tokens_per_second;
  return static_cast<double>(tokens) / (measured > 0 ? measured : assumed.prefill_tokens_per_second);
}

// The KV of one layer travels while the next layer is computed: only what outlasts the computation counts.
double ExposedSeconds(const PromptForecast& prompt, const DecodeForecast& decoding, const PathView& path,
                      const AssumedSpeed& assumed) {
  const double speed = path.bytes_per_second > 0 ? path.bytes_per_second : assumed.path_bytes_per_second;
  const uint64_t bytes = uint64_t{decoding.tokens_lacked} * prompt.kv_token_bytes;
  const double transfer = speed > 0 ? static_cast<double>(bytes) / speed : 0;
  return std::max(0.0, transfer - prompt.compute);
}

// The mean time between two ends of sequences.
double SecondsBetweenEnds(const WorkerView& decode) {
  if (decode.sequence_seconds <= 0) return kAssumedSecondsBetweenEnds;
  return decode.sequence_seconds / std::max(std::min(decode.running_sequences, decode.max_sequences), 1u);
}

// The wait for a batch slot and pages.
double CapacitySeconds(const WorkerView& decode, const PlacementNeed& need) {
  double seconds = 0;
  if (decode.running_sequences >= decode.max_sequences) {
    seconds += SecondsBetweenEnds(decode) * (decode.running_sequences - decode.max_sequences + 1);
  }
  if (decode.pages_free < PagesToStart(decode, need.prompt_tokens)) seconds += SecondsBetweenEnds(decode);
  return seconds;
}

// In proportion to the sequences, so that no small difference between two steps draws all requests to one worker.
double StepSeconds(const WorkerView& decode, const AssumedSpeed& assumed) {
  const double fullness = static_cast<double>(decode.running_sequences) / std::max(decode.max_sequences, 1u);
  return (decode.step_seconds > 0 ? decode.step_seconds : assumed.step_seconds) * fullness;
}

// The odds that a time with this estimate misses the objective.
double OddsOfMiss(double seconds, double objective, double spread) {
  return objective > 0 ? 1 / (1 + std::exp((1 - seconds / objective) / spread)) : 0;
}

// The longest estimate that misses the objective with these odds.
double LongestWithOdds(double odds, double objective, double spread) {
  return objective * (1 + spread * std::log(odds / (1 - odds)));
}

StepWork RunningWork(const WorkerView& worker) {
  StepWork work;
  work.decode_rows = worker.running_sequences;
  work.attended = static_cast<double>(worker.running_tokens + worker.running_sequences);
  return work;
}

// Returns the delay of all sequences that decode where `tokens` of a prompt are computed, together.
double DelayOfOthers(const WorkerView& worker, uint64_t tokens, const AssumedSpeed& assumed) {
  // Chunks leave the sequences their time, if there is any to leave.
  if (worker.tpot_slo > 0 && worker.cost.known() && PromptShare(worker) > kLeastPromptShare) return 0;
  const double each = worker.cost.prompt_token > 0 ? worker.cost.prompt_token * static_cast<double>(tokens)
                                                   : ComputeSeconds(tokens, worker, assumed);
  return kDelayWeight * worker.decoding_sequences * each;
}

void ForecastTpot(const WorkerView& decode, const PlacementNeed& need, DecodeForecast& forecast) {
  if (!decode.cost.known()) return;
  StepWork work = RunningWork(decode);
  const double before = decode.cost.Seconds(work);
  work.AddDecode(static_cast<int>(need.prompt_tokens));
  const double after = decode.cost.Seconds(work);
  forecast.misses_tpot = OddsOfMiss(after, need.tpot_slo, kTpotSpread);
  forecast.others_missing = decode.objectives * (OddsOfMiss(after, decode.tpot_slo, kTpotSpread) -
                                                 OddsOfMiss(before, decode.tpot_slo, kTpotSpread));
}

// Returns the odds that the request would miss the time per token alone at the decode worker.
double HopelessTpot(const WorkerView& decode, const PlacementNeed& need) {
  if (!decode.cost.known()) return 0;
  StepWork alone;
  alone.AddDecode(static_cast<int>(need.prompt_tokens));
  return OddsOfMiss(decode.cost.Seconds(alone), need.tpot_slo, kTpotSpread);
}

uint64_t TokensBefore(const WorkerView& prefill, const PlacementNeed& need) {
  if (need.is_batch) return prefill.waiting_tokens;
  const uint64_t interactive = prefill.waiting_tokens - std::min(prefill.waiting_tokens, prefill.waiting_batch_tokens);
  if (prefill.other_tenants.empty()) return interactive;
  const uint64_t turn = prefill.tenant_tokens + TokensToCompute(prefill, need);
  uint64_t before = prefill.tenant_tokens;
  for (const uint64_t tokens : prefill.other_tenants) before += std::min(tokens, turn);
  return std::min(before, interactive);
}

}  // namespace

uint32_t TokensToCompute(const WorkerView& prefill, const PlacementNeed& need) {
  if (need.prompt_tokens == 0) return 0;
  return need.prompt_tokens - std::min(prefill.cached_tokens, need.prompt_tokens - 1);
}

double PromptShare(const WorkerView& worker) {
  if (worker.tpot_slo <= 0 || worker.running_sequences == 0 || !worker.cost.known()) return 1;
  const double step = kUsableShare * worker.tpot_slo;
  return std::clamp(1 - worker.cost.Seconds(RunningWork(worker)) / step, kLeastPromptShare, 1.0);
}

uint32_t PagesToStart(const WorkerView& decode, uint32_t prompt_tokens) {
  return prompt_tokens / decode.page_tokens + (prompt_tokens % decode.page_tokens > 0 ? 1 : 0) + 1;
}

PromptForecast ForecastOfPrompt(const WorkerView& prefill, bool local, const PlacementNeed& need,
                                const AssumedSpeed& assumed) {
  const uint64_t tokens = TokensToCompute(prefill, need);
  const double share = local ? PromptShare(prefill) : 1;
  const double own = ComputeSeconds(tokens, prefill, assumed);
  const double computing = (ComputeSeconds(TokensBefore(prefill, need), prefill, assumed) + own) / share;
  const double messages = local ? 0 : kHandoffSeconds;
  PromptForecast forecast;
  forecast.alone = own + messages;
  forecast.compute = own / share;
  forecast.done = computing + messages;
  if (prefill.prefill_tokens_per_second <= 0 && !assumed.is_measured) forecast.guessed = computing;
  if (local) forecast.delay = DelayOfOthers(prefill, tokens, assumed);
  forecast.kv_token_bytes = prefill.kv_token_bytes;
  return forecast;
}

DecodeForecast ForecastOfDecoding(const WorkerView& decode, const PlacementNeed& need, const AssumedSpeed& assumed) {
  DecodeForecast forecast;
  forecast.room = CapacitySeconds(decode, need);
  if (decode.sequence_seconds <= 0) forecast.guessed = forecast.room;
  forecast.step = StepSeconds(decode, assumed);
  forecast.tokens_lacked = need.prompt_tokens - std::min(need.prompt_tokens, decode.cached_tokens);
  ForecastTpot(decode, need, forecast);
  return forecast;
}

Forecast ForecastOf(const PromptForecast& prompt, const DecodeForecast& decoding, const PathView* path,
                    const PlacementNeed& need, const AssumedSpeed& assumed) {
  Forecast forecast;
  forecast.first_token = prompt.done + decoding.room;
  forecast.alone = prompt.alone;
  forecast.guessed = prompt.guessed + decoding.guessed;
  forecast.decoding = forecast.first_token + decoding.step;
  if (path != nullptr) forecast.decoding += ExposedSeconds(prompt, decoding, *path, assumed);
  forecast.delay = prompt.delay;
  forecast.misses_ttft = OddsOfMiss(need.waited + forecast.first_token, need.ttft_slo, kTtftSpread);
  forecast.misses_tpot = decoding.misses_tpot;
  forecast.others_missing = decoding.others_missing;
  return forecast;
}

Forecast ForecastOf(const PairView& pair, const PlacementNeed& need, const AssumedSpeed& assumed) {
  return ForecastOf(ForecastOfPrompt(pair.prefill, pair.local, need, assumed),
                    ForecastOfDecoding(pair.decode, need, assumed), pair.local ? nullptr : &pair.path, need, assumed);
}

double CostOf(const Forecast& forecast) {
  const double misses = forecast.misses_ttft + forecast.misses_tpot + forecast.others_missing;
  return forecast.decoding + forecast.delay + kMissSeconds * misses;
}

double CostOf(const DecodeForecast& decoding) {
  return decoding.room + decoding.step + kMissSeconds * (decoding.misses_tpot + decoding.others_missing);
}

double LeastCostOf(const PromptForecast& prompt, const PlacementNeed& need) {
  const double misses = OddsOfMiss(need.waited + prompt.done, need.ttft_slo, kTtftSpread);
  return prompt.done + prompt.delay + kMissSeconds * misses;
}

Judgement Judge(const PairView& pair, const PlacementNeed& need, const AssumedSpeed& assumed) {
  const Forecast forecast = ForecastOf(pair, need, assumed);
  const auto after = [](Verdict verdict, double seconds) {
    return Judgement{verdict, std::max(seconds, kLeastRetrySeconds)};
  };
  // A guess refuses nobody: without a request, no worker would ever measure anything.
  const double first_token = forecast.first_token - forecast.guessed;
  if (need.time_left > 0 && first_token > need.time_left) return after(Verdict::kLate, first_token - need.time_left);
  if (need.is_batch) {
    if (need.waited >= kBatchPatienceSeconds || forecast.others_missing <= kMostHarm) return {};
    return after(Verdict::kNoRoom, SecondsUntilRoom(pair, assumed));
  }
  if (need.ttft_slo > 0) {
    const double longest = LongestWithOdds(kMostLate, need.ttft_slo, kTtftSpread);
    if (forecast.guessed <= 0 && forecast.alone > need.ttft_slo) return {Verdict::kHopeless};
    // A prompt that takes nearly all of the time is served if nothing waits before.
    const double wait = need.waited + first_token - forecast.alone;
    if (need.waited + first_token > longest && wait > need.ttft_slo - longest) {
      return after(Verdict::kLate, first_token - longest);
    }
  }
  const double gain = 1 - (forecast.misses_tpot - HopelessTpot(pair.decode, need)) - forecast.others_missing;
  if (gain < kLeastGain) {
    return after(Verdict::kNoRoom, SecondsUntilRoom(pair, assumed));
  }
  return {};
}

double SecondsUntilRoom(const PairView& pair, const AssumedSpeed& assumed) {
  const WorkerView& prefill = pair.prefill;
  const double prompt =
      ComputeSeconds(prefill.waiting_tokens, prefill, assumed) / std::max(prefill.waiting_requests, 1u);
  return std::max({kLeastRetrySeconds, prompt, SecondsBetweenEnds(pair.decode)});
}

}  // namespace baton::router
