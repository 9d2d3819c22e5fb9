// What a GGUF model says, in the words of a Hugging Face folder: so everything behind the files has one form to read.
// Pure functions of the model. UNIMPLEMENTED names what is not supported, INVALID_ARGUMENT the key or tensor and what
// was expected.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/formats/gguf_model.h"

namespace baton {

// The text of config.json. Llama and Qwen3.
absl::StatusOr<std::string> GgufConfigJson(const GgufModel& model);

// The model's tensors under the names of a Hugging Face checkpoint; a name without a counterpart stays. q and k of
// Llama are marked as interleaved. Without rope_freqs.weight: config.json says it.
std::vector<Tensor> GgufTensors(const GgufModel& model);

// What GGUF files call a tensor of a Hugging Face checkpoint; a name without a counterpart stays.
std::string GgufTensorName(std::string_view hugging_face);

// The texts that LoadTextAssets (model_folder.h) finds in a folder: tokenizer.json, tokenizer_config.json and
// generation_config.json. BPE, byte-level or SentencePiece's.
absl::StatusOr<std::map<std::string, std::string>> GgufTextAssets(const GgufModel& model);

}  // namespace baton
