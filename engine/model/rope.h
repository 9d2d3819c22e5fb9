// The angles of rotary position embeddings (Su et al., 2021), with Hugging Face's scalings.
#pragma once

#include <vector>

#include "engine/kernels/backend.h"
#include "engine/model/config.h"

namespace baton {

// How fast each pair of a head turns, radians per position: [head_dim / 2], the fastest first.
std::vector<double> RopeFrequencies(const RopeConfig& config, int head_dim);

// cos and sin of every position below `positions`. In double without libm, rounded to float once: the same on any
// machine.
RopeTable BuildRopeTable(const RopeConfig& config, int head_dim, int positions);

}  // namespace baton
