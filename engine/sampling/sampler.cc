// SPDX-License-Identifier: Apache-2.0
#include "engine/sampling/sampler.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "engine/kernels/det_math.h"
#include "engine/sampling/logits.h"
#include "engine/sampling/philox.h"

namespace baton {
namespace {

constexpr float kExcluded = -std::numeric_limits<float>::infinity();

// Keeps a logit finite after an overflow, so that it still ranks.
float Clamped(float logit) { return std::clamp(logit, kLowestLogit, std::numeric_limits<float>::max()); }

bool ChangesLogits(const SamplingParams& params, const TokenHistory& history) {
  return params.repetition_penalty != 1.0f || params.presence_penalty != 0.0f || params.frequency_penalty != 0.0f ||
         !params.logit_bias.empty() || history.output_size() < params.min_tokens;
}

}  // namespace

bool SamplingParams::IsStop(TokenId token) const {
  return std::binary_search(stop_token_ids.begin(), stop_token_ids.end(), token);
}

void TokenHistory::AddPrompt(std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) ++counts_[token].prompt;
}

void TokenHistory::AddOutput(TokenId token) {
  ++counts_[token].output;
  ++output_size_;
}

SampledToken Sampler::Sample(std::span<const float> logits, const SamplingParams& params, const TokenHistory& history) {
  const bool greedy = !(params.temperature > 0.0f);
  SampledToken sampled;
  if (greedy && !params.logprobs.has_value() && !ChangesLogits(params, history)) {
    sampled.token = ArgMax(logits);
    return sampled;
  }
  logits_.resize(logits.size());
  CopyFinite(logits, logits_);
  double log_sum = 0;
  if (params.logprobs.has_value()) {
    const float max = Max(logits_);
    Exponentials(logits_, max, 1.0f, exponentials_);
    log_sum = static_cast<double>(max) + DetLog(Sum(exponentials_));
    sampled.top = Highest(logits_, static_cast<size_t>(std::max(*params.logprobs, 0)));
    for (auto& [token, value] : sampled.top) value = static_cast<float>(value - log_sum);
  }
  Adjust(params, history);
  sampled.token =
      greedy ? ArgMax(logits_) : Choose(params, UniformDraw(params.seed, /*choice=*/0, history.output_size()));
  if (params.logprobs.has_value()) {
    float raw = kLowestLogit;
    CopyFinite(logits.subspan(static_cast<size_t>(sampled.token), 1), {&raw, 1});
    sampled.logprob = static_cast<float>(raw - log_sum);
  }
  return sampled;
}

void Sampler::Adjust(const SamplingParams& params, const TokenHistory& history) {
  if (!ChangesLogits(params, history)) return;
  Penalize(params, history);
  for (const auto& [token, bias] : params.logit_bias) {
    const auto index = static_cast<size_t>(token);
    if (index < logits_.size()) logits_[index] = Clamped(logits_[index] + bias);
  }
  if (history.output_size() >= params.min_tokens) return;
  for (const TokenId token : params.stop_token_ids) {
    const auto index = static_cast<size_t>(token);
    if (index < logits_.size()) logits_[index] = kExcluded;
  }
}

void Sampler::Penalize(const SamplingParams& params, const TokenHistory& history) {
  const float repetition = params.repetition_penalty;
  if (repetition == 1.0f && params.presence_penalty == 0.0f && params.frequency_penalty == 0.0f) return;
  for (const auto& [token, counts] : history.counts_) {
    const auto index = static_cast<size_t>(token);
    if (index >= logits_.size()) continue;
    float logit = logits_[index];
    logit = logit > 0.0f ? logit / repetition : logit * repetition;
    if (counts.output > 0) {
      logit -= params.frequency_penalty * static_cast<float>(counts.output) + params.presence_penalty;
    }
    logits_[index] = Clamped(logit);
  }
}

TokenId Sampler::Choose(const SamplingParams& params, double uniform) {
  const float max = Max(logits_);
  if (max == kExcluded) return 0;  // every token is a stop token
  candidates_.Reset(logits_, max, params.temperature);
  if (params.top_k > 0) candidates_.KeepHighest(static_cast<size_t>(params.top_k));
  candidates_.KeepShare(params.top_p);
  candidates_.KeepAtLeast(params.min_p);
  return candidates_.Draw(uniform);
}

}  // namespace baton
