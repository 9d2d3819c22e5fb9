// SPDX-License-Identifier: Apache-2.0
#include "engine/model/config.h"

#include <cstdint>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/json.h"
#include "common/status_macros.h"
#include "common/strings.h"

namespace baton {
namespace {

using Json = nlohmann::json;

// Bounds far above the sizes of published models. With these bounds no product of sizes overflows.
constexpr int kMaxWidth = 1 << 18;  // hidden_size, heads x head_dim
constexpr int kMaxFfn = 1 << 20;
constexpr int kMaxVocab = 1 << 20;  // the sampler's sums are exact up to this size
constexpr int kMaxLayers = 1024;
constexpr int kMaxHeads = 1024;
constexpr int kMaxHeadDim = 1024;
constexpr int kMaxPositions = 1'000'000;               // the range in which rotary angles are exact
constexpr int64_t kMaxRopeEntries = int64_t{1} << 27;  // positions x head_dim

absl::Status Unimplemented(std::string_view origin, std::string_view field, std::string_view why) {
  return absl::UnimplementedError(Concat(origin, ": ", field, ": ", why));
}

absl::Status ReadArchitecture(JsonFields& fields, std::string_view origin, ModelConfig& config) {
  const Json* list = fields.Required("architectures").Find("architectures");
  BATON_RETURN_IF_ERROR(fields.status());
  if (!list->is_array() || list->size() != 1 || !list->front().is_string()) {
    fields.Expected("architectures", "a list of one name");
    return fields.status();
  }
  config.architecture_name = list->front().get<std::string>();
  config.family = FindHuggingFaceFamily(config.architecture_name);
  if (config.family != nullptr) return absl::OkStatus();
  return Unimplemented(
      origin, "architectures",
      Concat("unknown architecture ", list->front().dump(), ", expected one of ", HuggingFaceFamilyNames()));
}

void ReadSizes(JsonFields& fields, ModelConfig& config) {
  fields.Required("hidden_size").Int("hidden_size", 1, kMaxWidth, config.hidden_size);
  fields.Required("num_hidden_layers").Int("num_hidden_layers", 1, kMaxLayers, config.layers);
  fields.Required("num_attention_heads").Int("num_attention_heads", 1, kMaxHeads, config.heads);
  config.kv_heads = config.heads;
  fields.Int("num_key_value_heads", 1, kMaxHeads, config.kv_heads);
  config.head_dim = config.heads > 0 ? config.hidden_size / config.heads : 0;
  fields.Int("head_dim", 1, kMaxHeadDim, config.head_dim);
  fields.Required("intermediate_size").Int("intermediate_size", 1, kMaxFfn, config.ffn_size);
  fields.Required("vocab_size").Int("vocab_size", 1, kMaxVocab, config.vocab_size);
  fields.Required("max_position_embeddings").Int("max_position_embeddings", 1, kMaxPositions, config.max_positions);
}

void CheckSizes(JsonFields& fields, const ModelConfig& config) {
  if (!fields.status().ok()) return;
  if (fields.Find("head_dim") == nullptr && config.hidden_size % config.heads != 0) {
    fields.Expected("hidden_size", Concat("a multiple of the ", config.heads, " heads"));
  }
  if (config.head_dim % 2 != 0 || config.head_dim > kMaxHeadDim) {
    fields.Expected("head_dim", Concat("an even number up to ", kMaxHeadDim, " (default here: ", config.head_dim, ")"));
  }
  if (config.heads % config.kv_heads != 0) {
    fields.Expected("num_key_value_heads", Concat("a divisor of the ", config.heads, " heads"));
  }
  if (config.heads * config.head_dim > kMaxWidth) {
    fields.Expected("num_attention_heads", Concat("heads x head_dim of at most ", kMaxWidth));
  }
  if (int64_t{config.max_positions} * config.head_dim > kMaxRopeEntries) {
    fields.Expected("max_position_embeddings", Concat("positions x head_dim of at most ", kMaxRopeEntries));
  }
}

// Refuses fields that would change the computation and are not supported.
absl::Status RefuseUnsupported(JsonFields& fields, std::string_view origin, const LayerParts& parts) {
  for (const std::string_view field : {"attention_bias", "mlp_bias"}) {
    bool set = false;
    fields.Bool(field, set);
    if (set) return Unimplemented(origin, field, "biases are not supported, expected false");
  }
  for (const std::string_view field : {"hidden_act", "hidden_activation"}) {
    const std::string_view expected = ConfigName(parts.feed_forward);
    std::string activation(expected);
    fields.String(field, activation);
    if (activation != expected) {
      return Unimplemented(origin, field, Concat("unknown activation \"", activation, "\", expected ", expected));
    }
  }
  bool sliding = fields.Find("sliding_window") != nullptr;
  fields.Bool("use_sliding_window", sliding);
  if (sliding) return Unimplemented(origin, "sliding_window", "sliding-window attention is not supported");
  if (const Json* types = fields.Find("layer_types"); types != nullptr) {
    for (const Json& type : *types) {
      if (type != ConfigName(parts.attention)) {
        return Unimplemented(origin, "layer_types", Concat("only ", ConfigName(parts.attention), " is supported"));
      }
    }
  }
  if (fields.Find("quantization_config") != nullptr) {
    return Unimplemented(origin, "quantization_config", "quantized weights are not supported");
  }
  double rotary_part = 1.0;
  fields.Number("partial_rotary_factor", 0, 1, rotary_part);
  if (rotary_part != 1.0) return Unimplemented(origin, "partial_rotary_factor", "expected 1: whole heads are rotated");
  return fields.status();
}

absl::Status ReadScaling(const Json& json, const std::string& origin, RopeConfig& rope) {
  JsonFields fields(json, origin);
  std::string type = "default";
  fields.String("type", type).String("rope_type", type);  // the older and the newer key
  fields.Number("rope_theta", 1, 1e12, rope.theta);
  constexpr double kMaxFactor = 1e6;
  if (type == "default") return fields.status();
  fields.Required("factor").Number("factor", 1, kMaxFactor, rope.factor);
  if (type == "linear") {
    rope.scaling = RopeConfig::Scaling::kLinear;
  } else if (type == "llama3") {
    rope.scaling = RopeConfig::Scaling::kLlama3;
    fields.Required("low_freq_factor").Number("low_freq_factor", 1e-6, kMaxFactor, rope.low_freq_factor);
    fields.Required("high_freq_factor").Number("high_freq_factor", 1e-6, kMaxFactor, rope.high_freq_factor);
    fields.Required("original_max_position_embeddings")
        .Number("original_max_position_embeddings", 1, kMaxPositions, rope.original_max_position);
    if (rope.high_freq_factor <= rope.low_freq_factor) fields.Expected("high_freq_factor", "more than low_freq_factor");
  } else {
    return Unimplemented(origin, "type", Concat("unknown scaling \"", type, "\", expected linear or llama3"));
  }
  return fields.status();
}

absl::Status ReadRope(JsonFields& fields, std::string_view origin, RopeConfig& rope) {
  fields.Number("rope_theta", 1, 1e12, rope.theta);
  for (const std::string_view field : {"rope_scaling", "rope_parameters"}) {  // the older and the newer field
    const Json* scaling = fields.Find(field);
    if (scaling != nullptr) BATON_RETURN_IF_ERROR(ReadScaling(*scaling, Concat(origin, ": ", field), rope));
  }
  return fields.status();
}

}  // namespace

absl::StatusOr<ModelConfig> ParseModelConfig(std::string_view json, std::string_view origin) {
  BATON_ASSIGN_OR_RETURN(const Json root, ParseJson(json, origin));
  JsonFields fields(root, origin);
  ModelConfig config;
  BATON_RETURN_IF_ERROR(ReadArchitecture(fields, origin, config));
  BATON_RETURN_IF_ERROR(RefuseUnsupported(fields, origin, config.family->parts));
  ReadSizes(fields, config);
  CheckSizes(fields, config);
  double eps = 1e-6;
  fields.Number("rms_norm_eps", 0, 1, eps).Bool("tie_word_embeddings", config.tied_embeddings);
  config.rms_norm_eps = static_cast<float>(eps);
  BATON_RETURN_IF_ERROR(ReadRope(fields, origin, config.rope));
  BATON_RETURN_IF_ERROR(fields.status());
  return config;
}

std::string ComputationText(const ModelConfig& c) {
  const RopeConfig& r = c.rope;
  return absl::StrFormat(
      "%s hidden %d layers %d heads %d/%d x %d ffn %d vocab %d eps %.9g tied %d rope %.17g %d %.17g %.17g %.17g %.17g",
      c.architecture_name, c.hidden_size, c.layers, c.heads, c.kv_heads, c.head_dim, c.ffn_size, c.vocab_size,
      c.rms_norm_eps, c.tied_embeddings, r.theta, static_cast<int>(r.scaling), r.factor, r.low_freq_factor,
      r.high_freq_factor, r.original_max_position);
}

}  // namespace baton
