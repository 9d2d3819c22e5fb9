// SPDX-License-Identifier: Apache-2.0
// Random weights as a function of their place. Each part of a model can be made alone, in any order, on any thread.
#pragma once

#include <cstdint>
#include <span>

namespace baton {

// Fills `values` with numbers of mean 0 and standard deviation `deviation`, nearly normal: each is the sum of four
// uniform numbers, and at most 3.5 deviations from 0. The same (seed, tensor, row) gives the same values.
void FillRandomRow(uint64_t seed, uint64_t tensor, uint64_t row, float deviation, std::span<float> values);

}  // namespace baton
