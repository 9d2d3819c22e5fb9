// What readers and writers of GGUF files must agree on beside the format itself, as llama.cpp has it.
#pragma once

#include <cstdint>
#include <string_view>

namespace baton {

// The tensor with the factors by which Llama 3's rotary scaling slows each frequency down, [head_dim / 2].
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

// Special tokens that only chat templates look at: tokenizer.ggml.<key>_token_id is tokenizer_config.json's <name>.
struct GgufSpecialToken {
  std::string_view key;
  std::string_view name;
};
inline constexpr GgufSpecialToken kGgufSpecialTokens[] = {{"unknown", "unk_token"},
                                                          {"seperator", "sep_token"},  // so spelled
                                                          {"padding", "pad_token"},
                                                          {"cls", "cls_token"},
                                                          {"mask", "mask_token"}};

// Llama's q and k rotate neighbouring rows of a head in GGUF files, where Hugging Face rotates those of its halves:
// which row of the latter's order, in a head of `head_rows` rows, is row `row` of the file.
constexpr int64_t HuggingFaceRow(int64_t row, int64_t head_rows) {
  const int64_t within = row % head_rows;
  return row - within + within / 2 + within % 2 * (head_rows / 2);
}

}  // namespace baton
