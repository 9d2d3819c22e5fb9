// SPDX-License-Identifier: Apache-2.0
#include "cli/tools/gguf_metadata.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <variant>

#include "common/json.h"
#include "common/status_macros.h"
#include "common/strings.h"
#include "engine/formats/gguf_conventions.h"
#include "engine/formats/gguf_pre_tokenizers.h"
#include "engine/formats/rope_factors.h"
#include "text/assets/generation_config.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_config.h"

namespace baton {
namespace {

using Json = nlohmann::json;

absl::Status Unsupported(std::string_view what) {
  return absl::UnimplementedError(Concat("tokenizer.json: ", what, " has no counterpart in GGUF"));
}

// Tokenizer::Create has accepted `json`, so the types of its fields are right.
absl::Status ReadWords(const Json& json, GgufPreTokenizer& words) {
  const std::string type = json.value("type", "");
  if (type == "Sequence") {
    for (const Json& step : json["pretokenizers"]) BATON_RETURN_IF_ERROR(ReadWords(step, words));
  } else if (type == "Split") {
    const bool plain = json.value("behavior", "") == "Isolated" && !json.value("invert", false);
    if (!plain || !json["pattern"].contains("Regex")) return Unsupported("this pre_tokenizer");
    words.patterns.push_back(json["pattern"]["Regex"].get_ref<const std::string&>());
  } else if (type == "ByteLevel") {
    if (json.value("add_prefix_space", true)) return Unsupported("add_prefix_space");
    words.gpt2_words = json.value("use_regex", true);
  } else {
    return Unsupported(Concat("pre-tokenizer '", type, "'"));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> NormalizesToNfc(const Json& json) {
  if (json.is_null()) return false;
  const std::string type = json.value("type", "");
  if (type == "NFC") return true;
  if (type != "Sequence") return Unsupported(Concat("normalizer '", type, "'"));
  bool nfc = false;
  for (const Json& step : json["normalizers"]) {
    BATON_ASSIGN_OR_RETURN(const bool also, NormalizesToNfc(step));
    nfc = nfc || also;
  }
  return nfc;
}

absl::StatusOr<std::string> PreTokenizerName(const Json& tokenizer) {
  if (tokenizer["decoder"].value("type", "") != "ByteLevel") return Unsupported("a vocabulary that is not byte-level");
  GgufPreTokenizer words;
  BATON_RETURN_IF_ERROR(ReadWords(tokenizer["pre_tokenizer"], words));
  if (tokenizer.contains("normalizer")) {
    BATON_ASSIGN_OR_RETURN(words.nfc, NormalizesToNfc(tokenizer["normalizer"]));
  }
  words.ignore_merges = tokenizer["model"].value("ignore_merges", false);
  const std::string_view name = NameGgufPreTokenizer(words);
  if (name.empty()) return Unsupported("this pre_tokenizer");
  return std::string(name);
}

struct Token {
  std::string text;
  GgufTokenType type = GgufTokenType::kUnused;
};

absl::StatusOr<std::vector<Token>> ReadTokens(const Json& tokenizer, int vocab_size) {
  std::vector<Token> tokens(vocab_size);
  for (int id = 0; id < vocab_size; ++id) tokens[id].text = Concat("[PAD", id, "]");  // as llama.cpp names them
  const auto set = [&](int64_t id, const std::string& text, GgufTokenType type) {
    if (id < vocab_size) tokens[id] = {text, type};
    return id < vocab_size ? absl::OkStatus()
                           : absl::InvalidArgumentError(Concat("tokenizer.json: token ", id, " is past the ",
                                                               vocab_size, " of the embedding"));
  };
  for (const auto& [text, id] : tokenizer["model"]["vocab"].items()) {
    BATON_RETURN_IF_ERROR(set(id.get<int64_t>(), text, GgufTokenType::kNormal));
  }
  if (!tokenizer.contains("added_tokens")) return tokens;
  for (const Json& added : tokenizer["added_tokens"]) {
    for (const char* flag : {"lstrip", "rstrip", "single_word"}) {
      if (added.value(flag, false)) return Unsupported(Concat(flag, " of an added token"));
    }
    const auto type = added.value("special", false) ? GgufTokenType::kControl : GgufTokenType::kUserDefined;
    BATON_RETURN_IF_ERROR(set(added["id"].get<int64_t>(), added["content"], type));
  }
  return tokens;
}

std::vector<std::string> ReadMerges(const Json& tokenizer) {
  std::vector<std::string> merges;
  for (const Json& merge : tokenizer["model"]["merges"]) {
    merges.push_back(merge.is_string() ? merge.get<std::string>()
                                       : Concat(merge[0].get<std::string>(), " ", merge[1].get<std::string>()));
  }
  return merges;
}

std::optional<TokenId> IdOfSpecialToken(const Tokenizer& tokenizer, const TokenizerConfig& config,
                                        std::string_view name) {
  for (const auto& [its_name, value] : config.more_special_tokens) {
    const auto* const text = std::get_if<std::string>(&value.data());
    if (its_name == name && text != nullptr) return tokenizer.IdOf(*text);
  }
  return std::nullopt;
}

// Adds the tokens by role, and whether the tokenizer puts them around a text.
absl::Status AddSpecialTokens(const Tokenizer& tokenizer, const TokenizerConfig& config,
                              const GenerationConfig& generation, GgufHeader& header) {
  BATON_ASSIGN_OR_RETURN(const std::vector<TokenId> around, tokenizer.Encode("", true));
  const auto is_around = [&](std::optional<TokenId> id) {
    return id && std::find(around.begin(), around.end(), *id) != around.end();
  };
  if (tokenizer.bos()) header.AddUint32("tokenizer.ggml.bos_token_id", *tokenizer.bos());
  header.AddBool("tokenizer.ggml.add_bos_token", is_around(tokenizer.bos()));

  std::vector<TokenId> ends = generation.eos_token_ids;
  const std::optional<TokenId> eos = config.eos_token ? tokenizer.IdOf(*config.eos_token) : std::nullopt;
  if (eos) {
    std::erase(ends, *eos);
    ends.insert(ends.begin(), *eos);
  }
  // GGUF has keys for three end tokens. Readers find most others by their text.
  constexpr std::string_view kEndKeys[] = {"eos", "eot", "eom"};
  for (size_t i = 0; i < std::min(ends.size(), std::size(kEndKeys)); ++i) {
    header.AddUint32(Concat("tokenizer.ggml.", kEndKeys[i], "_token_id"), ends[i]);
  }
  header.AddBool("tokenizer.ggml.add_eos_token", eos != tokenizer.bos() && is_around(eos));
  for (const auto& [key, name] : kGgufSpecialTokens) {
    const std::optional<TokenId> id = IdOfSpecialToken(tokenizer, config, name);
    if (id) header.AddUint32(Concat("tokenizer.ggml.", key, "_token_id"), *id);
  }
  return absl::OkStatus();
}

}  // namespace

void AddConfig(const ModelConfig& config, GgufHeader& header) {
  const std::string name(config.family->gguf);
  const auto add = [&](std::string_view key, int value) {
    header.AddUint32(Concat(name, ".", key), static_cast<uint32_t>(value));
  };
  header.AddString("general.architecture", name);
  add("context_length", config.max_positions);
  add("embedding_length", config.hidden_size);
  add("block_count", config.layers);
  add("feed_forward_length", config.ffn_size);
  add("attention.head_count", config.heads);
  add("attention.head_count_kv", config.kv_heads);
  add("attention.key_length", config.head_dim);
  add("attention.value_length", config.head_dim);
  add("rope.dimension_count", config.head_dim);
  add("vocab_size", config.vocab_size);
  header.AddFloat32(Concat(name, ".attention.layer_norm_rms_epsilon"), config.rms_norm_eps);
  header.AddFloat32(Concat(name, ".rope.freq_base"), static_cast<float>(config.rope.theta));
  if (config.rope.scaling == RopeConfig::Scaling::kLinear) {
    header.AddString(Concat(name, ".rope.scaling.type"), "linear");
    header.AddFloat32(Concat(name, ".rope.scaling.factor"), static_cast<float>(config.rope.factor));
  } else if (config.rope.scaling == RopeConfig::Scaling::kLlama3 &&
             config.rope.original_max_position != Llama3Scaling().original_max_position) {
    add("rope.scaling.original_context_length", static_cast<int>(config.rope.original_max_position));
  }
}

std::vector<float> RopeFactors(const ModelConfig& config) {
  const RopeConfig& rope = config.rope;
  if (rope.scaling != RopeConfig::Scaling::kLlama3) return {};
  return Llama3RopeFactors({rope.factor, rope.low_freq_factor, rope.high_freq_factor, rope.original_max_position},
                           rope.theta, config.head_dim);
}

void AddFileType(TensorType type, GgufHeader& header) {
  const auto number = [type]() -> uint32_t {  // as in llama.cpp
    switch (type) {
      case TensorType::kF16: return 1;
      case TensorType::kBF16: return 32;
      case TensorType::kQ8_0: return 7;
      case TensorType::kQ4_0: return 2;
      default: return 0;
    }
  };
  header.AddUint32("general.file_type", number());
  header.AddUint32("general.quantization_version", 2);
}

absl::Status AddTokenizer(const AssetFiles& texts, int vocab_size, GgufHeader& header) {
  const std::string_view tokenizer_json = FileOrEmpty(texts, "tokenizer.json");
  const std::string_view config_json = FileOrEmpty(texts, "tokenizer_config.json");
  BATON_ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer::Create(tokenizer_json, config_json));
  BATON_ASSIGN_OR_RETURN(const Json json, ParseJson(tokenizer_json, "tokenizer.json"));
  BATON_ASSIGN_OR_RETURN(const TokenizerConfig config, ParseTokenizerConfig(config_json));
  BATON_ASSIGN_OR_RETURN(const GenerationConfig generation,
                         ParseGenerationConfig(FileOrEmpty(texts, "generation_config.json"), "generation_config.json"));

  BATON_ASSIGN_OR_RETURN(const std::string pre, PreTokenizerName(json));
  BATON_ASSIGN_OR_RETURN(const std::vector<Token> tokens, ReadTokens(json, vocab_size));
  std::vector<std::string> words;
  std::vector<GgufTokenType> types;
  for (const Token& token : tokens) {
    words.push_back(token.text);
    types.push_back(token.type);
  }
  header.AddString("tokenizer.ggml.model", "gpt2");
  header.AddString("tokenizer.ggml.pre", pre);
  header.AddStrings("tokenizer.ggml.tokens", words);
  header.AddTokenTypes(types);
  header.AddStrings("tokenizer.ggml.merges", ReadMerges(json));
  BATON_RETURN_IF_ERROR(AddSpecialTokens(*tokenizer, config, generation, header));
  const auto add_template = [&](const char* key, const std::string& file, const std::optional<std::string>& of_config) {
    const std::string_view text = FileOrEmpty(texts, file);
    if (!text.empty() || of_config) header.AddString(key, text.empty() ? std::string_view(*of_config) : text);
  };
  add_template("tokenizer.chat_template", "chat_template.jinja", config.chat_template);
  add_template("tokenizer.chat_template.tool_use", "additional_chat_templates/tool_use.jinja", config.tool_template);
  return absl::OkStatus();
}

}  // namespace baton
