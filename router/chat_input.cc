// SPDX-License-Identifier: Apache-2.0
#include "router/chat_input.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace baton::router {

absl::StatusOr<Conversation> ReadChat(const v1::ChatInput& chat, const std::string& field) {
  Conversation conversation;
  for (int i = 0; i < chat.messages_size(); ++i) {
    const v1::ChatMessage& message = chat.messages(i);
    ChatTurn turn{.role = message.role(), .content = {}};
    if (message.has_content()) turn.content = message.content();
    for (const v1::ContentPart& part : message.content_parts()) {
      if (part.type() != "text") {
        return absl::InvalidArgumentError(absl::StrCat(field, ".messages[", i, "].content_parts[",
                                                       turn.content_parts.size(), "].type: expected text, got '",
                                                       part.type(), "'"));
      }
      turn.content_parts.push_back(part.text());
    }
    for (const v1::ToolCall& call : message.tool_calls()) {
      turn.tool_calls.push_back({.id = call.id(), .name = call.name(), .arguments_json = call.arguments_json()});
    }
    turn.tool_call_id = message.tool_call_id();
    turn.name = message.name();
    if (message.has_reasoning_content()) turn.reasoning_content = message.reasoning_content();
    conversation.messages.push_back(std::move(turn));
  }
  for (const v1::Tool& tool : chat.tools()) {
    conversation.tools.push_back({.name = tool.name(),
                                  .description = tool.description(),
                                  .parameters_json_schema = tool.parameters_json_schema(),
                                  .definition_json = tool.definition_json()});
  }
  conversation.template_arguments_json = chat.template_arguments_json();
  return conversation;
}

}  // namespace baton::router
