// SPDX-License-Identifier: Apache-2.0
// A model's config.json, parsed and checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/families/family.h"
#include "engine/types.h"

namespace baton {

struct RopeConfig {
  enum class Scaling : uint8_t { kNone, kLinear, kLlama3 };
  double theta = 10000.0;
  Scaling scaling = Scaling::kNone;
  double factor = 1.0;  // kLinear and kLlama3
  // kLlama3 only:
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  double original_max_position = 8192;
};

struct ModelConfig {
  const ModelFamily* family = nullptr;  // set by ParseModelConfig
  std::string architecture_name;        // the family's name in config.json, for instance "LlamaForCausalLM"
  int hidden_size = 0;
  int layers = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int ffn_size = 0;
  int vocab_size = 0;
  int max_positions = 0;
  float rms_norm_eps = 1e-5f;
  bool tied_embeddings = false;
  RopeConfig rope;
};

// Parses the text of config.json; `origin` names the file in errors. UNIMPLEMENTED names an unknown architecture,
// activation or scaling. INVALID_ARGUMENT names the field and the expected value.
absl::StatusOr<ModelConfig> ParseModelConfig(std::string_view json, std::string_view origin);

// Returns one line with everything that decides what the model computes, for fingerprints.
std::string ComputationText(const ModelConfig& config);

}  // namespace baton
