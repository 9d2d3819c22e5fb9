// SPDX-License-Identifier: Apache-2.0
// Qwen3, dense: Llama's form with norms of the q and k heads.
#pragma once

#include "engine/families/llama.h"

namespace baton {

inline constexpr ModelFamily kQwen3 = {.hugging_face = "Qwen3ForCausalLM",
                                       .gguf = "qwen3",
                                       .parts = {.head_norm = NormKind::kRms},
                                       .layer_prefix = kLlama.layer_prefix,
                                       .tensors = kLlama.tensors};

}  // namespace baton
