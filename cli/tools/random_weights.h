// Random weights as a function of where they are: any part of a model can be made without the rest, in any order.
#pragma once

#include <cstdint>
#include <span>

namespace baton {

// Values of mean 0 and standard deviation `deviation`, close to normal (a sum of four uniform ones; none is further out
// than 3.5 deviations). The same for the same (seed, tensor, row).
void FillRandomRow(uint64_t seed, uint64_t tensor, uint64_t row, float deviation, std::span<float> values);

}  // namespace baton
