// SPDX-License-Identifier: Apache-2.0
#include "cli/tools/make_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "cli/tools/gguf_metadata.h"
#include "cli/tools/random_weights.h"
#include "cli/tools/row_stream.h"
#include "cli/tools/synthetic_vocabulary.h"
#include "common/status_macros.h"
#include "common/strings.h"
#include "engine/families/llama.h"
#include "engine/formats/block_codec.h"
#include "engine/formats/gguf_conventions.h"
#include "engine/formats/gguf_convert.h"
#include "engine/formats/gguf_writer.h"
#include "engine/formats/output_file.h"

namespace baton {
namespace {

// TinyLlama's own context has 2048 tokens. The longer context here allows measurements with long prompts.
constexpr ModelPreset kPresets[] = {
    {"110m", 768, 12, 12, 12, 64, 2048, 32000, 1024, true, 10000, std::nullopt},
    {"tinyllama-1.1b", 2048, 22, 32, 4, 64, 5632, 32000, 32768, false, 10000, std::nullopt},
    {"llama-3.2-1b", 2048, 16, 32, 8, 64, 8192, 128256, 131072, true, 500000, Llama3Scaling{32, 1, 4, 8192}},
    {"llama-3-8b", 4096, 32, 32, 8, 128, 14336, 128256, 8192, false, 500000, std::nullopt},
};

constexpr float kRmsNormEps = 1e-5f;
constexpr float kDeviation = 0.02f;  // as for most models at the start of training

struct Weight {
  std::string name;  // in GGUF
  std::vector<int64_t> shape;
  float deviation = 0;        // 0: a norm, all ones
  int interleaved_heads = 0;  // see TensorView
};

int64_t Count(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

std::vector<Weight> WeightsOf(const ModelPreset& p) {
  const int64_t hidden = p.hidden_size;
  const int64_t q_size = int64_t{p.heads} * p.head_dim;
  const int64_t kv_size = int64_t{p.kv_heads} * p.head_dim;
  // Weights whose output is added to the residual stream are smaller, so that the stream does not grow with the layers.
  const float residual = kDeviation / std::sqrt(2.0f * static_cast<float>(p.layers));
  std::vector<Weight> weights = {{"token_embd.weight", {p.vocab_size, hidden}, kDeviation}};
  for (int i = 0; i < p.layers; ++i) {
    const std::string layer = Concat("blk.", i, ".");
    weights.push_back({layer + "attn_norm.weight", {hidden}});
    weights.push_back({layer + "attn_q.weight", {q_size, hidden}, kDeviation, p.heads});
    weights.push_back({layer + "attn_k.weight", {kv_size, hidden}, kDeviation, p.kv_heads});
    weights.push_back({layer + "attn_v.weight", {kv_size, hidden}, kDeviation});
    weights.push_back({layer + "attn_output.weight", {hidden, q_size}, residual});
    weights.push_back({layer + "ffn_norm.weight", {hidden}});
    weights.push_back({layer + "ffn_gate.weight", {p.ffn_size, hidden}, kDeviation});
    weights.push_back({layer + "ffn_up.weight", {p.ffn_size, hidden}, kDeviation});
    weights.push_back({layer + "ffn_down.weight", {hidden, p.ffn_size}, residual});
  }
  weights.push_back({"output_norm.weight", {hidden}});
  if (!p.tied_embeddings) weights.push_back({"output.weight", {p.vocab_size, hidden}, kDeviation});
  return weights;
}

ModelConfig ConfigOf(const ModelPreset& p) {
  ModelConfig config;
  config.family = &kLlama;
  config.hidden_size = p.hidden_size;
  config.layers = p.layers;
  config.heads = p.heads;
  config.kv_heads = p.kv_heads;
  config.head_dim = p.head_dim;
  config.ffn_size = p.ffn_size;
  config.vocab_size = p.vocab_size;
  config.max_positions = p.max_positions;
  config.rms_norm_eps = kRmsNormEps;
  config.tied_embeddings = p.tied_embeddings;
  config.rope.theta = p.rope_theta;
  if (p.rope_scaling) {
    config.rope.scaling = RopeConfig::Scaling::kLlama3;
    config.rope.factor = p.rope_scaling->factor;
    config.rope.low_freq_factor = p.rope_scaling->low_freq_factor;
    config.rope.high_freq_factor = p.rope_scaling->high_freq_factor;
    config.rope.original_max_position = p.rope_scaling->original_max_position;
  }
  return config;
}

GgufHeader Metadata(const MakeModelOptions& options) {
  const SyntheticVocabulary vocabulary = MakeSyntheticVocabulary(options.preset.vocab_size);
  GgufHeader header;
  AddConfig(ConfigOf(options.preset), header);
  AddFileType(options.type, header);
  header.AddString("general.name", Concat("random ", options.preset.name, " ", options.seed));
  header.AddString("tokenizer.ggml.model", "gpt2");
  header.AddString("tokenizer.ggml.pre", "llama-bpe");
  header.AddStrings("tokenizer.ggml.tokens", vocabulary.tokens);
  header.AddTokenTypes(vocabulary.types);
  header.AddStrings("tokenizer.ggml.merges", vocabulary.merges);
  header.AddUint32("tokenizer.ggml.bos_token_id", vocabulary.bos);
  header.AddUint32("tokenizer.ggml.eos_token_id", vocabulary.eos);
  header.AddBool("tokenizer.ggml.add_bos_token", true);
  header.AddString("tokenizer.chat_template", vocabulary.chat_template);
  return header;
}

using Write = std::function<absl::Status(std::span<const std::byte>)>;

// Makes and writes weight `index` of the model.
absl::Status WriteWeight(const MakeModelOptions& options, const Weight& weight, uint64_t index, TensorType type,
                         const Write& write) {
  const int64_t cols = weight.shape.back();
  const bool interleaved = options.format == ModelFormat::kGguf && weight.interleaved_heads != 0;
  const int64_t head_rows = interleaved ? weight.shape.front() / weight.interleaved_heads : 1;
  RowStream stream;
  stream.rows = Count(weight.shape) / cols;
  stream.row_bytes = BytesOf(type, cols);
  stream.threads = options.threads;
  stream.make = [&](int64_t row, std::span<std::byte> out) {
    std::vector<float> values(cols, 1.0f);
    if (weight.deviation > 0) {
      FillRandomRow(options.seed, index, HuggingFaceRow(row, head_rows), weight.deviation, values);
    }
    return EncodeBlocks(type, values, out.data());
  };
  stream.write = write;
  return StreamRows(stream);
}

absl::Status CheckAbsent(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return absl::OkStatus();
  return absl::AlreadyExistsError(Concat(path.string(), ": exists already"));
}

absl::StatusOr<uint64_t> WriteGguf(const MakeModelOptions& options, const std::vector<Weight>& weights,
                                   const std::filesystem::path& path) {
  GgufHeader header = Metadata(options);
  const auto type_of = [&](const Weight& weight) { return weight.shape.size() == 1 ? TensorType::kF32 : options.type; };
  for (const Weight& weight : weights) header.AddTensor(weight.name, weight.shape, type_of(weight));
  const std::vector<float> factors = RopeFactors(ConfigOf(options.preset));
  if (!factors.empty()) {
    header.AddTensor(kGgufRopeFactors, {static_cast<int64_t>(factors.size())}, TensorType::kF32);
  }
  BATON_ASSIGN_OR_RETURN(GgufWriter writer, GgufWriter::Create(path, header));
  const Write write = [&writer](std::span<const std::byte> bytes) { return writer.Write(bytes); };
  for (size_t i = 0; i < weights.size(); ++i) {
    BATON_RETURN_IF_ERROR(WriteWeight(options, weights[i], i, type_of(weights[i]), write));
  }
  BATON_RETURN_IF_ERROR(writer.Write(std::as_bytes(std::span(factors))));
  BATON_RETURN_IF_ERROR(writer.Finish());
  return writer.bytes();
}

absl::StatusOr<uint64_t> WriteText(const std::filesystem::path& path, std::string_view text) {
  BATON_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  BATON_RETURN_IF_ERROR(file.Write(text));
  BATON_RETURN_IF_ERROR(file.Finish());
  return file.bytes();
}

// Returns config.json and the tokenizer's texts, as readers derive them from the same model in GGUF.
absl::StatusOr<std::map<std::string, std::string>> FolderTexts(const MakeModelOptions& options, GgufModel& model) {
  const std::vector<float> factors = RopeFactors(ConfigOf(options.preset));
  if (!factors.empty()) {
    Tensor& tensor = model.tensors.emplace_back();
    tensor.name = kGgufRopeFactors;
    tensor.type = TensorType::kF32;
    tensor.data = std::as_bytes(std::span(factors));
  }
  BATON_ASSIGN_OR_RETURN(auto texts, GgufTextAssets(model));
  BATON_ASSIGN_OR_RETURN(texts["config.json"], GgufConfigJson(model));
  if (!factors.empty()) model.tensors.pop_back();
  return texts;
}

std::string SafetensorsHeader(const std::vector<Tensor>& tensors, TensorType type) {
  nlohmann::json header;
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    const uint64_t bytes = BytesOf(type, Count(tensor.shape));
    header[tensor.name] = {
        {"dtype", InfoOf(type).name}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes + text;
}

absl::StatusOr<uint64_t> WriteFolder(const MakeModelOptions& options, const std::vector<Weight>& weights,
                                     const std::filesystem::path& folder) {
  const std::string metadata = Metadata(options).Bytes();
  BATON_ASSIGN_OR_RETURN(const GgufFile file, ParseGguf(std::as_bytes(std::span(metadata)), folder.string()));
  GgufModel model = {.origin = folder.string(), .files = {}, .metadata = file.metadata, .tensors = {}};
  for (const Weight& weight : weights) {
    Tensor& tensor = model.tensors.emplace_back();
    tensor.name = weight.name;
    tensor.type = options.type;
    tensor.shape = weight.shape;
  }
  BATON_ASSIGN_OR_RETURN(const auto texts, FolderTexts(options, model));

  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return absl::ErrnoToStatus(error.value(), Concat(folder.string(), ": cannot be created"));
  uint64_t bytes = 0;
  for (const auto& [name, text] : texts) {
    BATON_ASSIGN_OR_RETURN(const uint64_t written, WriteText(folder / name, text));
    bytes += written;
  }
  BATON_ASSIGN_OR_RETURN(OutputFile output, OutputFile::Create(folder / "model.safetensors"));
  BATON_RETURN_IF_ERROR(output.Write(SafetensorsHeader(GgufTensors(model), options.type)));
  const Write write = [&output](std::span<const std::byte> data) { return output.Write(data); };
  for (size_t i = 0; i < weights.size(); ++i) {
    BATON_RETURN_IF_ERROR(WriteWeight(options, weights[i], i, options.type, write));
  }
  BATON_RETURN_IF_ERROR(output.Finish());
  return bytes + output.bytes();
}

}  // namespace

std::span<const ModelPreset> ModelPresets() { return kPresets; }

const ModelPreset* FindModelPreset(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kPresets), std::end(kPresets), [&](const auto& p) { return p.name == name; });
  return found == std::end(kPresets) ? nullptr : found;
}

absl::StatusOr<MadeModel> MakeModel(const MakeModelOptions& options, const std::filesystem::path& path) {
  if (options.format == ModelFormat::kSafetensors && IsQuantized(options.type)) {
    return absl::InvalidArgumentError(
        Concat("type for safetensors: expected f32, f16 or bf16 (or a GGUF file), got ", InfoOf(options.type).name));
  }
  if (!CanEncode(options.type)) {
    return absl::InvalidArgumentError(Concat("values cannot be written as ", InfoOf(options.type).name));
  }
  BATON_RETURN_IF_ERROR(CheckAbsent(path));
  const std::vector<Weight> weights = WeightsOf(options.preset);
  MadeModel made;
  for (const Weight& weight : weights) made.parameters += Count(weight.shape);
  const bool gguf = options.format == ModelFormat::kGguf;
  BATON_ASSIGN_OR_RETURN(made.bytes, gguf ? WriteGguf(options, weights, path) : WriteFolder(options, weights, path));
  return made;
}

}  // namespace baton
