// SPDX-License-Identifier: Apache-2.0
// A conversation: messages, tools that the model may call, and arguments for the chat template. Parsed from the JSON of
// OpenAI's API and converted to the variables of Hugging Face's apply_chat_template.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "text/chat/chat_template.h"
#include "text/chat/template_dialect.h"

namespace baton {

// An empty string means that the field is absent, except for fields of type optional.
struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments_json;  // text of a JSON object
};

struct ChatTurn {
  std::string role;
  std::optional<std::string> content;  // without content and parts: None in a turn with tool calls, otherwise ""
  std::vector<ToolCall> tool_calls = {};
  std::string tool_call_id = {};  // in a tool's answer
  std::string name = {};          // in a tool's answer
  std::optional<std::string> reasoning_content = {};
  std::vector<std::string> content_parts = {};  // texts; excludes `content`
};

struct ToolDefinition {
  std::string name;
  std::string description;
  std::string parameters_json_schema;  // text of a JSON object
  std::string definition_json = {};    // text of a JSON object, the whole tool; excludes the fields above
};

struct Conversation {
  std::vector<ChatTurn> messages;
  std::vector<ToolDefinition> tools = {};
  std::string template_arguments_json = {};  // text of a JSON object: template variables by name
};

// Converts a conversation to template variables in the template's dialect. INVALID_ARGUMENT names the field
// ("<origin>.messages[0].role") and what was expected.
absl::StatusOr<ChatTemplateInputs> TemplateInputs(const Conversation& conversation, const TemplateDialect& dialect,
                                                  std::string_view origin);

// Parses the JSON of OpenAI's API: a list of messages, or an object with `messages`, `tools`, `documents`,
// `add_generation_prompt` and `chat_template_kwargs`. Ignores other fields of the object. Refuses unknown fields of a
// message unless they are empty. Takes reasoning from `reasoning_content`, otherwise from `reasoning`. INVALID_ARGUMENT
// names `origin` and the field.
absl::StatusOr<Conversation> ParseConversation(std::string_view json, std::string_view origin);

// Parses a list of tools. Errors as for ParseConversation.
absl::StatusOr<std::vector<ToolDefinition>> ParseTools(std::string_view json, std::string_view origin);

}  // namespace baton
