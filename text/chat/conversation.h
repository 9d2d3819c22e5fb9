// A conversation as a chat template is given it: messages, tools that the model may call, and whatever else the
// template takes. The shape is that of Hugging Face's apply_chat_template, which is OpenAI's but for a call's
// arguments, there an object and not its text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "text/chat/chat_template.h"
#include "text/chat/template_dialect.h"

namespace baton {

struct ToolCall {
  std::string id;  // empty: none
  std::string name;
  std::string arguments_json;  // an object
};

struct ChatTurn {
  std::string role;
  std::optional<std::string> content;  // without it and parts: none if it calls tools, else empty
  std::vector<ToolCall> tool_calls = {};
  std::string tool_call_id = {};  // of a tool's answer; empty: none
  std::string name = {};          // likewise
  std::optional<std::string> reasoning_content = {};
  std::vector<std::string> content_parts = {};  // texts, instead of `content`
};

struct ToolDefinition {
  std::string name;
  std::string description;             // empty: none
  std::string parameters_json_schema;  // an object; empty: none
  std::string definition_json = {};    // not empty: an object that is the whole tool, instead of the fields above
};

struct Conversation {
  std::vector<ChatTurn> messages;
  std::vector<ToolDefinition> tools = {};
  std::string template_arguments_json = {};  // an object, variables of the template by name; empty: none
};

// In the forms that the template wants. INVALID_ARGUMENT names the field, "<origin>.messages[0].role", and what was
// expected.
absl::StatusOr<ChatTemplateInputs> TemplateInputs(const Conversation& conversation, const TemplateDialect& dialect,
                                                  std::string_view origin);

// From JSON as OpenAI's API has it: a list of messages, or an object with `messages`, `tools`, `documents`,
// `add_generation_prompt` and `chat_template_kwargs` (its other fields are not looked at). A message's reasoning is
// `reasoning_content`, or else `reasoning`; a field of a message that is not known may only be empty.
// INVALID_ARGUMENT, with `origin`, names the field.
absl::StatusOr<Conversation> ParseConversation(std::string_view json, std::string_view origin);

// Of a list of tools alone.
absl::StatusOr<std::vector<ToolDefinition>> ParseTools(std::string_view json, std::string_view origin);

}  // namespace baton
