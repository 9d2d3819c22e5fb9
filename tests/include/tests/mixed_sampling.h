// SPDX-License-Identifier: Apache-2.0
// Sampling parameters and histories of all kinds, and the comparison of samples bit for bit.
#pragma once

#include <bit>
#include <cstdint>
#include <iterator>
#include <random>

#include "engine/sampling/sampler.h"

namespace baton::testing {

struct Sampling {
  SamplingParams params;
  TokenHistory history;
};

// A function of `seed`. Its tokens are below `vocab_size`.
inline Sampling MixedSampling(int vocab_size, uint32_t seed) {
  std::mt19937 random(seed);
  const auto one_of = [&](auto... choices) {
    const float list[] = {static_cast<float>(choices)...};
    return list[random() % std::size(list)];
  };
  const auto token = [&] { return static_cast<TokenId>(random() % vocab_size); };
  Sampling sampling;
  SamplingParams& params = sampling.params;
  params.temperature = one_of(0, 0.3, 1, 1.7);
  params.top_k = static_cast<int>(one_of(0, 1, 7, 40));
  params.top_p = one_of(1, 0.95, 0.5);
  params.min_p = one_of(0, 0, 0.05);
  params.repetition_penalty = one_of(1, 1.3, 0.8);
  params.presence_penalty = one_of(0, 0.7);
  params.frequency_penalty = one_of(0, 0.4);
  params.min_tokens = static_cast<uint32_t>(one_of(0, 6));
  params.seed = random();
  if (random() % 2 == 0) params.logprobs = static_cast<int>(random() % 6);
  if (random() % 2 == 0) params.logit_bias = {{token(), 2.0f}};
  params.stop_token_ids = {token()};
  for (int i = 0; i < 20; ++i) sampling.history.AddPrompt({{token()}});
  for (uint32_t i = 0; i < random() % 9; ++i) sampling.history.AddOutput(token());
  return sampling;
}

inline bool SameSample(const SampledToken& a, const SampledToken& b) {
  const auto same = [](float x, float y) { return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y); };
  if (a.token != b.token || !same(a.logprob, b.logprob) || a.top.size() != b.top.size()) return false;
  for (size_t i = 0; i < a.top.size(); ++i) {
    if (a.top[i].first != b.top[i].first || !same(a.top[i].second, b.top[i].second)) return false;
  }
  return true;
}

}  // namespace baton::testing
