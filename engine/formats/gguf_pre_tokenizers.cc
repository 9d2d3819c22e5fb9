#include "engine/formats/gguf_pre_tokenizers.h"

#include <algorithm>

#include "common/strings.h"

namespace baton {
namespace {

constexpr std::string_view kGpt2Words = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))";

constexpr std::string_view kLlama3Words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

const std::vector<GgufPreTokenizer>& All() {
  static const auto* const kAll = new std::vector<GgufPreTokenizer>{
      {.names = {"default"}, .patterns = {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2Words, R"(\p{N}+)", R"([0-9][0-9][0-9])"}},
      {.names = {"gpt-2"}, .gpt2_words = true},
      {.names = {"llama-bpe", "llama3", "llama-v3"},
       .patterns = {kLlama3Words},
       .ignore_merges = true,
       .add_bos = true},
      {.names = {"dbrx", "smaug-bpe"}, .patterns = {kLlama3Words}},
      {.names = {"qwen2"},
       .patterns =
           {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
       .nfc = true},
      {.names = {"smollm"}, .patterns = {R"(\p{N})"}, .gpt2_words = true},
      {.names = {"deepseek-coder"},
       .patterns = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)",
                    "[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+", R"(\p{N})"}},
  };
  return *kAll;
}

}  // namespace

const GgufPreTokenizer* FindGgufPreTokenizer(std::string_view name) {
  for (const GgufPreTokenizer& pre : All()) {
    if (std::find(pre.names.begin(), pre.names.end(), name) != pre.names.end()) return &pre;
  }
  return nullptr;
}

std::string_view NameGgufPreTokenizer(const GgufPreTokenizer& like) {
  for (const GgufPreTokenizer& pre : All()) {
    if (pre.patterns == like.patterns && pre.gpt2_words == like.gpt2_words && pre.nfc == like.nfc &&
        pre.ignore_merges == like.ignore_merges) {
      return pre.names.front();
    }
  }
  return {};
}

std::string GgufPreTokenizerNames() {
  std::string text;
  for (const GgufPreTokenizer& pre : All()) {
    for (const std::string_view name : pre.names) Append(text, text.empty() ? "" : ", ", name);
  }
  return text;
}

}  // namespace baton
