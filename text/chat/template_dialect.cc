// SPDX-License-Identifier: Apache-2.0
#include "text/chat/template_dialect.h"

#include <optional>
#include <vector>

#include "common/strings.h"
#include "text/chat/conversation.h"

namespace baton {
namespace {

const ToolCall kCall{.id = "call00000", .name = "tool", .arguments_json = R"({"needle": "hay"})"};

std::string RenderOrEmpty(const ChatTemplate& source, const Conversation& conversation,
                          const TemplateDialect& dialect) {
  const auto inputs = TemplateInputs(conversation, dialect, "");
  return inputs.ok() ? source.Render(*inputs).value_or("") : "";
}

// The shortest conversation in which templates accept `turn`.
Conversation WithTurn(const ChatTurn& turn) {
  const ChatTurn user{.role = "user", .content = "Call it."};
  if (turn.role == "user") return {.messages = {turn}};
  if (turn.role == "system" || turn.role == "developer") return {.messages = {turn, user}};
  if (turn.role == "assistant") return {.messages = {user, turn, user}};
  return {.messages = {user, {.role = "assistant", .content = "", .tool_calls = {kCall}}, turn}};
}

// Returns whether all `texts` occur in `prompt`, in order. Returns false when the template printed the list of parts
// instead of the texts, with Python's str() or tojson.
bool Shows(std::string_view prompt, const std::vector<std::string>& texts) {
  size_t from = 0;
  for (const std::string& text : texts) {
    const size_t at = prompt.find(text, from);
    if (at == std::string_view::npos) return false;
    from = at + text.size();
  }
  return prompt.find(Concat("'text': '", texts[0])) == std::string_view::npos &&
         prompt.find(Concat("\"text\": \"", texts[0])) == std::string_view::npos;
}

// `dialect` must have the forms of the other roles in WithTurn's conversation.
ContentForm FindContentForm(const ChatTemplate& source, std::string_view role, TemplateDialect dialect) {
  const std::vector<std::string> texts = {"needle-1", "needle-2"};
  ChatTurn turn{.role = std::string(role), .content = texts[0]};
  if (role == "tool") {
    turn.tool_call_id = kCall.id;
    turn.name = kCall.name;
  }
  dialect.content[turn.role] = ContentForm::kTextOrParts;
  const bool takes_text = Shows(RenderOrEmpty(source, WithTurn(turn), dialect), {texts[0]});
  turn.content = std::nullopt;
  turn.content_parts = texts;
  if (Shows(RenderOrEmpty(source, WithTurn(turn), dialect), texts)) {
    return takes_text ? ContentForm::kTextOrParts : ContentForm::kParts;
  }
  if (takes_text) return ContentForm::kText;
  turn.content_parts.resize(1);
  return Shows(RenderOrEmpty(source, WithTurn(turn), dialect), {texts[0]}) ? ContentForm::kOnePart : ContentForm::kText;
}

// Renders a conversation with a tool call. Returns "" when the template fails or drops the arguments.
std::string RenderCall(const ChatTemplate& source, const std::optional<std::string>& content,
                       const TemplateDialect& dialect) {
  Conversation conversation;
  conversation.messages = {{.role = "user", .content = "Call it."},
                           {.role = "assistant", .content = content, .tool_calls = {kCall}},
                           {.role = "tool", .content = "Done.", .tool_call_id = kCall.id, .name = kCall.name}};
  conversation.tools = {
      {.name = kCall.name, .description = "A tool.", .parameters_json_schema = R"({"type": "object"})"}};
  std::string text = RenderOrEmpty(source, conversation, dialect);
  return text.find("needle") == std::string::npos ? "" : text;
}

// Most templates print arguments with tojson and need an object. Others expect JSON text: given an object, they fail or
// print the object with Python's str().
bool WantsArgumentsAsText(const ChatTemplate& source, TemplateDialect dialect) {
  bool text_works = false;
  for (const std::optional<std::string>& content : {std::optional<std::string>(), std::optional<std::string>("")}) {
    dialect.arguments_as_text = false;
    const std::string with_object = RenderCall(source, content, dialect);
    if (!with_object.empty() && with_object.find("{'needle': 'hay'}") == std::string::npos) return false;
    dialect.arguments_as_text = true;
    text_works = text_works || !RenderCall(source, content, dialect).empty();
  }
  return text_works;
}

}  // namespace

ContentForm TemplateDialect::ContentOf(std::string_view role) const {
  if (const auto it = content.find(role); it != content.end()) return it->second;
  const auto user = content.find("user");
  const bool takes_text = user == content.end() || user->second == ContentForm::kTextOrParts;
  return takes_text ? ContentForm::kText : user->second;
}

TemplateDialect FindDialect(const ChatTemplate& source) {
  TemplateDialect dialect;
  // A template that hits a limit hits it in every dialect: do not pay for 20 slow renders.
  const auto inputs = TemplateInputs(WithTurn({.role = "user", .content = "Hi"}), dialect, "");
  if (inputs.ok() && absl::IsResourceExhausted(source.Render(*inputs).status())) return dialect;
  // The order matters: WithTurn puts a role together with roles that come earlier in this list.
  for (const char* role : {"user", "system", "developer", "assistant", "tool"}) {
    dialect.content[role] = FindContentForm(source, role, dialect);
  }
  dialect.arguments_as_text = WantsArgumentsAsText(source, dialect);
  return dialect;
}

}  // namespace baton
