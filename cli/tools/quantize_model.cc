// SPDX-License-Identifier: Apache-2.0
#include "cli/tools/quantize_model.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "cli/tools/gguf_metadata.h"
#include "cli/tools/row_stream.h"
#include "common/status_macros.h"
#include "common/strings.h"
#include "engine/formats/block_codec.h"
#include "engine/formats/checkpoint.h"
#include "engine/formats/gguf_conventions.h"
#include "engine/formats/gguf_convert.h"
#include "engine/formats/gguf_model.h"
#include "engine/formats/gguf_writer.h"
#include "engine/formats/model_folder.h"

namespace baton {
namespace {

// A tensor on its way into the file.
struct Job {
  std::string name;  // in the file
  Tensor tensor;     // interleaved_heads: set when the file's rows shall be interleaved, and the input's rows are not
  TensorType type = TensorType::kF32;
};

// The parts of the input that QuantizeModel needs.
struct Input {
  std::string origin;
  std::vector<MappedFile> files;
  std::optional<Checkpoint> checkpoint;
  std::vector<float> rope_factors;
  GgufHeader header;
  std::vector<Job> jobs;
};

absl::Status InvalidTensor(const Input& input, const Tensor& tensor, std::string_view what) {
  return absl::InvalidArgumentError(Concat(input.origin, ": tensor ", tensor.name, ": ", what));
}

absl::StatusOr<Input> FromGguf(const std::filesystem::path& path) {
  BATON_ASSIGN_OR_RETURN(GgufModel model, OpenGgufModel(path));
  Input input;
  input.origin = model.origin;
  for (const auto& [key, value] : model.metadata) {
    // Leave out the keys that describe the input file, not the model.
    if (!key.starts_with("split.") && key != "general.alignment") input.header.Add(key, value);
  }
  for (Tensor& tensor : model.tensors) input.jobs.push_back({tensor.name, std::move(tensor)});
  input.files = std::move(model.files);
  return input;
}

absl::StatusOr<Input> FromFolder(const std::filesystem::path& folder) {
  Input input;
  BATON_ASSIGN_OR_RETURN(const ModelText config_json, LoadConfigJson(folder));
  BATON_ASSIGN_OR_RETURN(const ModelConfig config, ParseModelConfig(config_json.text, config_json.origin));
  BATON_ASSIGN_OR_RETURN(const auto texts, LoadTextAssets(folder));
  BATON_ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::Open(folder));
  AddConfig(config, input.header);
  input.header.AddString("general.name", std::filesystem::weakly_canonical(folder).filename().string());
  BATON_RETURN_IF_ERROR(AddTokenizer(texts, config.vocab_size, input.header));
  input.origin = checkpoint.origin();
  for (const Tensor& tensor : checkpoint.tensors()) {
    if (tensor.name.ends_with(".rotary_emb.inv_freq")) continue;
    if (config.tied_embeddings && tensor.name == config.family->tensor(TensorRole::kHead).hugging_face) continue;
    Job& job = input.jobs.emplace_back(Job{GgufTensorName(*config.family, tensor.name), tensor});
    job.tensor.interleaved_heads = config.family->InterleavedHeads(tensor.name, config.heads, config.kv_heads);
  }
  input.rope_factors = RopeFactors(config);
  if (!input.rope_factors.empty()) {
    Job& job = input.jobs.emplace_back();
    job.name = job.tensor.name = kGgufRopeFactors;
    job.tensor.type = TensorType::kF32;
    job.tensor.shape = {static_cast<int64_t>(input.rope_factors.size())};
    job.tensor.data = std::as_bytes(std::span(input.rope_factors));
  }
  input.checkpoint = std::move(checkpoint);
  return input;
}

// Returns the name of the matrix that gives the logits.
std::string_view HeadName(const Input& input) {
  constexpr std::string_view kOwn = "output.weight";
  const bool own = std::any_of(input.jobs.begin(), input.jobs.end(), [&](const Job& job) { return job.name == kOwn; });
  return own ? kOwn : "token_embd.weight";
}

// Decides each tensor's type and adds the tensor to the header.
absl::Status Plan(const QuantizeOptions& options, Input& input) {
  const std::string_view head = HeadName(input);
  for (Job& job : input.jobs) {
    const Tensor& tensor = job.tensor;
    if (!tensor.type)
      return InvalidTensor(input, tensor, Concat("values of type ", tensor.type_name, " cannot be read"));
    if (tensor.shape.empty() || tensor.data.empty()) return InvalidTensor(input, tensor, "expected values");
    job.type = job.name == head ? options.head_type.value_or(options.type) : options.type;
    if (tensor.shape.size() == 1) job.type = TensorType::kF32;
    if (const int block = InfoOf(job.type).block_values; tensor.shape.back() % block != 0) {
      return InvalidTensor(input, tensor,
                           Concat("expected rows of a multiple of ", block, " values for ", InfoOf(job.type).name,
                                  ", got ", tensor.shape.back()));
    }
    if (tensor.interleaved_heads > 0 && tensor.shape.front() % (int64_t{2} * tensor.interleaved_heads) != 0) {
      return InvalidTensor(input, tensor, Concat("expected rows for ", tensor.interleaved_heads, " heads"));
    }
    input.header.AddTensor(job.name, tensor.shape, job.type);
  }
  return absl::OkStatus();
}

absl::Status WriteJob(const Job& job, int threads, GgufWriter& writer) {
  const Tensor& tensor = job.tensor;
  const int64_t cols = tensor.shape.back();
  const size_t source_bytes = BytesOf(*tensor.type, cols);
  const int64_t head_rows = tensor.interleaved_heads == 0 ? 1 : tensor.shape.front() / tensor.interleaved_heads;
  RowStream stream;
  stream.rows = static_cast<int64_t>(tensor.data.size() / source_bytes);
  stream.row_bytes = BytesOf(job.type, cols);
  stream.threads = threads;
  stream.make = [&](int64_t row, std::span<std::byte> out) {
    const std::byte* source = tensor.data.data() + HuggingFaceRow(row, head_rows) * source_bytes;
    if (*tensor.type == job.type) {  // rounding a second time would change the values
      std::memcpy(out.data(), source, out.size());
      return true;
    }
    std::vector<float> values(cols);
    DecodeBlocks(*tensor.type, source, cols, values.data());
    return EncodeBlocks(job.type, values, out.data());
  };
  stream.write = [&](std::span<const std::byte> bytes) { return writer.Write(bytes); };
  return StreamRows(stream);
}

}  // namespace

absl::StatusOr<QuantizedModel> QuantizeModel(const std::filesystem::path& in, const std::filesystem::path& out,
                                             const QuantizeOptions& options) {
  std::error_code ignored;
  if (std::filesystem::exists(out, ignored)) {
    return absl::AlreadyExistsError(Concat(out.string(), ": exists already"));
  }
  BATON_ASSIGN_OR_RETURN(Input input, IsGgufPath(in) ? FromGguf(in) : FromFolder(in));
  AddFileType(options.type, input.header);
  BATON_RETURN_IF_ERROR(Plan(options, input));
  BATON_ASSIGN_OR_RETURN(GgufWriter writer, GgufWriter::Create(out, input.header));
  QuantizedModel result;
  for (const Job& job : input.jobs) {
    const absl::Status status = WriteJob(job, options.threads, writer);
    if (absl::IsInvalidArgument(status)) return InvalidTensor(input, job.tensor, FromAbsl(status.message()));
    BATON_RETURN_IF_ERROR(status);
    result.bytes_in += job.tensor.data.size();
    if (job.tensor.shape.size() > 1) ++result.matrices;
  }
  BATON_RETURN_IF_ERROR(writer.Finish());
  result.bytes = writer.bytes();
  return result;
}

}  // namespace baton
