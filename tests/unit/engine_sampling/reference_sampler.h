// SPDX-License-Identifier: Apache-2.0
// The sampling chain in double precision, each step spelled out over the sorted vocabulary: slow, and right by reading.
#pragma once

#include <span>
#include <vector>

#include "engine/sampling/sampler.h"

namespace baton {

struct ReferenceHistory {
  std::vector<TokenId> prompt;
  std::vector<TokenId> output;

  TokenHistory ToHistory() const;
};

struct ReferenceToken {
  TokenId id = 0;
  double probability = 0;
};

// The candidates after steps 2 to 8, most probable first; probabilities sum to 1.
std::vector<ReferenceToken> ReferenceDistribution(std::span<const float> logits, const SamplingParams& params,
                                                  const ReferenceHistory& history);

SampledToken ReferenceSample(std::span<const float> logits, const SamplingParams& params,
                             const ReferenceHistory& history);

}  // namespace baton
