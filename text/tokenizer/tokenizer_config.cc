// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/tokenizer_config.h"

#include <vector>

#include "common/status_macros.h"
#include "text/tokenizer/json_node.h"

namespace baton {
namespace {

// A token is a string or an object with the string in `content`.
absl::StatusOr<std::string> TokenText(const JsonNode& json) {
  BATON_ASSIGN_OR_RETURN(const std::string_view text,
                         json.value().is_object() ? json.GetString("content") : json.String());
  return std::string(text);
}

absl::StatusOr<std::optional<std::string>> ReadToken(const JsonNode& root, std::string_view key) {
  const std::optional<JsonNode> field = root.Find(key);
  if (!field) return std::nullopt;
  return TokenText(*field);
}

// Reads the special tokens of Hugging Face's special_tokens_map other than BOS and EOS.
absl::Status ReadMoreSpecialTokens(const JsonNode& root, TemplateValue::Dict& tokens) {
  for (const char* name : {"unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
    BATON_ASSIGN_OR_RETURN(std::optional<std::string> token, ReadToken(root, name));
    if (token) tokens.emplace_back(name, *std::move(token));
  }
  if (const auto field = root.Find("additional_special_tokens")) {
    BATON_ASSIGN_OR_RETURN(const std::vector<JsonNode> items, field->Items());
    TemplateValue::List list;
    for (const JsonNode& item : items) {
      BATON_ASSIGN_OR_RETURN(std::string token, TokenText(item));
      list.emplace_back(std::move(token));
    }
    tokens.emplace_back("additional_special_tokens", std::move(list));
  }
  const auto named = root.Find("extra_special_tokens");
  if (!named || !named->value().is_object()) return absl::OkStatus();
  for (const auto& [name, value] : named->value().items()) {
    BATON_ASSIGN_OR_RETURN(std::optional<std::string> token, ReadToken(*named, name));
    if (token) tokens.emplace_back(name, *std::move(token));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<bool>> ReadBool(const JsonNode& root, std::string_view key) {
  if (!root.Find(key)) return std::nullopt;
  return root.GetBool(key, false);
}

absl::Status ReadTemplates(const JsonNode& root, TokenizerConfig& config) {
  const std::optional<JsonNode> field = root.Find("chat_template");
  if (!field) return absl::OkStatus();
  if (!field->value().is_array()) {
    BATON_ASSIGN_OR_RETURN(config.chat_template, field->String());
    return absl::OkStatus();
  }
  BATON_ASSIGN_OR_RETURN(const std::vector<JsonNode> templates, field->Items());
  for (const JsonNode& item : templates) {
    BATON_ASSIGN_OR_RETURN(const std::string_view name, item.GetString("name"));
    if (name != "default" && name != "tool_use") continue;
    BATON_ASSIGN_OR_RETURN(const std::string_view source, item.GetString("template"));
    (name == "default" ? config.chat_template : config.tool_template) = source;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TokenizerConfig> ParseTokenizerConfig(std::string_view json) {
  TokenizerConfig config;
  if (json.empty()) return config;
  BATON_ASSIGN_OR_RETURN(const nlohmann::json document, ParseJson(json, "tokenizer_config.json"));
  const auto root = JsonNode::OfFile(document, "tokenizer_config.json");
  if (!document.is_object()) return root.Expected("an object");
  BATON_ASSIGN_OR_RETURN(config.bos_token, ReadToken(root, "bos_token"));
  BATON_ASSIGN_OR_RETURN(config.eos_token, ReadToken(root, "eos_token"));
  BATON_RETURN_IF_ERROR(ReadMoreSpecialTokens(root, config.more_special_tokens));
  BATON_ASSIGN_OR_RETURN(config.add_bos_token, ReadBool(root, "add_bos_token"));
  BATON_ASSIGN_OR_RETURN(config.add_eos_token, ReadBool(root, "add_eos_token"));
  BATON_RETURN_IF_ERROR(ReadTemplates(root, config));
  return config;
}

}  // namespace baton
