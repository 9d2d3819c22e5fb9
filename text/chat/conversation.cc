// SPDX-License-Identifier: Apache-2.0
#include "text/chat/conversation.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_join.h"
#include "common/status_macros.h"
#include "common/strings.h"
#include "text/chat/template_json.h"

namespace baton {
namespace {

using Dict = TemplateValue::Dict;
using List = TemplateValue::List;
using Json = nlohmann::ordered_json;

absl::StatusOr<Dict> CallDict(const ToolCall& call, bool arguments_as_text, std::string_view place) {
  if (call.name.empty()) return absl::InvalidArgumentError(Concat(place, ".name: empty; expected a tool's name"));
  BATON_ASSIGN_OR_RETURN(Dict arguments, TemplateDictFromJson(call.arguments_json, Concat(place, ".arguments_json")));
  Dict function{{"name", call.name}, {"arguments", std::move(arguments)}};
  if (arguments_as_text) function.back().second = call.arguments_json;
  Dict dict;
  if (!call.id.empty()) dict.emplace_back("id", call.id);
  dict.emplace_back("type", "function");
  dict.emplace_back("function", std::move(function));
  return dict;
}

TemplateValue ContentValue(const ChatTurn& turn, ContentForm form) {
  if (!turn.content && turn.content_parts.empty()) {
    return turn.tool_calls.empty() ? TemplateValue("") : TemplateValue();
  }
  std::vector<std::string> parts = turn.content_parts;
  if (turn.content) parts.push_back(*turn.content);
  const bool is_text = turn.content.has_value();
  if (form == ContentForm::kText || form == ContentForm::kOnePart) parts = {absl::StrJoin(parts, "\n")};
  if (form == ContentForm::kText || (form == ContentForm::kTextOrParts && is_text)) return parts[0];
  List list;
  for (std::string& part : parts) list.emplace_back(Dict{{"type", "text"}, {"text", std::move(part)}});
  return list;
}

absl::StatusOr<Dict> TurnDict(const ChatTurn& turn, const TemplateDialect& dialect, std::string_view place) {
  if (turn.role.empty()) {
    return absl::InvalidArgumentError(Concat(place, ".role: empty; expected a role that the model's template knows"));
  }
  if (turn.content && !turn.content_parts.empty()) {
    return absl::InvalidArgumentError(Concat(place, ": expected content or content_parts, got both"));
  }
  Dict dict{{"role", turn.role}, {"content", ContentValue(turn, dialect.ContentOf(turn.role))}};
  if (turn.reasoning_content) dict.emplace_back("reasoning_content", *turn.reasoning_content);
  if (!turn.tool_calls.empty()) {
    List calls;
    for (size_t i = 0; i < turn.tool_calls.size(); ++i) {
      BATON_ASSIGN_OR_RETURN(
          Dict call, CallDict(turn.tool_calls[i], dialect.arguments_as_text, Concat(place, ".tool_calls[", i, "]")));
      calls.emplace_back(std::move(call));
    }
    dict.emplace_back("tool_calls", std::move(calls));
  }
  if (!turn.tool_call_id.empty()) dict.emplace_back("tool_call_id", turn.tool_call_id);
  if (!turn.name.empty()) dict.emplace_back("name", turn.name);
  return dict;
}

absl::StatusOr<Dict> ToolDict(const ToolDefinition& tool, std::string_view place) {
  if (!tool.definition_json.empty()) {
    if (!tool.name.empty() || !tool.description.empty() || !tool.parameters_json_schema.empty()) {
      return absl::InvalidArgumentError(Concat(place, ": expected definition_json or other fields, got both"));
    }
    return TemplateDictFromJson(tool.definition_json, Concat(place, ".definition_json"));
  }
  if (tool.name.empty()) return absl::InvalidArgumentError(Concat(place, ".name: empty; expected a tool's name"));
  Dict function{{"name", tool.name}};
  if (!tool.description.empty()) function.emplace_back("description", tool.description);
  if (!tool.parameters_json_schema.empty()) {
    BATON_ASSIGN_OR_RETURN(Dict parameters,
                           TemplateDictFromJson(tool.parameters_json_schema, Concat(place, ".parameters_json_schema")));
    function.emplace_back("parameters", std::move(parameters));
  }
  return Dict{{"type", "function"}, {"function", std::move(function)}};
}

// Reads the JSON of OpenAI's API. Keeps the first error; the caller checks status() at the end.
class Reader {
 public:
  explicit Reader(std::string_view origin) : origin_(origin) {}

  Conversation Read(const Json& json) {
    Conversation conversation;
    if (json.is_array()) {
      conversation.messages = Messages(json, "");
    } else if (json.is_object()) {
      conversation.messages = Messages(json.value("messages", Json()), "messages");
      if (const Json* tools = Find(json, "tools")) conversation.tools = Tools(*tools, "tools");
      const Json arguments = TemplateArguments(json);
      if (!arguments.empty()) conversation.template_arguments_json = arguments.dump();
    } else {
      Expected("", "a list of messages, or an object with `messages`");
    }
    return conversation;
  }

  std::vector<ToolDefinition> Tools(const Json& json, const std::string& place) {
    std::vector<ToolDefinition> tools;
    if (!json.is_array()) Expected(place, "a list of tools");
    for (size_t i = 0; json.is_array() && i < json.size(); ++i) {
      if (!json[i].is_object()) Expected(Concat(place, "[", i, "]"), "an object");
      tools.push_back({.name = {}, .description = {}, .parameters_json_schema = {}, .definition_json = json[i].dump()});
    }
    return tools;
  }

  const absl::Status& status() const { return status_; }

 private:
  void Expected(std::string_view place, std::string_view what) {
    if (status_.ok()) {
      status_ = absl::InvalidArgumentError(Concat(origin_, ": ", place, place.empty() ? "" : ": ", "expected ", what));
    }
  }

  // A null field counts as absent.
  static const Json* Find(const Json& object, const char* name) {
    const auto it = object.find(name);
    return it == object.end() || it->is_null() ? nullptr : &*it;
  }

  std::optional<std::string> Text(const Json& object, const char* name, const std::string& place,
                                  std::string_view expected = "a text") {
    const Json* field = Find(object, name);
    if (field == nullptr) return std::nullopt;
    if (field->is_string()) return field->get<std::string>();
    Expected(Concat(place, ".", name), expected);
    return std::nullopt;
  }

  // chat_template_kwargs overrides `documents` and `add_generation_prompt`, as in vLLM.
  Json TemplateArguments(const Json& json) {
    Json arguments = Json::object();
    if (const Json* documents = Find(json, "documents")) {
      if (!documents->is_array()) Expected("documents", "a list");
      arguments["documents"] = *documents;
    }
    if (const Json* adds = Find(json, "add_generation_prompt")) {
      if (!adds->is_boolean()) Expected("add_generation_prompt", "true or false");
      arguments["add_generation_prompt"] = *adds;
    }
    if (const Json* more = Find(json, "chat_template_kwargs")) {
      if (!more->is_object()) {
        Expected("chat_template_kwargs", "an object");
      } else {
        arguments.update(*more);
      }
    }
    return arguments;
  }

  // Refuses fields that Message() would silently drop, unless they are null or empty.
  void CheckKnown(const Json& message, const std::string& place) {
    constexpr const char* kKnown[] = {"role",         "content", "reasoning_content", "reasoning", "tool_calls",
                                      "tool_call_id", "name"};
    for (const auto& [name, value] : message.items()) {
      if (std::find(std::begin(kKnown), std::end(kKnown), name) != std::end(kKnown)) continue;
      const bool is_empty = value.is_string() ? value.get_ref<const std::string&>().empty() : value.empty();
      if (is_empty) continue;
      if (status_.ok()) {
        status_ = absl::InvalidArgumentError(
            Concat(origin_, ": ", place, ".", name, ": unknown field; expected one of ", absl::StrJoin(kKnown, ", ")));
      }
    }
  }

  std::string TextPart(const Json& json, const std::string& place) {
    const Json* type = json.is_object() ? Find(json, "type") : nullptr;
    const std::optional<std::string> text = json.is_object() ? Text(json, "text", place) : std::nullopt;
    if (type == nullptr || *type != "text" || !text) {
      Expected(place, R"({"type": "text", "text": ...}; other parts are not supported)");
    }
    return text.value_or("");
  }

  std::vector<ChatTurn> Messages(const Json& json, const std::string& place) {
    std::vector<ChatTurn> turns;
    if (!json.is_array()) Expected(place, "a list of messages");
    for (size_t i = 0; json.is_array() && i < json.size(); ++i) {
      turns.push_back(Message(json[i], Concat(place, "[", i, "]")));
    }
    return turns;
  }

  ChatTurn Message(const Json& json, const std::string& place) {
    ChatTurn turn;
    if (!json.is_object()) {
      Expected(place, "an object with `role` and `content`");
      return turn;
    }
    turn.role = Text(json, "role", place).value_or("");
    if (const Json* content = Find(json, "content"); content != nullptr && content->is_array()) {
      for (size_t i = 0; i < content->size(); ++i) {
        turn.content_parts.push_back(TextPart((*content)[i], Concat(place, ".content[", i, "]")));
      }
      if (content->empty()) turn.content = "";
    } else {
      turn.content = Text(json, "content", place, "a text, or a list of parts");
    }
    turn.reasoning_content = Text(json, "reasoning_content", place);
    if (!turn.reasoning_content) turn.reasoning_content = Text(json, "reasoning", place);
    turn.tool_call_id = Text(json, "tool_call_id", place).value_or("");
    turn.name = Text(json, "name", place).value_or("");
    if (const Json* calls = Find(json, "tool_calls")) {
      if (!calls->is_array()) Expected(Concat(place, ".tool_calls"), "a list");
      for (size_t i = 0; calls->is_array() && i < calls->size(); ++i) {
        turn.tool_calls.push_back(Call((*calls)[i], Concat(place, ".tool_calls[", i, "]")));
      }
    }
    CheckKnown(json, place);
    return turn;
  }

  ToolCall Call(const Json& json, const std::string& place) {
    ToolCall call;
    const Json* function = json.is_object() ? Find(json, "function") : nullptr;
    if (function == nullptr || !function->is_object()) {
      Expected(place, "an object with `function`, which has `name` and `arguments`");
      return call;
    }
    call.id = Text(json, "id", place).value_or("");
    call.name = Text(*function, "name", Concat(place, ".function")).value_or("");
    const Json* arguments = Find(*function, "arguments");
    if (arguments != nullptr && arguments->is_string()) {
      call.arguments_json = arguments->get<std::string>();
      status_.Update(
          TemplateDictFromJson(call.arguments_json, Concat(origin_, ": ", place, ".function.arguments")).status());
    } else if (arguments != nullptr && arguments->is_object()) {
      call.arguments_json = arguments->dump();
    } else {
      Expected(Concat(place, ".function.arguments"), "an object, or its JSON text");
    }
    return call;
  }

  const std::string origin_;
  absl::Status status_;
};

absl::StatusOr<Json> ParseOrdered(std::string_view text, std::string_view origin) {
  BATON_RETURN_IF_ERROR(TemplateValueFromJson(text, origin).status());  // applies the limits of template_json.h
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace

absl::StatusOr<ChatTemplateInputs> TemplateInputs(const Conversation& conversation, const TemplateDialect& dialect,
                                                  std::string_view origin) {
  if (conversation.messages.empty()) {
    return absl::InvalidArgumentError(Concat(origin, ".messages: empty; expected at least one message"));
  }
  ChatTemplateInputs inputs;
  for (size_t i = 0; i < conversation.messages.size(); ++i) {
    BATON_ASSIGN_OR_RETURN(Dict turn,
                           TurnDict(conversation.messages[i], dialect, Concat(origin, ".messages[", i, "]")));
    inputs.messages.emplace_back(std::move(turn));
  }
  for (size_t i = 0; i < conversation.tools.size(); ++i) {
    BATON_ASSIGN_OR_RETURN(Dict tool, ToolDict(conversation.tools[i], Concat(origin, ".tools[", i, "]")));
    inputs.tools.emplace_back(std::move(tool));
  }
  if (!conversation.template_arguments_json.empty()) {
    BATON_ASSIGN_OR_RETURN(inputs.variables, TemplateDictFromJson(conversation.template_arguments_json,
                                                                  Concat(origin, ".template_arguments_json")));
  }
  return inputs;
}

absl::StatusOr<Conversation> ParseConversation(std::string_view json, std::string_view origin) {
  BATON_ASSIGN_OR_RETURN(const Json parsed, ParseOrdered(json, origin));
  Reader reader(origin);
  Conversation conversation = reader.Read(parsed);
  BATON_RETURN_IF_ERROR(reader.status());
  return conversation;
}

absl::StatusOr<std::vector<ToolDefinition>> ParseTools(std::string_view json, std::string_view origin) {
  BATON_ASSIGN_OR_RETURN(const Json parsed, ParseOrdered(json, origin));
  Reader reader(origin);
  std::vector<ToolDefinition> tools = reader.Tools(parsed, "");
  BATON_RETURN_IF_ERROR(reader.status());
  return tools;
}

}  // namespace baton
