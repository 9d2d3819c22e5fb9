// SPDX-License-Identifier: Apache-2.0
// Turns a Hugging Face folder's description of a model into GGUF metadata: the inverse of
// engine/formats/gguf_convert.h.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/formats/gguf_writer.h"
#include "engine/model/config.h"
#include "text/assets/asset_files.h"

namespace baton {

// Adds the architecture's sizes and constants. Llama 3's rotary scaling needs a tensor besides: RopeFactors.
void AddConfig(const ModelConfig& config, GgufHeader& header);
// Returns rope_freqs.weight, [head_dim / 2]; empty when the model has no such tensor.
std::vector<float> RopeFactors(const ModelConfig& config);

// Adds general.file_type, the type of most tensors in the file.
void AddFileType(TensorType type, GgufHeader& header);

// Adds the tokenizer from the texts that LoadTextAssets (engine/formats/model_folder.h) returns. UNIMPLEMENTED when
// GGUF has no name for the pre-tokenizer.
absl::Status AddTokenizer(const AssetFiles& texts, int vocab_size, GgufHeader& header);

}  // namespace baton
