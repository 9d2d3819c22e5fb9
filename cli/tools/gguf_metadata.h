// What a GGUF file says of a model, from what a Hugging Face folder says: the way back from
// engine/formats/gguf_convert.h.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/formats/gguf_writer.h"
#include "engine/model/config.h"

namespace baton {

// The architecture's sizes and constants. What Llama 3's rotary scaling needs beside them is a tensor: RopeFactors.
void AddConfig(const ModelConfig& config, GgufHeader& header);
// rope_freqs.weight, [head_dim / 2]; empty when the model has none.
std::vector<float> RopeFactors(const ModelConfig& config);

// general.file_type, which says what most of a file's tensors are.
void AddFileType(TensorType type, GgufHeader& header);

// The tokenizer, from the texts that LoadTextAssets (engine/formats/model_folder.h) gives. UNIMPLEMENTED when GGUF has
// no name for its pre-tokenizer.
absl::Status AddTokenizer(const std::map<std::string, std::string>& texts, int vocab_size, GgufHeader& header);

}  // namespace baton
