// SPDX-License-Identifier: Apache-2.0
#include "cli/pairs/prompts.h"

#include <algorithm>
#include <atomic>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace baton {
namespace {

constexpr uint32_t kLogprobs = 5;

void SetSampling(int index, uint64_t seed, const std::vector<int32_t>& prompt, v1::SamplingParams& sampling) {
  sampling.set_logprobs(kLogprobs);
  sampling.set_ignore_eos(true);
  sampling.set_temperature(0);
  sampling.set_seed(seed + static_cast<uint64_t>(index));
  switch (index % 5) {
    case 0: return;
    case 1:
      sampling.set_temperature(0.8F);
      sampling.set_top_k(40);
      sampling.set_top_p(0.95F);
      return;
    case 2:
      sampling.set_temperature(1.1F);
      sampling.set_repetition_penalty(1.2F);
      sampling.set_presence_penalty(0.5F);
      sampling.set_frequency_penalty(0.3F);
      return;
    case 3:
      sampling.set_ignore_eos(false);
      sampling.set_frequency_penalty(0.4F);
      return;
    default:
      sampling.set_temperature(0.7F);
      sampling.set_min_p(0.02F);
      (*sampling.mutable_logit_bias())[prompt.front()] = -4;
      (*sampling.mutable_logit_bias())[prompt.back()] = 2;
  }
}

}  // namespace

std::vector<int32_t> RandomTokens(uint32_t vocab_size, int count, uint64_t seed) {
  std::seed_seq sequence = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  std::mt19937_64 random(sequence);
  const uint64_t low = std::min<uint64_t>(256, vocab_size / 10);
  const uint64_t high = std::max<uint64_t>(uint64_t{vocab_size} * 9 / 10, low + 1);
  std::vector<int32_t> ids;
  ids.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) ids.push_back(static_cast<int32_t>(low + random() % (high - low)));
  return ids;
}

std::vector<v1::GenerateRequest> MakePrompts(const WorkerGroup& group, const PromptOptions& options) {
  const int context = static_cast<int>(std::min<uint32_t>(group.max_context_tokens, INT32_MAX));
  const int longest = std::clamp(options.prompt_tokens, 1, std::max(context / 2, 1));
  const int output = std::clamp(options.output_tokens, 1, std::max(context - longest, 1));
  std::vector<v1::GenerateRequest> requests;
  std::vector<int32_t> before;
  for (int i = 0; i < options.prompts; ++i) {
    // From half of the longest prompt to the longest one.
    const int tokens = longest - (longest / 2) * i / std::max(options.prompts - 1, 1);
    std::vector<int32_t> ids =
        RandomTokens(group.vocab_size, tokens, options.seed * 1'000'003 + static_cast<uint64_t>(i));
    if (i % 2 == 1) std::copy_n(before.begin(), std::min(before.size(), ids.size()) * 2 / 3, ids.begin());
    v1::GenerateRequest& request = requests.emplace_back();
    request.set_model(group.model);
    request.mutable_token_ids()->mutable_ids()->Assign(ids.begin(), ids.end());
    request.mutable_sampling()->set_max_tokens(static_cast<uint32_t>(output));
    request.set_ttft_slo_seconds(0);
    request.set_tpot_slo_seconds(0);
    SetSampling(i, options.seed, ids, *request.mutable_sampling());
    before = std::move(ids);
  }
  return requests;
}

std::string FreshSalt() {
  static const std::string run = [] {
    std::random_device random;
    return absl::StrFormat("pairs-%08x%08x-", random(), random());
  }();
  static std::atomic<uint64_t> number = 0;
  return absl::StrCat(run, number++);
}

}  // namespace baton
