#include "engine/tokenizer/tokenizer_config.h"

#include <vector>

#include "common/status_macros.h"
#include "engine/tokenizer/json_node.h"

namespace baton {
namespace {

// A token is written as its text or as an object with its text in `content`.
absl::StatusOr<std::optional<std::string>> ReadToken(const JsonNode& root, std::string_view key) {
  const std::optional<JsonNode> field = root.Find(key);
  if (!field) return std::nullopt;
  BATON_ASSIGN_OR_RETURN(const std::string_view text,
                         field->value().is_object() ? field->GetString("content") : field->String());
  return std::string(text);
}

absl::StatusOr<std::optional<bool>> ReadBool(const JsonNode& root, std::string_view key) {
  if (!root.Find(key)) return std::nullopt;
  return root.GetBool(key, false);
}

absl::StatusOr<std::optional<std::string>> ReadChatTemplate(const JsonNode& root) {
  const std::optional<JsonNode> field = root.Find("chat_template");
  if (!field) return std::nullopt;
  if (!field->value().is_array()) {
    BATON_ASSIGN_OR_RETURN(const std::string_view source, field->String());
    return std::string(source);
  }
  BATON_ASSIGN_OR_RETURN(const std::vector<JsonNode> templates, field->Items());
  for (const JsonNode& item : templates) {
    BATON_ASSIGN_OR_RETURN(const std::string_view name, item.GetString("name"));
    if (name != "default") continue;
    BATON_ASSIGN_OR_RETURN(const std::string_view source, item.GetString("template"));
    return std::string(source);
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<TokenizerConfig> ParseTokenizerConfig(std::string_view json) {
  TokenizerConfig config;
  if (json.empty()) return config;
  BATON_ASSIGN_OR_RETURN(const nlohmann::json document, ParseJson(json, "tokenizer_config.json"));
  const JsonNode root(document, "tokenizer_config.json");
  if (!document.is_object()) return root.Expected("an object");
  BATON_ASSIGN_OR_RETURN(config.bos_token, ReadToken(root, "bos_token"));
  BATON_ASSIGN_OR_RETURN(config.eos_token, ReadToken(root, "eos_token"));
  BATON_ASSIGN_OR_RETURN(config.add_bos_token, ReadBool(root, "add_bos_token"));
  BATON_ASSIGN_OR_RETURN(config.add_eos_token, ReadBool(root, "add_eos_token"));
  BATON_ASSIGN_OR_RETURN(config.chat_template, ReadChatTemplate(root));
  return config;
}

}  // namespace baton
