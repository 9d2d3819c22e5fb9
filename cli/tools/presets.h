// SPDX-License-Identifier: Apache-2.0
// The shapes of known models of the Llama family, for models of random weights.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "engine/formats/rope_factors.h"

namespace baton {

struct ModelPreset {
  std::string_view name;
  int hidden_size;
  int layers;
  int heads;
  int kv_heads;
  int head_dim;
  int ffn_size;
  int vocab_size;
  int max_positions;
  bool tied_embeddings;
  double rope_theta;
  std::optional<Llama3Scaling> rope_scaling;
};

std::span<const ModelPreset> ModelPresets();
// Returns null when no preset has that name.
const ModelPreset* FindModelPreset(std::string_view name);

}  // namespace baton
