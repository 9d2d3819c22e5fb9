// SPDX-License-Identifier: Apache-2.0
// Llama 2 and 3, and the many models that share their form.
#pragma once

#include "engine/families/family.h"

namespace baton {

inline constexpr ModelFamily kLlama = {.hugging_face = "LlamaForCausalLM",
                                       .gguf = "llama",
                                       .gguf_interleaves_q_and_k = true,
                                       .parts = {},
                                       .layer_prefix = {"model.layers.", "blk."},
                                       .tensors = {{{"model.embed_tokens.weight", "token_embd.weight"},
                                                    {"model.norm.weight", "output_norm.weight"},
                                                    {"lm_head.weight", "output.weight"},
                                                    {"input_layernorm.weight", "attn_norm.weight"},
                                                    {"self_attn.q_proj.weight", "attn_q.weight"},
                                                    {"self_attn.k_proj.weight", "attn_k.weight"},
                                                    {"self_attn.v_proj.weight", "attn_v.weight"},
                                                    {"self_attn.q_norm.weight", "attn_q_norm.weight"},
                                                    {"self_attn.k_norm.weight", "attn_k_norm.weight"},
                                                    {"self_attn.o_proj.weight", "attn_output.weight"},
                                                    {"post_attention_layernorm.weight", "ffn_norm.weight"},
                                                    {"mlp.gate_proj.weight", "ffn_gate.weight"},
                                                    {"mlp.up_proj.weight", "ffn_up.weight"},
                                                    {"mlp.down_proj.weight", "ffn_down.weight"}}}};

}  // namespace baton
