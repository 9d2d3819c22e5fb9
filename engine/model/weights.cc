// SPDX-License-Identifier: Apache-2.0
#include "engine/model/weights.h"

#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/status_macros.h"
#include "common/strings.h"
#include "engine/formats/block_codec.h"
#include "engine/model/rope.h"

namespace baton {
namespace {

// Returns tensors by name after checking shape and type. Remembers the names, to find unused tensors at the end.
class TensorReader {
 public:
  TensorReader(const Checkpoint& checkpoint, std::optional<TensorType> quantize, Backend& backend,
               const std::function<void(uint64_t, uint64_t)>& progress)
      : checkpoint_(checkpoint), quantize_(quantize), backend_(backend), progress_(progress) {
    for (const Tensor& tensor : checkpoint.tensors()) total_bytes_ += tensor.data.size();
  }

  absl::StatusOr<TensorView> View(const std::string& name, const std::vector<int64_t>& shape) {
    used_.insert(name);
    const Tensor* tensor = checkpoint_.Find(name);
    if (tensor == nullptr) return Error(name, Concat("is missing, expected ", ShapeText(shape)));
    if (tensor->shape != shape) {
      return Error(name, Concat("has shape ", ShapeText(tensor->shape), ", expected ", ShapeText(shape)));
    }
    if (!tensor->type.has_value()) {
      return Error(name, Concat("has dtype ", tensor->type_name, ", which is not supported, expected F32, F16, BF16, ",
                                "Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K or Q6_K"));
    }
    const int rows = shape.size() == 1 ? 1 : static_cast<int>(shape.front());
    return TensorView{tensor->data.data(), *tensor->type, rows, static_cast<int>(shape.back()),
                      tensor->interleaved_heads};
  }

  absl::StatusOr<std::unique_ptr<WeightVector>> Vector(const std::string& name, int size) {
    BATON_ASSIGN_OR_RETURN(const TensorView view, View(name, {size}));
    if (IsQuantized(view.type))
      return Error(name, Concat("has type ", InfoOf(view.type).name, ", expected F32, F16 or BF16"));
    return backend_.PackVector(view);
  }

  // Packs the named tensors (name, outputs), stacked by rows, as one matrix. Then releases the file's pages, which are
  // not read again.
  absl::StatusOr<std::unique_ptr<Matrix>> Packed(const std::vector<std::pair<std::string, int>>& parts, int inputs) {
    std::vector<TensorView> views;
    std::vector<std::vector<std::byte>> quantized;
    for (const auto& [name, outputs] : parts) {
      BATON_ASSIGN_OR_RETURN(TensorView view, View(name, {outputs, inputs}));
      if (quantize_.has_value() && !IsQuantized(view.type)) {
        BATON_ASSIGN_OR_RETURN(quantized.emplace_back(), Quantize(name, view));
        view.data = quantized.back().data();
        view.type = *quantize_;
      }
      views.push_back(view);
    }
    absl::StatusOr<std::unique_ptr<Matrix>> matrix = backend_.PackStacked(views);
    if (!matrix.ok())
      return absl::Status(matrix.status().code(),
                          Concat(checkpoint_.origin(), ": tensor ", parts[0].first, ": ", matrix.status().message()));
    for (const auto& [name, outputs] : parts) {
      const Tensor& tensor = *checkpoint_.Find(name);
      ReleaseMappedPages(tensor.data);
      loaded_bytes_ += tensor.data.size();
    }
    if (progress_) progress_(loaded_bytes_, total_bytes_);
    return matrix;
  }

  uint64_t total_bytes() const { return total_bytes_; }

  // An unused tensor means that the weights are not of the model that config.json describes.
  absl::Status CheckAllUsed(const ModelConfig& config) const {
    for (const Tensor& tensor : checkpoint_.tensors()) {
      const bool harmless =
          tensor.name.ends_with(".rotary_emb.inv_freq") ||
          (config.tied_embeddings && tensor.name == config.family->tensor(TensorRole::kHead).hugging_face);
      if (!harmless && !used_.contains(tensor.name)) {
        return Error(tensor.name, Concat("is not part of the model: config.json describes a ", config.architecture_name,
                                         " of ", config.layers, " layers"));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Error(std::string_view name, std::string_view what) const {
    const Tensor* const tensor = checkpoint_.Find(name);
    const bool renamed = tensor != nullptr && !tensor->name_in_file.empty();
    return absl::InvalidArgumentError(Concat(checkpoint_.origin(), ": tensor ", name, " ",
                                             renamed ? Concat("(", tensor->name_in_file, ") ") : "", what));
  }

  absl::StatusOr<std::vector<std::byte>> Quantize(const std::string& name, const TensorView& from) const {
    const TensorTypeInfo info = InfoOf(*quantize_);
    if (from.cols % info.block_values != 0) {
      return Error(name, Concat("has rows of ", from.cols, " values, expected a multiple of ", info.block_values,
                                " to quantize them"));
    }
    const size_t row_bytes = BytesOf(*quantize_, from.cols);
    std::vector<std::byte> to(from.rows * row_bytes);
    std::vector<float> row(from.cols);
    for (int r = 0; r < from.rows; ++r) {
      DecodeBlocks(from.type, from.data + r * BytesOf(from.type, from.cols), from.cols, row.data());
      if (!EncodeBlocks(*quantize_, row, to.data() + r * row_bytes)) {
        return Error(name, Concat("has a value in row ", r, " that ", info.name, " cannot hold"));
      }
    }
    return to;
  }

  const Checkpoint& checkpoint_;
  const std::optional<TensorType> quantize_;
  Backend& backend_;
  const std::function<void(uint64_t, uint64_t)>& progress_;
  uint64_t loaded_bytes_ = 0;
  uint64_t total_bytes_ = 0;
  std::set<std::string> used_;
};

absl::StatusOr<LayerWeights> LoadLayer(const ModelConfig& config, int index, TensorReader& tensors) {
  const int hidden = config.hidden_size;
  const int q_size = config.heads * config.head_dim;
  const int kv_size = config.kv_heads * config.head_dim;
  const std::string prefix = Concat(config.family->layer_prefix.hugging_face, index, ".");
  const auto name = [&](TensorRole role) { return Concat(prefix, config.family->tensor(role).hugging_face); };
  LayerWeights weights;

  BATON_ASSIGN_OR_RETURN(weights.attention_norm, tensors.Vector(name(TensorRole::kAttentionNorm), hidden));
  BATON_ASSIGN_OR_RETURN(
      weights.qkv,
      tensors.Packed({{name(TensorRole::kQ), q_size}, {name(TensorRole::kK), kv_size}, {name(TensorRole::kV), kv_size}},
                     hidden));
  if (config.family->parts.head_norm == NormKind::kRms) {
    BATON_ASSIGN_OR_RETURN(weights.q_norm, tensors.Vector(name(TensorRole::kQNorm), config.head_dim));
    BATON_ASSIGN_OR_RETURN(weights.k_norm, tensors.Vector(name(TensorRole::kKNorm), config.head_dim));
  }
  BATON_ASSIGN_OR_RETURN(weights.output, tensors.Packed({{name(TensorRole::kOutput), hidden}}, q_size));

  BATON_ASSIGN_OR_RETURN(weights.mlp_norm, tensors.Vector(name(TensorRole::kMlpNorm), hidden));
  BATON_ASSIGN_OR_RETURN(
      weights.gate_up,
      tensors.Packed({{name(TensorRole::kGate), config.ffn_size}, {name(TensorRole::kUp), config.ffn_size}}, hidden));
  BATON_ASSIGN_OR_RETURN(weights.down, tensors.Packed({{name(TensorRole::kDown), hidden}}, config.ffn_size));
  return weights;
}

}  // namespace

size_t ModelWeights::bytes() const {
  const auto vector_bytes = [](const std::unique_ptr<WeightVector>& vector) {
    return vector == nullptr ? 0 : vector->size() * sizeof(float);
  };
  size_t bytes = embedding->bytes() + vector_bytes(final_norm);
  if (untied_head != nullptr) bytes += untied_head->bytes();
  for (const LayerWeights& layer : layers) {
    bytes += layer.qkv->bytes() + layer.output->bytes() + layer.gate_up->bytes() + layer.down->bytes();
    for (const auto* norm : {&layer.attention_norm, &layer.q_norm, &layer.k_norm, &layer.mlp_norm}) {
      bytes += vector_bytes(*norm);
    }
  }
  return bytes;
}

absl::StatusOr<ModelWeights> LoadWeights(const ModelConfig& config, const Checkpoint& checkpoint,
                                         std::optional<TensorType> quantize, Backend& backend,
                                         const std::function<void(uint64_t, uint64_t)>& progress) {
  TensorReader tensors(checkpoint, quantize, backend, progress);
  const auto name = [&](TensorRole role) { return std::string(config.family->tensor(role).hugging_face); };
  ModelWeights weights;
  BATON_ASSIGN_OR_RETURN(weights.embedding,
                         tensors.Packed({{name(TensorRole::kEmbedding), config.vocab_size}}, config.hidden_size));
  for (int i = 0; i < config.layers; ++i) {
    BATON_ASSIGN_OR_RETURN(LayerWeights layer, LoadLayer(config, i, tensors));
    weights.layers.push_back(std::move(layer));
  }
  weights.type = *checkpoint.Find(Concat(config.family->layer_prefix.hugging_face, "0.", name(TensorRole::kQ)))->type;
  BATON_ASSIGN_OR_RETURN(weights.final_norm, tensors.Vector(name(TensorRole::kFinalNorm), config.hidden_size));
  if (!config.tied_embeddings) {
    BATON_ASSIGN_OR_RETURN(weights.untied_head,
                           tensors.Packed({{name(TensorRole::kHead), config.vocab_size}}, config.hidden_size));
  }
  BATON_RETURN_IF_ERROR(tensors.CheckAllUsed(config));
  BATON_ASSIGN_OR_RETURN(weights.rotary,
                         backend.PackRotary(BuildRopeTable(config.rope, config.head_dim, config.max_positions)));
  if (progress) progress(tensors.total_bytes(), tensors.total_bytes());
  return weights;
}

}  // namespace baton
