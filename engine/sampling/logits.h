// SPDX-License-Identifier: Apache-2.0
// Loops over one logit per token of the vocabulary. Pure functions. Sums are added in one order on every CPU.
#pragma once

#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "engine/types.h"

namespace baton {

// Replaces a logit that is not finite.
constexpr float kLowestLogit = std::numeric_limits<float>::lowest();

// Copies `logits` to `out`, with kLowestLogit for values that are not finite. Sizes must be equal.
void CopyFinite(std::span<const float> logits, std::span<float> out);

// Returns the lowest id of the highest finite value; 0 if no value is finite.
TokenId ArgMax(std::span<const float> values);

// Returns the highest finite value; -infinity if no value is finite.
float Max(std::span<const float> values);

// Returns the `count` highest of finite values, highest first, lowest id on ties. For small counts: O(count) per
// insertion.
std::vector<std::pair<TokenId, float>> Highest(std::span<const float> values, size_t count);

// out[i] = exp((values[i] - max) / temperature). Resizes `out`.
void Exponentials(std::span<const float> values, float max, float temperature, std::vector<float>& out);

double Sum(std::span<const float> values);

}  // namespace baton
