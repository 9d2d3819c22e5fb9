// SPDX-License-Identifier: Apache-2.0
// Converts a GGUF model's metadata to config.json and its tensor names to Hugging Face's.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "common/status_macros.h"
#include "common/strings.h"
#include "engine/formats/gguf_conventions.h"
#include "engine/formats/gguf_convert.h"
#include "engine/formats/gguf_fields.h"
#include "engine/formats/rope_factors.h"

namespace baton {
namespace {

const Tensor* FindTensor(const GgufModel& model, std::string_view name) {
  const auto found =
      std::find_if(model.tensors.begin(), model.tensors.end(), [&](const Tensor& t) { return t.name == name; });
  return found == model.tensors.end() ? nullptr : &*found;
}

// Fills config.json from the metadata keys "<architecture>.*".
class ConfigConverter {
 public:
  explicit ConfigConverter(const GgufModel& model) : model_(model), fields_(model.metadata, model.origin) {}

  absl::StatusOr<std::string> Convert() {
    BATON_RETURN_IF_ERROR(ReadArchitecture());
    ReadSizes();
    BATON_RETURN_IF_ERROR(fields_.status());
    BATON_RETURN_IF_ERROR(RefuseUnsupportedKeys());
    BATON_RETURN_IF_ERROR(ReadVocabulary());
    BATON_RETURN_IF_ERROR(ReadRope());
    config_["tie_word_embeddings"] = FindTensor(model_, family_->tensor(TensorRole::kHead).gguf) == nullptr;
    return config_.dump();
  }

 private:
  std::string Key(std::string_view name) const { return Concat(architecture_, ".", name); }

  absl::Status Unsupported(std::string_view key, std::string_view why) const {
    return absl::UnimplementedError(Concat(model_.origin, ": ", key, ": ", why));
  }

  absl::Status ReadArchitecture() {
    constexpr std::string_view kKey = "general.architecture";
    fields_.Required(kKey).String(kKey, architecture_);
    BATON_RETURN_IF_ERROR(fields_.status());
    family_ = FindGgufFamily(architecture_);
    if (family_ == nullptr) {
      return Unsupported(kKey,
                         Concat("unknown architecture \"", architecture_, "\", expected one of ", GgufFamilyNames()));
    }
    config_["architectures"] = {family_->hugging_face};
    return absl::OkStatus();
  }

  int64_t Size(std::string_view key, std::string_view field) {
    int64_t size = 0;
    fields_.Required(Key(key)).Int(Key(key), 1, INT32_MAX, size);
    config_[field] = size;
    return size;
  }

  void ReadSizes() {
    const int64_t hidden = Size("embedding_length", "hidden_size");
    const int64_t heads = Size("attention.head_count", "num_attention_heads");
    Size("block_count", "num_hidden_layers");
    Size("feed_forward_length", "intermediate_size");
    Size("context_length", "max_position_embeddings");
    int64_t kv_heads = heads;
    fields_.Int(Key("attention.head_count_kv"), 1, INT32_MAX, kv_heads);
    config_["num_key_value_heads"] = kv_heads;
    head_dim_ = heads > 0 ? hidden / heads : 0;
    if (fields_.Has(Key("attention.key_length")))
      config_["head_dim"] = head_dim_ = Size("attention.key_length", "head_dim");
    double eps = 0;
    const std::string eps_key = Key("attention.layer_norm_rms_epsilon");
    fields_.Required(eps_key).Number(eps_key, 0, 1, eps);
    config_["rms_norm_eps"] = eps;
  }

  // Refuses keys that change the computation in ways that the engine does not support.
  absl::Status RefuseUnsupportedKeys() {
    for (const std::string_view name : {"logit_scale", "attention.scale", "residual_scale", "embedding_scale",
                                        "attention.sliding_window", "attn_logit_softcapping"}) {
      if (fields_.Has(Key(name))) return Unsupported(Key(name), "is not supported");
    }
    int64_t experts = 0;
    fields_.Int(Key("expert_count"), 0, INT32_MAX, experts);
    if (experts > 0) return Unsupported(Key("expert_count"), "mixtures of experts are not supported");
    for (const std::string_view name : {"attention.value_length", "rope.dimension_count"}) {
      int64_t size = head_dim_;
      fields_.Int(Key(name), 0, INT32_MAX, size);
      if (size != head_dim_) {
        return Unsupported(Key(name), Concat("expected the size of a head, ", head_dim_, ", got ", size));
      }
    }
    bool causal = true;
    fields_.Bool(Key("attention.causal"), causal);
    if (!causal) return Unsupported(Key("attention.causal"), "expected true");
    return fields_.status();
  }

  absl::Status ReadVocabulary() {
    const std::string_view name = family_->tensor(TensorRole::kEmbedding).gguf;
    const Tensor* embedding = FindTensor(model_, name);
    if (embedding == nullptr || embedding->shape.size() != 2) {
      return absl::InvalidArgumentError(Concat(model_.origin, ": expected a tensor ", name, " of two dimensions"));
    }
    config_["vocab_size"] = embedding->shape.front();
    if (embedding->type == TensorType::kF16) config_["torch_dtype"] = "float16";
    if (embedding->type == TensorType::kBF16) config_["torch_dtype"] = "bfloat16";
    return absl::OkStatus();
  }

  absl::Status ReadRope() {
    double theta = 10000;
    fields_.Number(Key("rope.freq_base"), 1, 1e12, theta);
    config_["rope_theta"] = theta;

    // Like llama.cpp: factor 0 means no scaling, and a factor without a type means linear scaling.
    double factor = 1;
    fields_.Number(Key("rope.scale_linear"), 0, 1e6, factor);  // older name of rope.scaling.factor
    fields_.Number(Key("rope.scaling.factor"), 0, 1e6, factor);
    if (factor == 0) factor = 1;
    std::string_view scaling = factor == 1 ? "none" : "linear";
    fields_.String(Key("rope.scaling.type"), scaling);
    BATON_RETURN_IF_ERROR(fields_.status());
    if (scaling != "none" && scaling != "linear") {
      return Unsupported(Key("rope.scaling.type"),
                         Concat("unknown scaling \"", scaling, "\", expected none or linear"));
    }
    if (scaling == "linear" && factor != 1) config_["rope_scaling"] = {{"rope_type", "linear"}, {"factor", factor}};

    const Tensor* factors = FindTensor(model_, kGgufRopeFactors);
    if (factors == nullptr) return absl::OkStatus();
    double original_length = Llama3Scaling().original_max_position;
    fields_.Number(Key("rope.scaling.original_context_length"), 1, 1e9, original_length);
    BATON_RETURN_IF_ERROR(fields_.status());
    std::vector<float> values(factors->type == TensorType::kF32 ? factors->data.size() / sizeof(float) : 0);
    if (!values.empty()) std::memcpy(values.data(), factors->data.data(), values.size() * sizeof(float));
    const bool has_all = static_cast<int64_t>(values.size()) == head_dim_ / 2;
    const std::optional<Llama3Scaling> llama3 =
        has_all ? MatchLlama3RopeFactors(values, theta, original_length) : std::nullopt;
    if (!llama3 || config_.contains("rope_scaling")) {
      return absl::UnimplementedError(Concat(model_.origin, ": tensor ", kGgufRopeFactors,
                                             ": expected the factors of Llama 3's scaling, [", head_dim_ / 2,
                                             "] in F32"));
    }
    config_["rope_scaling"] = {{"rope_type", "llama3"},
                               {"factor", llama3->factor},
                               {"low_freq_factor", llama3->low_freq_factor},
                               {"high_freq_factor", llama3->high_freq_factor},
                               {"original_max_position_embeddings", llama3->original_max_position}};
    return absl::OkStatus();
  }

  const GgufModel& model_;
  GgufFields fields_;
  std::string_view architecture_;
  const ModelFamily* family_ = nullptr;
  int64_t head_dim_ = 0;
  nlohmann::json config_;
};

using Naming = std::string_view TensorName::*;

// With the prefix "blk.": "blk.12.attn_q.weight" -> (12, "attn_q.weight").
std::optional<std::pair<int, std::string_view>> SplitLayerName(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  int layer = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
  if (error != std::errc() || end == name.data() + name.size() || *end != '.') return std::nullopt;
  return std::pair(layer, name.substr(end + 1 - name.data()));
}

// Translates a tensor's name from naming `from` to naming `to`. An unknown name stays as it is.
std::string Rename(const ModelFamily& family, Naming from, Naming to, std::string_view name) {
  const auto layer = SplitLayerName(family.layer_prefix.*from, name);
  const std::string prefix = layer ? Concat(family.layer_prefix.*to, layer->first, ".") : "";
  const std::span<const TensorName> tensors = family.tensors;
  for (const TensorName& tensor : layer ? tensors.subspan(kModelTensors) : tensors.first(kModelTensors)) {
    if (tensor.*from == (layer ? layer->second : name)) return Concat(prefix, tensor.*to);
  }
  return std::string(name);
}

}  // namespace

std::string GgufTensorName(const ModelFamily& family, std::string_view hugging_face) {
  return Rename(family, &TensorName::hugging_face, &TensorName::gguf, hugging_face);
}

absl::StatusOr<std::string> GgufConfigJson(const GgufModel& model) { return ConfigConverter(model).Convert(); }

std::vector<Tensor> GgufTensors(const GgufModel& model) {
  std::string_view architecture;
  int64_t heads = 0;
  GgufFields fields(model.metadata, model.origin);
  fields.String("general.architecture", architecture);
  const ModelFamily* const family = FindGgufFamily(architecture);
  fields.Int(Concat(architecture, ".attention.head_count"), 1, INT32_MAX, heads);
  int64_t kv_heads = heads;
  fields.Int(Concat(architecture, ".attention.head_count_kv"), 1, INT32_MAX, kv_heads);

  std::vector<Tensor> tensors;
  for (const Tensor& tensor : model.tensors) {
    if (tensor.name == kGgufRopeFactors) continue;
    Tensor& renamed = tensors.emplace_back(tensor);
    renamed.name_in_file = tensor.name;
    if (family == nullptr) continue;
    renamed.name = Rename(*family, &TensorName::gguf, &TensorName::hugging_face, tensor.name);
    renamed.interleaved_heads =
        family->InterleavedHeads(renamed.name, static_cast<int>(heads), static_cast<int>(kv_heads));
  }
  return tensors;
}

}  // namespace baton
