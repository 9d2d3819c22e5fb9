// SPDX-License-Identifier: Apache-2.0
// Angles of rotary position embeddings (Su et al., "RoFormer", 2021), with Hugging Face's scalings. Pure functions.
#pragma once

#include <vector>

#include "engine/kernels/backend.h"
#include "engine/model/config.h"

namespace baton {

// Returns the rotation of each pair of a head in radians per position: [head_dim / 2], fastest first.
std::vector<double> RopeFrequencies(const RopeConfig& config, int head_dim);

// Returns cos and sin of every position below `positions`. Computed in double without libm and rounded to float once,
// so all machines get the same bits.
RopeTable BuildRopeTable(const RopeConfig& config, int head_dim, int positions);

}  // namespace baton
