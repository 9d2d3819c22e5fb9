// SPDX-License-Identifier: Apache-2.0
// The decoder-only transformer that Llama and Qwen3 share. Implements Model; owns the backend and the weights. Not
// thread-safe.
#pragma once

#include <memory>
#include <string>

#include "engine/kernels/backend.h"
#include "engine/model/model.h"
#include "engine/model/ragged_batch.h"
#include "engine/model/weights.h"

namespace baton {

// Activations of a forward pass, kept between passes. Scratch grows with the largest batch; the caller's token budget
// bounds it.
struct Scratch {
  int capacity_rows = 0;
  std::unique_ptr<Activations> residual;          // [rows, hidden]
  std::unique_ptr<Activations> normed;            // [rows, hidden]: input of a sublayer, then its output
  std::unique_ptr<Activations> qkv;               // [rows, (heads + 2 kv_heads) * head_dim]
  std::unique_ptr<Activations> attention;         // [rows, heads * head_dim]
  std::unique_ptr<Activations> gate_up;           // [rows, 2 * ffn]
  std::unique_ptr<Activations> gated;             // [rows, ffn]
  std::unique_ptr<Activations> wanted_residual;   // [wanted rows, hidden]
  std::unique_ptr<Activations> wanted_attention;  // [wanted rows, heads * head_dim]
  std::unique_ptr<Activations> head_input;        // [head rows, hidden]
  std::unique_ptr<Activations> logits;            // [head rows, vocab]
};

class Decoder final : public Model {
 public:
  Decoder(ModelConfig config, KvLayout kv_layout, std::string numerics_id, std::unique_ptr<Backend> backend,
          ModelWeights weights, TensorType weight_type);

  const ModelConfig& config() const override { return config_; }
  const KvLayout& kv_layout() const override { return kv_layout_; }
  MemoryKind kv_memory() const override { return backend_->kv_memory(); }
  const std::string& numerics_id() const override { return numerics_id_; }
  std::string_view kernel_family() const override { return backend_->family(); }
  size_t weight_bytes() const override { return weights_.bytes(); }
  TensorType weight_type() const override { return weight_type_; }
  size_t step_bytes() const override {
    return weights_.bytes() - (weights_.untied_head != nullptr ? weights_.embedding->bytes() : 0);
  }

  MachineLimits MeasureLimits() override;

  absl::Status Forward(std::span<const SequenceInput> batch, PagePool& pool, const LayerDone& layer_done,
                       ForwardOutput& output) override;

 private:
  absl::Status Reserve(int rows);
  void WriteLayerKv(const LayerWeights& weights, int rows, LayerKv kv);
  void FinishLayer(const LayerWeights& weights, const WeightVector& next_norm, const Activations& attention,
                   Activations& residual, int rows);
  void ReadOutput(std::span<const SequenceInput> batch, const RaggedBatch& rows, ForwardOutput& output);

  const ModelConfig config_;
  const KvLayout kv_layout_;
  const std::string numerics_id_;
  const std::unique_ptr<Backend> backend_;
  const ModelWeights weights_;
  const TensorType weight_type_;
  Scratch scratch_;
};

}  // namespace baton
