// SPDX-License-Identifier: Apache-2.0
// Converts a GGUF model's metadata to tokenizer.json, tokenizer_config.json and generation_config.json.
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
constexpr std::string_view kScores = "tokenizer.ggml.scores";

constexpr std::string_view kSpace = "\u2581";  // SentencePiece's symbol for a space

// Limits far above every real model, so that a damaged file cannot fill memory.
constexpr size_t kMaxTokens = 1 << 20;
constexpr size_t kMaxMerges = 4 * kMaxTokens;

// Tokens by which models end an answer. A GGUF file marks at most three end tokens by id (eos, eot, eom). Other end
// tokens are recognized by their text.
constexpr std::string_view kEndTexts[] = {"<|eot_id|>",    "<|eom_id|>",    "<|im_end|>",      "<|end|>",
                                          "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "<|return|>",
                                          "<|endofturn|>", "<EOT>"};

// Returns json.dump(). INVALID_ARGUMENT when a string from the file is not UTF-8, where dump() would throw.
absl::StatusOr<std::string> Dump(const Json& json, std::string_view origin) {
  try {
    return json.dump();
  } catch (const Json::type_error&) {
    return absl::InvalidArgumentError(Concat(origin, ": tokenizer.ggml: expected all strings to be valid UTF-8"));
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
    if (kind != "gpt2" && kind != "gemma4" && kind != "llama") {
      return absl::UnimplementedError(
          Concat(origin_, ": ", kModel, ": tokenizer \"", kind,
                 "\" is not supported, expected gpt2 (byte-level BPE), gemma4 or llama (SentencePiece's BPE)"));
    }
    is_sentencepiece_ = kind == "llama";
    if (is_sentencepiece_) return absl::OkStatus();  // has no pre-tokenizer
    std::string_view pre = "default";
    fields_.String(kPre, pre);
    if (kind == "gemma4") pre = kind;
    pre_ = FindGgufPreTokenizer(pre);
    if (pre_ == nullptr) {
      return absl::UnimplementedError(Concat(origin_, ": ", kPre, ": unknown pre-tokenizer \"", pre,
                                             "\", expected one of ", GgufPreTokenizerNames()));
    }
    return fields_.status();
  }

  absl::Status ReadTokens() {
    fields_.Required(kTokens).Strings(kTokens, tokens_);
    if (is_sentencepiece_) {
      fields_.Required(kScores).Floats(kScores, scores_);
    } else {
      fields_.Required(kMerges).Strings(kMerges, merges_);
    }
    if (tokens_.size() > kMaxTokens) return Invalid(kTokens, Concat("at most ", kMaxTokens, " tokens"));
    if (merges_.size() > kMaxMerges) return Invalid(kMerges, Concat("at most ", kMaxMerges, " merges"));
    std::vector<int64_t> types(tokens_.size(), static_cast<int64_t>(GgufTokenType::kNormal));
    fields_.Ints(kGgufTokenTypes, types);
    BATON_RETURN_IF_ERROR(fields_.status());
    if (is_sentencepiece_ && scores_.size() != tokens_.size()) {
      return Invalid(kScores, Concat("one for each of ", tokens_.size(), " tokens, got ", scores_.size()));
    }
    if (types.size() != tokens_.size()) {
      return Invalid(kGgufTokenTypes, Concat("one for each of ", tokens_.size(), " tokens, got ", types.size()));
    }
    std::set<std::string_view> seen;
    for (size_t id = 0; id < tokens_.size(); ++id) {
      if (types[id] < 1 || types[id] > 6) return Invalid(kGgufTokenTypes, Concat("1 to 6, got ", types[id]));
      types_.push_back(static_cast<GgufTokenType>(types[id]));
      if (!seen.insert(tokens_[id]).second) {
        return Invalid(kTokens, Concat("each token once, got \"", tokens_[id], "\" again as token ", id));
      }
    }
    return absl::OkStatus();
  }

  std::optional<size_t> TokenField(std::string_view name) {
    const std::string key = Concat("tokenizer.ggml.", name, "_token_id");
    int64_t id = -1;
    fields_.Int(key, 0, static_cast<int64_t>(tokens_.size()) - 1, id);
    if (id < 0) return std::nullopt;
    MakeControl(id);
    return id;
  }

  // Overrides the type from the file, because a normal token is not recognized within a text.
  void MakeControl(size_t id) {
    if (types_[id] == GgufTokenType::kNormal) made_control_.insert(tokens_[id]);
    types_[id] = GgufTokenType::kControl;
  }

  // Drops merges of tokens that MakeControl removed from the vocabulary. Merges in tokenizer.json must refer to the
  // vocabulary.
  std::vector<std::string_view> MergesOfWords() const {
    if (made_control_.empty()) return merges_;
    std::vector<std::string_view> merges;
    for (const std::string_view merge : merges_) {
      const size_t space = std::min(merge.find(' ', 1), merge.size());
      const std::string left(merge.substr(0, space));
      const std::string right(merge.substr(std::min(space + 1, merge.size())));
      if (!made_control_.contains(left) && !made_control_.contains(right) && !made_control_.contains(left + right)) {
        merges.push_back(merge);
      }
    }
    return merges;
  }

  void ReadSpecialTokens() {
    bos_ = TokenField("bos");
    eos_ = TokenField("eos");
    if (eos_) ends_.insert(*eos_);
    for (const std::string_view name : {"eot", "eom"}) {
      if (const auto id = TokenField(name)) ends_.insert(*id);
    }
    for (size_t id = 0; id < tokens_.size(); ++id) {
      if (std::find(std::begin(kEndTexts), std::end(kEndTexts), tokens_[id]) == std::end(kEndTexts)) continue;
      MakeControl(id);  // as llama.cpp does
      ends_.insert(id);
    }
  }

  absl::StatusOr<Json> TokenizerJson() {
    Json vocabulary = Json::object();
    Json added = Json::array();
    for (size_t id = 0; id < tokens_.size(); ++id) {
      switch (types_[id]) {
        case GgufTokenType::kUnused:  // padding: the original tokenizer has no such token
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
        default: vocabulary[std::string(tokens_[id])] = id;
      }
    }
    Json json;
    json["version"] = "1.0";
    json["added_tokens"] = std::move(added);
    if (is_sentencepiece_) {
      AddSentencePiece(std::move(vocabulary), json);
      return json;
    }
    const bool over_bytes = pre_->alphabet == GgufPreTokenizer::Alphabet::kBytes;
    json["normalizer"] = pre_->nfc ? Json{{"type", "NFC"}} : over_bytes ? Json() : EscapeSpaces();
    json["pre_tokenizer"] = PreTokenizerJson();
    json["decoder"] = over_bytes ? Json{{"type", "ByteLevel"}} : CharacterDecoder(/*strips_prefix=*/false);
    json["model"] = {{"type", "BPE"},
                     {"ignore_merges", pre_->ignore_merges},
                     {"byte_fallback", !over_bytes},
                     {"vocab", std::move(vocabulary)},
                     {"merges", MergesOfWords()}};
    return json;
  }

  static Json EscapeSpaces() { return {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpace}}; }

  static Json CharacterDecoder(bool strips_prefix) {
    Json decoders = Json::array();
    decoders.push_back({{"type", "Replace"}, {"pattern", {{"String", kSpace}}}, {"content", " "}});
    decoders.push_back({{"type", "ByteFallback"}});
    decoders.push_back({{"type", "Fuse"}});
    if (strips_prefix) decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    return {{"type", "Sequence"}, {"decoders", std::move(decoders)}};
  }

  // SentencePiece's BPE replaces spaces by U+2581 and prepends another U+2581. SentencePiece first merges the pair
  // whose result has the highest score, so the list of merges is all possible merges in order of score.
  void AddSentencePiece(Json vocabulary, Json& json) {
    bool add_space_prefix = true;
    fields_.Bool("tokenizer.ggml.add_space_prefix", add_space_prefix);
    Json steps = Json::array();
    if (add_space_prefix) steps.push_back({{"type", "Prepend"}, {"prepend", kSpace}});
    steps.push_back(EscapeSpaces());
    json["normalizer"] = {{"type", "Sequence"}, {"normalizers", std::move(steps)}};
    json["decoder"] = CharacterDecoder(/*strips_prefix=*/add_space_prefix);

    struct Merge {
      float score;
      std::string_view left;
      std::string_view right;
    };
    std::vector<Merge> merges;
    for (size_t id = 0; id < tokens_.size(); ++id) {
      if (types_[id] != GgufTokenType::kNormal) continue;
      const std::string_view token = tokens_[id];
      for (size_t at = 1; at < token.size(); ++at) {
        if ((static_cast<unsigned char>(token[at]) & 0xC0) == 0x80) continue;  // UTF-8 continuation byte
        const std::string_view left = token.substr(0, at);
        const std::string_view right = token.substr(at);
        if (vocabulary.contains(left) && vocabulary.contains(right)) merges.push_back({scores_[id], left, right});
      }
    }
    std::stable_sort(merges.begin(), merges.end(), [](const Merge& a, const Merge& b) { return a.score > b.score; });
    Json pairs = Json::array();
    Json ranks = Json::array();
    for (size_t i = 0; i < merges.size(); ++i) {
      pairs.push_back({merges[i].left, merges[i].right});
      ranks.push_back(i > 0 && merges[i].score == merges[i - 1].score ? ranks.back() : Json(i));
    }
    json["model"] = {{"type", "BPE"},
                     {"byte_fallback", true},
                     {"fuse_unk", true},
                     {"vocab", std::move(vocabulary)},
                     {"merges", std::move(pairs)},
                     {"merge_ranks", std::move(ranks)}};
  }

  Json PreTokenizerJson() const {
    Json steps = Json::array();
    for (const std::string_view pattern : pre_->patterns) {
      steps.push_back(
          {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}});
    }
    if (pre_->alphabet == GgufPreTokenizer::Alphabet::kBytes) {
      steps.push_back({{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", pre_->gpt2_words}});
    }
    return {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
  }

  Json TokenizerConfigJson() {
    Json json = Json::object();
    if (bos_) json["bos_token"] = tokens_[*bos_];
    if (eos_) json["eos_token"] = tokens_[*eos_];
    for (const auto& [key, name] : kGgufSpecialTokens) {
      int64_t id = -1;
      fields_.Int(Concat("tokenizer.ggml.", key, "_token_id"), INT64_MIN, INT64_MAX, id);
      // Like llama.cpp, treats an id outside the vocabulary as absent.
      if (id >= 0 && id < static_cast<int64_t>(tokens_.size())) json[std::string(name)] = tokens_[id];
    }
    bool add_bos = (is_sentencepiece_ || pre_->add_bos) && bos_.has_value();
    bool add_eos = false;
    fields_.Bool("tokenizer.ggml.add_bos_token", add_bos).Bool("tokenizer.ggml.add_eos_token", add_eos);
    json["add_bos_token"] = add_bos;
    json["add_eos_token"] = add_eos;
    std::string_view chat_template;
    std::string_view tool_template;
    fields_.String("tokenizer.chat_template", chat_template).String("tokenizer.chat_template.tool_use", tool_template);
    if (!chat_template.empty()) json["chat_template"] = chat_template;
    if (!chat_template.empty() && !tool_template.empty()) {
      json["chat_template"] = {{{"name", "default"}, {"template", chat_template}},
                               {{"name", "tool_use"}, {"template", tool_template}}};
    }
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
  bool is_sentencepiece_ = false;
  const GgufPreTokenizer* pre_ = nullptr;  // null for SentencePiece's BPE
  std::vector<std::string_view> tokens_;
  std::vector<std::string_view> merges_;
  std::vector<float> scores_;
  std::vector<GgufTokenType> types_;
  std::set<std::string_view> made_control_;  // texts of normal tokens that MakeControl changed
  std::optional<size_t> bos_;
  std::optional<size_t> eos_;
  std::set<size_t> ends_;
};

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> GgufTextAssets(const GgufModel& model) {
  return TokenizerConverter(model).Convert();
}

}  // namespace baton
