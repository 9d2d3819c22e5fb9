// A model's weights, checked against its config and packed for a backend.
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
  std::vector<float> attention_norm;  // [hidden]
  std::unique_ptr<Matrix> qkv;        // [(heads + 2 kv_heads) * head_dim, hidden]: q above k above v
  std::vector<float> q_norm;          // [head_dim]; empty without QK norm
  std::vector<float> k_norm;          // [head_dim]; empty without QK norm
  std::unique_ptr<Matrix> output;     // [hidden, heads * head_dim]
  std::vector<float> mlp_norm;        // [hidden]
  std::unique_ptr<Matrix> gate_up;    // [2 * ffn, hidden]: gate above up
  std::unique_ptr<Matrix> down;       // [hidden, ffn]
};

struct ModelWeights {
  std::unique_ptr<Matrix> embedding;  // [vocab, hidden]
  std::vector<LayerWeights> layers;
  std::vector<float> final_norm;        // [hidden]
  std::unique_ptr<Matrix> untied_head;  // [vocab, hidden]; null when the embedding is the head
  TensorType type = TensorType::kF32;   // of the first layer's q in the file
  const Matrix& head() const { return untied_head != nullptr ? *untied_head : *embedding; }
  size_t bytes() const;
};

// INVALID_ARGUMENT names a tensor that is missing, of another shape or dtype than the config asks for, or that no part
// of the model would use.
//
// With `quantize`, matrices of floats are rounded to this type: INVALID_ARGUMENT names one that cannot be.
// `progress`, if not null, is called after each matrix and at the end: see LoadProgress.
absl::StatusOr<ModelWeights> LoadWeights(const ModelConfig& config, const Checkpoint& checkpoint,
                                         std::optional<TensorType> quantize, Backend& backend,
                                         const std::function<void(uint64_t, uint64_t)>& progress);

}  // namespace baton
