// SPDX-License-Identifier: Apache-2.0
#include "cli/load/workload.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "absl/strings/str_format.h"

namespace baton {
namespace {

// Draws uniformly from [0, 1), with the upper 53 bits.
double Uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

// Draws a gap with the mean 1.
double DrawGap(const Workload& workload, std::mt19937_64& random) {
  switch (workload.arrivals) {
    case ArrivalProcess::kPoisson: return -std::log1p(-Uniform(random));  // the gaps are exponential
    case ArrivalProcess::kGamma:
      return std::gamma_distribution<double>(workload.burstiness, 1 / workload.burstiness)(random);
    case ArrivalProcess::kConstant:
    case ArrivalProcess::kTrace: break;
  }
  return 1;
}

// Appends `count` random token ids, a function of the workload's seed and `number`.
void AddTokens(const Workload& workload, uint64_t number, int count, std::vector<int32_t>& ids) {
  std::seed_seq seed = {static_cast<uint32_t>(workload.seed), static_cast<uint32_t>(workload.seed >> 32),
                        static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32)};
  std::mt19937_64 random(seed);
  // Special tokens are at the ends of a vocabulary: keep away from both.
  const uint64_t low = std::min<uint64_t>(256, workload.vocab_size / 10);
  const uint64_t high = std::max<uint64_t>(workload.vocab_size * uint64_t{9} / 10, low + 1);
  ids.reserve(ids.size() + static_cast<size_t>(std::max(count, 0)));
  for (int i = 0; i < count; ++i) {
    ids.push_back(static_cast<int32_t>(low + static_cast<uint64_t>(Uniform(random) * static_cast<double>(high - low))));
  }
}

// Replaces the first tokens of a prompt by tokens that depend on the salt. All prompts of a run get the same tokens, so
// that common prefixes stay common.
void SaltPrompt(const Workload& workload, std::vector<int32_t>& prompt) {
  constexpr size_t kTokens = 4;
  std::vector<int32_t> salt;
  AddTokens(workload, std::hash<std::string>()(workload.cache_salt), kTokens, salt);
  std::copy_n(salt.begin(), std::min(kTokens, prompt.size()), prompt.begin());
}

}  // namespace

std::vector<absl::Duration> Arrivals(const Workload& workload) {
  std::vector<absl::Duration> arrivals;
  arrivals.reserve(workload.requests);
  if (workload.arrivals == ArrivalProcess::kTrace) {
    for (const TraceRequest& request : workload.trace->requests) arrivals.push_back(request.arrival);
    return arrivals;
  }
  std::mt19937_64 random(workload.seed);
  double seconds = 0;
  for (int i = 0; i < workload.requests; ++i) {
    seconds += DrawGap(workload, random) / workload.rate;
    arrivals.push_back(absl::Seconds(seconds));
  }
  return arrivals;
}

LoadRequest MakeRequest(const Workload& workload, int index) {
  LoadRequest request = {.model = workload.model,
                         .cache_salt = workload.cache_salt,
                         .prompt = {},
                         .output_tokens = workload.output_tokens};
  std::vector<int32_t>& ids = request.prompt;
  if (workload.trace.has_value()) {
    const TraceRequest& recorded = workload.trace->requests[index];
    request.output_tokens = recorded.output_tokens;
    for (const uint64_t block : recorded.blocks) {
      const int left = recorded.input_tokens - static_cast<int>(ids.size());
      AddTokens(workload, block, std::min(left, workload.trace->block_tokens), ids);
    }
    if (recorded.blocks.empty()) AddTokens(workload, static_cast<uint64_t>(index), recorded.input_tokens, ids);
  } else {
    AddTokens(workload, static_cast<uint64_t>(index), workload.prompt_tokens, ids);
  }
  if (workload.salting == Salting::kPrompt && !workload.cache_salt.empty()) SaltPrompt(workload, ids);
  return request;
}

LoadRequest NextTurn(const Workload& workload, int index, int turn, const std::vector<int32_t>& earlier_prompt,
                     const std::vector<int32_t>& answer) {
  LoadRequest request = {.model = workload.model,
                         .cache_salt = workload.cache_salt,
                         .prompt = earlier_prompt,
                         .output_tokens = workload.output_tokens};
  request.prompt.insert(request.prompt.end(), answer.begin(), answer.end());
  // The numbers of first turns are below 2^32.
  const uint64_t number = (static_cast<uint64_t>(turn) << 32) + static_cast<uint64_t>(index);
  const int unknown = std::max(workload.output_tokens - static_cast<int>(answer.size()), 0);
  AddTokens(workload, number, unknown + workload.prompt_tokens, request.prompt);
  return request;
}

std::string FreshCacheSalt() {
  std::random_device random;
  return absl::StrFormat("bench-%08x%08x", random(), random());
}

}  // namespace baton
