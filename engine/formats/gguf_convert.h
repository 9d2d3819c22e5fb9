// SPDX-License-Identifier: Apache-2.0
// Converts a GGUF model to the files and tensor names of a Hugging Face folder, so that other code handles one form.
//
// Pure functions. UNIMPLEMENTED names the unsupported feature. INVALID_ARGUMENT names the key or tensor and what was
// expected.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/families/family.h"
#include "engine/formats/gguf_model.h"

namespace baton {

// Returns the text of config.json. Supports the families of engine/families.
absl::StatusOr<std::string> GgufConfigJson(const GgufModel& model);

// Returns the model's tensors under their Hugging Face names; unknown names stay as they are. q and k of families that
// interleave these get `interleaved_heads`. Leaves out rope_freqs.weight, because GgufConfigJson turns that tensor into
// rope_scaling.
std::vector<Tensor> GgufTensors(const GgufModel& model);

// Returns the GGUF name of the family's tensor with the name `hugging_face`; an unknown name stays as it is.
std::string GgufTensorName(const ModelFamily& family, std::string_view hugging_face);

// Returns file name -> text for tokenizer.json, tokenizer_config.json and generation_config.json, like LoadTextAssets
// (model_folder.h). Supports byte-level BPE and SentencePiece's BPE.
absl::StatusOr<std::map<std::string, std::string>> GgufTextAssets(const GgufModel& model);

}  // namespace baton
