// Loops over one value per vocabulary entry. Sums have one order, whatever the CPU.
#pragma once

#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "engine/types.h"

namespace baton {

// What stands for a logit that is not finite.
constexpr float kLowestLogit = std::numeric_limits<float>::lowest();

// `logits` with kLowestLogit for every value that is not finite; sizes equal.
void CopyFinite(std::span<const float> logits, std::span<float> out);

// The lowest id of the highest finite value; 0 if there is none.
TokenId ArgMax(std::span<const float> values);

// Of finite values or -infinity.
float Max(std::span<const float> values);

// The `count` highest of finite values, highest first, lowest id on ties. Meant for a small count.
std::vector<std::pair<TokenId, float>> Highest(std::span<const float> values, size_t count);

// out[i] = exp((values[i] - max) / temperature); `out` is resized.
void Exponentials(std::span<const float> values, float max, float temperature, std::vector<float>& out);

double Sum(std::span<const float> values);

}  // namespace baton
