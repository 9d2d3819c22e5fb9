// SPDX-License-Identifier: Apache-2.0
// A model of some 200,000 random weights, with all that a preset can have.
#pragma once

#include "cli/tools/make_model.h"

namespace baton::testing {

inline ModelPreset SmallPreset(int head_dim = 16) {
  return {.name = "small",
          .hidden_size = 64,
          .layers = 2,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = head_dim,
          .ffn_size = 96,
          .vocab_size = 1100,
          .max_positions = 512,
          .tied_embeddings = false,
          .rope_theta = 500000,
          .rope_scaling = Llama3Scaling{.factor = 32}};
}

}  // namespace baton::testing
