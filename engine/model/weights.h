// SPDX-License-Identifier: Apache-2.0
// A model's weights, checked against its config and packed for a backend. Owned by the caller; immutable once loaded.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/formats/checkpoint.h"
#include "engine/kernels/backend.h"
#include "engine/model/config.h"

namespace baton {

struct LayerWeights {
  std::unique_ptr<WeightVector> attention_norm;  // [hidden]
  std::unique_ptr<Matrix> qkv;                   // [(heads + 2 kv_heads) * head_dim, hidden], rows of q, then k, then v
  std::unique_ptr<WeightVector> q_norm;          // [head_dim]; null without QK norm
  std::unique_ptr<WeightVector> k_norm;          // [head_dim]; null without QK norm
  std::unique_ptr<Matrix> output;                // [hidden, heads * head_dim]
  std::unique_ptr<WeightVector> mlp_norm;        // [hidden]
  std::unique_ptr<Matrix> gate_up;               // [2 * ffn, hidden], rows of gate, then up
  std::unique_ptr<Matrix> down;                  // [hidden, ffn]
};

struct ModelWeights {
  std::unique_ptr<Matrix> embedding;  // [vocab, hidden]
  std::vector<LayerWeights> layers;
  std::unique_ptr<WeightVector> final_norm;  // [hidden]
  std::unique_ptr<Matrix> untied_head;       // [vocab, hidden]; null if the embedding serves as head
  std::unique_ptr<RotaryTable> rotary;
  TensorType type = TensorType::kF32;  // type of the first layer's q in the file
  const Matrix& head() const { return untied_head != nullptr ? *untied_head : *embedding; }
  size_t bytes() const;
};

// INVALID_ARGUMENT names a tensor that is missing, unused, or of another shape or type than the config asks for.
//
// With `quantize`, float matrices are rounded to this type; INVALID_ARGUMENT names a matrix that the type cannot hold.
// `progress`, if set, is called after each matrix and at the end: see LoadProgress.
absl::StatusOr<ModelWeights> LoadWeights(const ModelConfig& config, const Checkpoint& checkpoint,
                                         std::optional<TensorType> quantize, Backend& backend,
                                         const std::function<void(uint64_t, uint64_t)>& progress);

}  // namespace baton
