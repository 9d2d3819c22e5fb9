// tokenizer.json and the texts beside it, from a GGUF model.
#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "common/status_macros.h"
#include "common/strings.h"
#include "engine/formats/gguf_conventions.h"
#include "engine/formats/gguf_convert.h"
#include "engine/formats/gguf_fields.h"
#include "engine/formats/gguf_pre_tokenizers.h"

namespace baton {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kModel = "tokenizer.ggml.model";
constexpr std::string_view kPre = "tokenizer.ggml.pre";
constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kMerges = "tokenizer.ggml.merges";

// Far above any model's; keeps a damaged file from filling memory.
constexpr size_t kMaxTokens = 1 << 20;
constexpr size_t kMaxMerges = 4 * kMaxTokens;

// Texts by which models end an answer. A file names one or two of them by id; of the others it only has the token.
constexpr std::string_view kEndTexts[] = {"<|eot_id|>",    "<|eom_id|>",    "<|im_end|>",      "<|end|>",
                                          "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "<|return|>",
                                          "<|endofturn|>", "<EOT>"};

// Throws nothing: text from a file need not be UTF-8.
absl::StatusOr<std::string> Dump(const Json& json, std::string_view origin) {
  try {
    return json.dump();
  } catch (const Json::type_error&) {
    return absl::InvalidArgumentError(Concat(origin, ": expected the text of the tokenizer to be UTF-8"));
  }
}

class TokenizerConverter {
 public:
  explicit TokenizerConverter(const GgufModel& model) : origin_(model.origin), fields_(model.metadata, model.origin) {}

  absl::StatusOr<std::map<std::string, std::string>> Convert() {
    BATON_RETURN_IF_ERROR(ReadKind());
    BATON_RETURN_IF_ERROR(ReadTokens());
    ReadSpecialTokens();
    BATON_ASSIGN_OR_RETURN(const Json tokenizer, TokenizerJson());
    const Json config = TokenizerConfigJson();
    BATON_RETURN_IF_ERROR(fields_.status());
    std::map<std::string, std::string> texts;
    BATON_ASSIGN_OR_RETURN(texts["tokenizer.json"], Dump(tokenizer, origin_));
    BATON_ASSIGN_OR_RETURN(texts["tokenizer_config.json"], Dump(config, origin_));
    BATON_ASSIGN_OR_RETURN(texts["generation_config.json"], Dump(GenerationConfigJson(), origin_));
    return texts;
  }

 private:
  absl::Status Invalid(std::string_view key, std::string_view expected) const {
    return absl::InvalidArgumentError(Concat(origin_, ": ", key, ": expected ", expected));
  }

  absl::Status ReadKind() {
    std::string_view kind;
    fields_.Required(kModel).String(kModel, kind);
    BATON_RETURN_IF_ERROR(fields_.status());
    if (kind != "gpt2") {
      return absl::UnimplementedError(Concat(origin_, ": ", kModel, ": tokenizer \"", kind, "\"",
                                             kind == "llama" ? " (SentencePiece)" : "",
                                             " is not supported, expected gpt2 (byte-level BPE)"));
    }
    std::string_view pre = "default";
    fields_.String(kPre, pre);
    pre_ = FindGgufPreTokenizer(pre);
    if (pre_ == nullptr) {
      return absl::UnimplementedError(Concat(origin_, ": ", kPre, ": unknown pre-tokenizer \"", pre,
                                             "\", expected one of ", GgufPreTokenizerNames()));
    }
    return fields_.status();
  }

  absl::Status ReadTokens() {
    fields_.Required(kTokens).Strings(kTokens, tokens_).Required(kMerges).Strings(kMerges, merges_);
    if (tokens_.size() > kMaxTokens) return Invalid(kTokens, Concat("at most ", kMaxTokens, " tokens"));
    if (merges_.size() > kMaxMerges) return Invalid(kMerges, Concat("at most ", kMaxMerges, " merges"));
    std::vector<int64_t> types(tokens_.size(), static_cast<int64_t>(GgufTokenType::kNormal));
    fields_.Ints(kGgufTokenTypes, types);
    BATON_RETURN_IF_ERROR(fields_.status());
    if (types.size() != tokens_.size())
      return Invalid(kGgufTokenTypes, Concat("one for each of ", tokens_.size(), " tokens"));
    std::set<std::string_view> seen;
    for (size_t id = 0; id < tokens_.size(); ++id) {
      if (types[id] < 1 || types[id] > 6) return Invalid(kGgufTokenTypes, Concat("1 to 6, got ", types[id]));
      types_.push_back(static_cast<GgufTokenType>(types[id]));
      if (!seen.insert(tokens_[id]).second) {
        return Invalid(kTokens, Concat("each token once, token ", id, " is there twice: ", tokens_[id]));
      }
    }
    return absl::OkStatus();
  }

  std::optional<size_t> TokenField(std::string_view name) {
    const std::string key = Concat("tokenizer.ggml.", name, "_token_id");
    int64_t id = -1;
    fields_.Int(key, 0, static_cast<int64_t>(tokens_.size()) - 1, id);
    if (id < 0) return std::nullopt;
    types_[id] = GgufTokenType::kControl;  // whatever the file says: it must be found in a text
    return id;
  }

  void ReadSpecialTokens() {
    bos_ = TokenField("bos");
    eos_ = TokenField("eos");
    if (eos_) ends_.insert(*eos_);
    for (const std::string_view name : {"eot", "eom"}) {
      if (const auto id = TokenField(name)) ends_.insert(*id);
    }
    for (size_t id = 0; id < tokens_.size(); ++id) {
      const bool is_end = std::find(std::begin(kEndTexts), std::end(kEndTexts), tokens_[id]) != std::end(kEndTexts);
      if (is_end && types_[id] == GgufTokenType::kControl) ends_.insert(id);
    }
  }

  absl::StatusOr<Json> TokenizerJson() {
    Json vocabulary = Json::object();
    Json added = Json::array();
    for (size_t id = 0; id < tokens_.size(); ++id) {
      switch (types_[id]) {
        case GgufTokenType::kUnused:  // stands for nothing: the original tokenizer does not have it
          break;
        case GgufTokenType::kUnknown:
        case GgufTokenType::kControl:
        case GgufTokenType::kUserDefined:
          added.push_back({{"id", id},
                           {"content", tokens_[id]},
                           {"single_word", false},
                           {"lstrip", false},
                           {"rstrip", false},
                           {"normalized", false},
                           {"special", types_[id] != GgufTokenType::kUserDefined}});
          break;
        default:
          vocabulary[std::string(tokens_[id])] = id;
      }
    }
    Json json;
    json["version"] = "1.0";
    json["added_tokens"] = std::move(added);
    json["normalizer"] = pre_->nfc ? Json{{"type", "NFC"}} : Json();
    json["pre_tokenizer"] = PreTokenizerJson();
    json["decoder"] = {{"type", "ByteLevel"}};
    json["model"] = {
        {"type", "BPE"}, {"ignore_merges", pre_->ignore_merges}, {"vocab", std::move(vocabulary)}, {"merges", merges_}};
    return json;
  }

  Json PreTokenizerJson() const {
    Json steps = Json::array();
    for (const std::string_view pattern : pre_->patterns) {
      steps.push_back(
          {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}});
    }
    steps.push_back({{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", pre_->gpt2_words}});
    return {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
  }

  Json TokenizerConfigJson() {
    Json json = Json::object();
    if (bos_) json["bos_token"] = tokens_[*bos_];
    if (eos_) json["eos_token"] = tokens_[*eos_];
    bool add_bos = pre_->add_bos && bos_.has_value();
    bool add_eos = false;
    fields_.Bool("tokenizer.ggml.add_bos_token", add_bos).Bool("tokenizer.ggml.add_eos_token", add_eos);
    json["add_bos_token"] = add_bos;
    json["add_eos_token"] = add_eos;
    std::string_view chat_template;
    fields_.String("tokenizer.chat_template", chat_template);
    if (!chat_template.empty()) json["chat_template"] = chat_template;
    return json;
  }

  Json GenerationConfigJson() const {
    Json json = Json::object();
    if (bos_) json["bos_token_id"] = *bos_;
    if (!ends_.empty()) json["eos_token_id"] = ends_;
    return json;
  }

  const std::string& origin_;
  GgufFields fields_;
  const GgufPreTokenizer* pre_ = nullptr;
  std::vector<std::string_view> tokens_;
  std::vector<std::string_view> merges_;
  std::vector<GgufTokenType> types_;
  std::optional<size_t> bos_;
  std::optional<size_t> eos_;
  std::set<size_t> ends_;
};

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> GgufTextAssets(const GgufModel& model) {
  return TokenizerConverter(model).Convert();
}

}  // namespace baton
