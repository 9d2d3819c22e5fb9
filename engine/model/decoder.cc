// SPDX-License-Identifier: Apache-2.0
#include "engine/model/decoder.h"

#include <algorithm>

#include "absl/status/status.h"
#include "common/status_macros.h"
#include "common/strings.h"

namespace baton {
namespace {

// Logits are computed this many rows at a time. Logits of all positions at once would exceed all other activations.
constexpr int kHeadRows = 32;
constexpr int kRowsStep = 64;

}  // namespace

Decoder::Decoder(ModelConfig config, KvLayout kv_layout, std::string numerics_id, std::unique_ptr<Backend> backend,
                 ModelWeights weights, TensorType weight_type)
    : config_(std::move(config)),
      kv_layout_(std::move(kv_layout)),
      numerics_id_(std::move(numerics_id)),
      backend_(std::move(backend)),
      weights_(std::move(weights)),
      weight_type_(weight_type) {}

MachineLimits Decoder::MeasureLimits() {
  std::vector<const Matrix*> matrices;
  for (const LayerWeights& layer : weights_.layers) {
    for (const auto* const matrix : {&layer.qkv, &layer.output, &layer.gate_up, &layer.down}) {
      matrices.push_back(matrix->get());
    }
  }
  matrices.push_back(&weights_.head());
  return backend_->MeasureLimits(matrices);
}

absl::Status Decoder::Forward(std::span<const SequenceInput> batch, PagePool& pool, const LayerDone& layer_done,
                              ForwardOutput& output) {
  if (!(pool.layout() == kv_layout_)) {
    return absl::InvalidArgumentError("the page pool has another KV layout than the model");
  }
  if (pool.memory_kind() != kv_memory()) {
    return absl::InvalidArgumentError(
        Concat("the page pool is in ", Name(pool.memory_kind()), " memory, expected ", Name(kv_memory()), " memory"));
  }
  BATON_ASSIGN_OR_RETURN(const RaggedBatch rows, LayOutRows(batch, config_, kv_layout_, pool.pages_total()));
  if (rows.rows() == 0) return absl::InvalidArgumentError("the batch is empty, expected at least one sequence");
  BATON_RETURN_IF_ERROR(Reserve(rows.rows()));
  Scratch& s = scratch_;

  const std::vector<GroupRows> groups = rows.ForBackend(kv_layout_);
  backend_->BeginStep({rows.tokens, rows.positions, rows.wanted_rows, rows.logit_rows, config_.heads, groups});
  backend_->Embed(*weights_.embedding, *s.residual);
  backend_->RmsNorm(*s.residual, rows.rows(), *weights_.layers[0].attention_norm, config_.rms_norm_eps, *s.normed);
  for (int layer = 0; layer < config_.layers; ++layer) {
    const LayerWeights& weights = weights_.layers[layer];
    const LayerKv kv = {kv_layout_.place(layer).group, pool.block(layer, PageId{0})};
    WriteLayerKv(weights, rows.rows(), kv);
    if (layer_done && !layer_done(layer))
      return absl::CancelledError(Concat("layer_done stopped the pass at layer ", layer));
    if (layer + 1 < config_.layers) {
      backend_->Attention(*s.qkv, RowSet::kAll, kv, *s.attention);
      FinishLayer(weights, *weights_.layers[layer + 1].attention_norm, *s.attention, *s.residual, rows.rows());
    } else if (rows.wanted() > 0) {
      // After the last layer's K and V only the wanted rows matter. A row's bits do not depend on other rows, so
      // dropping them is safe.
      backend_->Attention(*s.qkv, RowSet::kWanted, kv, *s.attention);
      backend_->GatherRows(*s.attention, RowSet::kWanted, 0, rows.wanted(), *s.wanted_attention);
      backend_->GatherRows(*s.residual, RowSet::kWanted, 0, rows.wanted(), *s.wanted_residual);
      FinishLayer(weights, *weights_.final_norm, *s.wanted_attention, *s.wanted_residual, rows.wanted());
    }
  }
  ReadOutput(batch, rows, output);
  return absl::OkStatus();
}

// Writes K and V of all rows, from scratch_.normed, to the pages. Leaves the rotated q of all rows in scratch_.qkv.
void Decoder::WriteLayerKv(const LayerWeights& weights, int rows, LayerKv kv) {
  backend_->MatMul(*weights.qkv, *scratch_.normed, rows, *scratch_.qkv);
  backend_->RotateAndWriteKv(*scratch_.qkv, {weights.q_norm.get(), weights.k_norm.get(), config_.rms_norm_eps},
                             *weights_.rotary, kv);
}

// Adds the attention's output and the MLP's to the residual. Leaves the residual, normed for what follows the layer, in
// scratch_.normed.
void Decoder::FinishLayer(const LayerWeights& weights, const WeightVector& next_norm, const Activations& attention,
                          Activations& residual, int rows) {
  Scratch& s = scratch_;
  backend_->MatMul(*weights.output, attention, rows, *s.normed);
  backend_->AddRmsNorm(residual, *s.normed, rows, *weights.mlp_norm, config_.rms_norm_eps, *s.normed);
  backend_->MatMul(*weights.gate_up, *s.normed, rows, *s.gate_up);
  backend_->SiluMul(*s.gate_up, rows, *s.gated);
  backend_->MatMul(*weights.down, *s.gated, rows, *s.normed);
  backend_->AddRmsNorm(residual, *s.normed, rows, next_norm, config_.rms_norm_eps, *s.normed);
}

// Computes hidden states, logits and tokens from the wanted rows in scratch_.normed.
void Decoder::ReadOutput(std::span<const SequenceInput> batch, const RaggedBatch& rows, ForwardOutput& output) {
  const int hidden = config_.hidden_size;
  const int vocab = config_.vocab_size;
  output.width = rows.hidden_rows.empty() ? vocab : std::max(vocab, hidden);
  output.rows = rows.outputs;
  output.values.resize(size_t(rows.wanted() - rows.sampled()) * output.width);
  output.sampled.assign(batch.size(), {});
  std::vector<SampleRow> samples;
  samples.reserve(rows.sampled());
  for (const int i : rows.sampled_sequences)
    samples.push_back({batch[i].sampling, batch[i].history, &output.sampled[i]});

  Scratch& s = scratch_;
  const auto copy_row = [&](const float* from, int columns, int row) {
    std::copy_n(from, columns, output.values.begin() + static_cast<ptrdiff_t>(row) * output.width);
  };
  if (!rows.hidden_rows.empty()) {
    const float* normed = backend_->HostData(*s.normed);
    for (const int row : rows.hidden_rows) copy_row(normed + size_t(row) * hidden, hidden, row);
  }
  const auto head_rows = static_cast<int>(rows.logit_rows.size());
  const int copied_rows = head_rows - rows.sampled();
  for (int first = 0; first < head_rows; first += kHeadRows) {
    const int count = std::min(kHeadRows, head_rows - first);
    const int copied = std::clamp(copied_rows - first, 0, count);
    backend_->GatherRows(*s.normed, RowSet::kLogits, first, count, *s.head_input);
    backend_->MatMul(weights_.head(), *s.head_input, count, *s.logits);
    if (copied > 0) {
      const float* logits = backend_->HostData(*s.logits);
      for (int i = 0; i < copied; ++i) copy_row(logits + size_t(i) * vocab, vocab, rows.logit_rows[first + i]);
    }
    if (copied < count) {
      backend_->Sample(*s.logits, copied, std::span(samples).subspan(first + copied - copied_rows, count - copied));
    }
  }
}

absl::Status Decoder::Reserve(int rows) {
  if (rows <= scratch_.capacity_rows) return absl::OkStatus();
  scratch_ = Scratch();  // frees the smaller buffers first
  Scratch s;
  const int capacity = (rows + kRowsStep - 1) / kRowsStep * kRowsStep;
  const int q_size = config_.heads * config_.head_dim;
  const int kv_size = config_.kv_heads * config_.head_dim;
  BATON_ASSIGN_OR_RETURN(s.residual, backend_->Allocate(capacity, config_.hidden_size));
  BATON_ASSIGN_OR_RETURN(s.normed, backend_->Allocate(capacity, config_.hidden_size));
  BATON_ASSIGN_OR_RETURN(s.qkv, backend_->Allocate(capacity, q_size + 2 * kv_size));
  BATON_ASSIGN_OR_RETURN(s.attention, backend_->Allocate(capacity, q_size));
  BATON_ASSIGN_OR_RETURN(s.gate_up, backend_->Allocate(capacity, 2 * config_.ffn_size));
  BATON_ASSIGN_OR_RETURN(s.gated, backend_->Allocate(capacity, config_.ffn_size));
  BATON_ASSIGN_OR_RETURN(s.wanted_residual, backend_->Allocate(capacity, config_.hidden_size));
  BATON_ASSIGN_OR_RETURN(s.wanted_attention, backend_->Allocate(capacity, q_size));
  BATON_ASSIGN_OR_RETURN(s.head_input, backend_->Allocate(kHeadRows, config_.hidden_size));
  BATON_ASSIGN_OR_RETURN(s.logits, backend_->Allocate(kHeadRows, config_.vocab_size));
  s.capacity_rows = capacity;
  scratch_ = std::move(s);
  return absl::OkStatus();
}

}  // namespace baton
