// SPDX-License-Identifier: Apache-2.0
#include "cli/flags/conversation_flags.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/console/input.h"
#include "cli/flags/generation_flags.h"
#include "common/status_macros.h"
#include "engine/formats/file.h"

namespace baton {
namespace {

constexpr size_t kMaxFileBytes = size_t{16} << 20;

}  // namespace

void ConversationFlags::AddTo(CLI::App& command, CLI::Option_group& input) {
  CLI::Option* chat =
      input.add_option("--chat", chat_, "a user's message, for the chat template; - reads the whole standard input");
  input.add_option("--messages", messages_file_,
                   "file with a conversation in OpenAI's JSON: a list of messages, or an object with "
                   "messages, tools, documents and chat_template_kwargs");
  command.add_option("--system", system_, "system message before --chat")->needs(chat);
  command.add_option("--tools", tools_file_, "file with a list of tools in OpenAI's JSON");
  command.add_option("--template-args", template_args_,
                     "JSON object with more variables for the chat template, such as {\"enable_thinking\": false}");
}

absl::Status ConversationFlags::TakeInputs(const Console& console) { return TakeInput(console, "--chat", &chat_); }

absl::StatusOr<Conversation> ConversationFlags::Read() const {
  Conversation conversation;
  if (messages_file_) {
    BATON_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(*messages_file_, kMaxFileBytes));
    BATON_ASSIGN_OR_RETURN(conversation, ParseConversation(text, *messages_file_));
  } else {
    if (system_) {
      BATON_RETURN_IF_ERROR(CheckUtf8("--system", *system_));
      conversation.messages.push_back({.role = "system", .content = system_});
    }
    BATON_RETURN_IF_ERROR(CheckUtf8("--chat", chat_.value_or("")));
    conversation.messages.push_back({.role = "user", .content = chat_});
  }
  if (tools_file_) {
    if (!conversation.tools.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("--tools: ", *messages_file_, " has tools already"));
    }
    BATON_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(*tools_file_, kMaxFileBytes));
    BATON_ASSIGN_OR_RETURN(conversation.tools, ParseTools(text, *tools_file_));
  }
  if (template_args_) {
    if (!conversation.template_arguments_json.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--template-args: ", *messages_file_, " has template arguments already"));
    }
    BATON_RETURN_IF_ERROR(CheckUtf8("--template-args", *template_args_));
    if (template_args_->empty()) return absl::InvalidArgumentError("--template-args: expected a JSON object");
    conversation.template_arguments_json = *template_args_;
  }
  return conversation;
}

absl::Status ConversationFlags::CheckNone() const {
  if (tools_file_) return absl::InvalidArgumentError("--tools: expected --chat or --messages beside it");
  if (template_args_) return absl::InvalidArgumentError("--template-args: expected --chat or --messages beside it");
  return absl::OkStatus();
}

void ToProto(const Conversation& conversation, v1::ChatInput& chat) {
  for (const ChatTurn& turn : conversation.messages) {
    v1::ChatMessage& message = *chat.add_messages();
    message.set_role(turn.role);
    if (turn.content) message.set_content(*turn.content);
    for (const std::string& text : turn.content_parts) {
      v1::ContentPart& part = *message.add_content_parts();
      part.set_type("text");
      part.set_text(text);
    }
    for (const ToolCall& call : turn.tool_calls) {
      v1::ToolCall& out = *message.add_tool_calls();
      out.set_id(call.id);
      out.set_name(call.name);
      out.set_arguments_json(call.arguments_json);
    }
    message.set_tool_call_id(turn.tool_call_id);
    message.set_name(turn.name);
    if (turn.reasoning_content) message.set_reasoning_content(*turn.reasoning_content);
  }
  for (const ToolDefinition& tool : conversation.tools) {
    v1::Tool& out = *chat.add_tools();
    out.set_name(tool.name);
    out.set_description(tool.description);
    out.set_parameters_json_schema(tool.parameters_json_schema);
    out.set_definition_json(tool.definition_json);
  }
  chat.set_template_arguments_json(conversation.template_arguments_json);
}

}  // namespace baton
