// SPDX-License-Identifier: Apache-2.0
#include "cli/tools/inspect_model.h"

#include <algorithm>
#include <map>

#include "common/status_macros.h"
#include "engine/formats/checkpoint.h"
#include "engine/formats/gguf_model.h"
#include "engine/formats/model_folder.h"
#include "engine/kernels/backend.h"
#include "engine/kv/layout.h"

namespace baton {

absl::StatusOr<std::shared_ptr<const ModelAssets>> LoadModelAssets(const std::filesystem::path& model) {
  BATON_ASSIGN_OR_RETURN(const AssetFiles files, LoadTextAssets(model));
  return ModelAssets::Build(AssetsFingerprint(files), files);
}

absl::StatusOr<ModelReport> InspectModel(const std::filesystem::path& path) {
  BATON_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(path));
  ModelReport report;
  report.format = IsGgufPath(path) ? "gguf" : "safetensors";
  std::map<std::string, TypeReport> types;
  for (const Tensor& tensor : checkpoint.tensors()) {
    uint64_t parameters = 1;
    for (const int64_t size : tensor.shape) parameters *= size;
    types[tensor.type_name].supported = tensor.type.has_value();
    for (TypeReport* sum : {&types[tensor.type_name], &report.total}) {
      sum->tensors += 1;
      sum->parameters += parameters;
      sum->bytes += tensor.data.size();
      if (tensor.type.has_value()) sum->memory_bytes += PackedBytes(*tensor.type, parameters);
    }
  }
  for (auto& [name, type] : types) {
    type.type = name;
    report.types.push_back(type);
  }
  std::stable_sort(report.types.begin(), report.types.end(),
                   [](const TypeReport& a, const TypeReport& b) { return a.bytes > b.bytes; });

  const auto config = [&]() -> absl::StatusOr<ModelConfig> {
    BATON_ASSIGN_OR_RETURN(const ModelText json, LoadConfigJson(path));
    return ParseModelConfig(json.text, json.origin);
  }();
  report.config_status = config.status();
  if (config.ok()) report.config = *config;

  const absl::StatusOr<std::shared_ptr<const ModelAssets>> assets = LoadModelAssets(path);
  report.tokenizer_status = assets.status();
  if (assets.ok()) {
    const Tokenizer& tokenizer = *(*assets)->tokenizer;
    report.tokenizer_tokens = tokenizer.vocab_size();
    for (const TokenId id : (*assets)->end_tokens) {
      report.end_tokens.push_back({id, std::string(tokenizer.TokenBytes(id))});
    }
    report.chat_template_status = (*assets)->templates.status();
  }
  return report;
}

uint64_t KvBytesPerToken(const ModelConfig& config, KvType kv_dtype) {
  return KvLayout(config.layers, {config.kv_heads, config.head_dim, 1, kv_dtype}).row_bytes();
}

uint64_t TokensThatFit(const ModelReport& report, KvType kv_dtype, uint64_t memory_bytes) {
  if (!report.config || memory_bytes <= report.total.memory_bytes) return 0;
  return (memory_bytes - report.total.memory_bytes) / KvBytesPerToken(*report.config, kv_dtype);
}

}  // namespace baton
