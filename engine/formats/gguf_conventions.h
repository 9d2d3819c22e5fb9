// SPDX-License-Identifier: Apache-2.0
// Names and row orders that llama.cpp defines for GGUF files, beyond the format itself.
#pragma once

#include <cstdint>
#include <string_view>

namespace baton {

// Tensor [head_dim / 2]: Llama 3's RoPE scaling divides frequency i by element i.
inline constexpr std::string_view kGgufRopeFactors = "rope_freqs.weight";

inline constexpr std::string_view kGgufTokenTypes = "tokenizer.ggml.token_type";
enum class GgufTokenType : int32_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

// Special tokens that only chat templates use. The key tokenizer.ggml.<key>_token_id corresponds to <name> in
// tokenizer_config.json.
struct GgufSpecialToken {
  std::string_view key;
  std::string_view name;
};
inline constexpr GgufSpecialToken kGgufSpecialTokens[] = {{"unknown", "unk_token"},
                                                          {"seperator", "sep_token"},  // llama.cpp's spelling
                                                          {"padding", "pad_token"},
                                                          {"cls", "cls_token"},
                                                          {"mask", "mask_token"}};

// Maps row `row` of Llama's q or k in a GGUF file to the row in a Hugging Face checkpoint. In GGUF files, RoPE pairs
// rows 2i and 2i + 1 of a head. In Hugging Face checkpoints, RoPE pairs rows i and i + head_rows / 2.
constexpr int64_t HuggingFaceRow(int64_t row, int64_t head_rows) {
  const int64_t within = row % head_rows;
  return row - within + within / 2 + within % 2 * (head_rows / 2);
}

}  // namespace baton
