// SPDX-License-Identifier: Apache-2.0
#include "engine/model/model.h"

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "common/strings.h"
#include "engine/formats/checkpoint.h"
#include "engine/formats/model_folder.h"
#include "engine/model/decoder.h"
#include "engine/model/weights.h"

namespace baton {
namespace {

constexpr int kMaxPageTokens = 1024;

std::string WeightsText(TensorType type, std::optional<TensorType> quantize) {
  std::string text = absl::AsciiStrToLower(ToAbsl(InfoOf(type).name));
  if (quantize.has_value()) absl::StrAppend(&text, "-to-", absl::AsciiStrToLower(ToAbsl(InfoOf(*quantize).name)));
  return text;
}

// Example: "LlamaForCausalLM-0f3a...-bf16/kv-f32x16/avx2-1/tp1".
std::string NumericsId(const ModelConfig& config, const std::string& weights, std::string_view fingerprint,
                       const KvLayout& layout, const Backend& backend) {
  return Concat(config.architecture_name, "-", fingerprint, "-", weights, "/kv-", Name(layout.dtype()), "x",
                layout.page_tokens(), "/", backend.family(), "-", backend.revision(), "/tp1");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> Model::Load(const std::filesystem::path& path, const ModelOptions& options) {
  if (options.page_tokens < 1 || options.page_tokens > kMaxPageTokens) {
    return absl::InvalidArgumentError(
        Concat("page_tokens is ", options.page_tokens, ", expected 1 to ", kMaxPageTokens));
  }
  BATON_ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend,
                         CreateBackend({options.device, options.threads, options.cpus, options.kernels}));
  if (options.times != nullptr) backend = TimeBackend(std::move(backend), options.times);

  BATON_ASSIGN_OR_RETURN(const ModelText config_json, LoadConfigJson(path));
  BATON_ASSIGN_OR_RETURN(ModelConfig config, ParseModelConfig(config_json.text, config_json.origin));
  BATON_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(path));
  // The fingerprint's samples map most of a large file. Releases these pages: the packed weights need the memory.
  const std::string fingerprint = ModelFingerprint(ComputationText(config), checkpoint.tensors());
  checkpoint.ReleasePages();
  BATON_ASSIGN_OR_RETURN(ModelWeights weights,
                         LoadWeights(config, checkpoint, options.quantize, *backend, options.progress));

  const KvType default_kv = weights.type == TensorType::kF32 ? KvType::kF32 : KvType::kBF16;
  const KvLayout layout(config.layers,
                        {config.kv_heads, config.head_dim, options.page_tokens, options.kv_dtype.value_or(default_kv)});
  std::string numerics_id =
      NumericsId(config, WeightsText(weights.type, options.quantize), fingerprint, layout, *backend);
  const TensorType weight_type = options.quantize.value_or(weights.type);
  return std::make_unique<Decoder>(std::move(config), layout, std::move(numerics_id), std::move(backend),
                                   std::move(weights), weight_type);
}

}  // namespace baton
