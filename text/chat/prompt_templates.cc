// SPDX-License-Identifier: Apache-2.0
#include "text/chat/prompt_templates.h"

#include <utility>

#include "common/status_macros.h"
#include "common/strings.h"

namespace baton {
namespace {

absl::Status Unseen(std::string_view place, std::string_view what) {
  return absl::InvalidArgumentError(
      Concat(place, ": expected no value, because the model's chat template does not look at ", what));
}

// Refuses parts of a conversation that the template would silently ignore.
absl::Status CheckSeen(const ChatTemplate& source, const Conversation& conversation, const ChatTemplateInputs& inputs,
                       std::string_view origin) {
  if (!inputs.tools.empty() && !source.ReadsVariable("tools")) return Unseen(Concat(origin, ".tools"), "tools");
  for (size_t i = 0; i < conversation.messages.size(); ++i) {
    const ChatTurn& turn = conversation.messages[i];
    const std::string place = Concat(origin, ".messages[", i, "]");
    if (!turn.tool_calls.empty() && !source.ReadsField("tool_calls")) {
      return Unseen(Concat(place, ".tool_calls"), "tool calls");
    }
    if (turn.reasoning_content && !source.ReadsField("reasoning_content")) {
      return Unseen(Concat(place, ".reasoning_content"), "reasoning");
    }
  }
  for (const auto& [name, value] : inputs.variables) {
    const std::string place = Concat(origin, ".template_arguments_json: ", name);
    for (const char* reserved : {"messages", "tools", "bos_token", "eos_token"}) {
      if (name == reserved) {
        return absl::InvalidArgumentError(Concat(place, ": expected no value, because Baton sets this variable"));
      }
    }
    if (name != "add_generation_prompt" && !source.ReadsVariable(name)) return Unseen(place, "this argument");
  }
  return absl::OkStatus();
}

}  // namespace

PromptTemplates::PromptTemplates(std::string_view chat, std::string_view tool_use)
    : chat_(Load(chat)), has_tool_use_(!tool_use.empty()), tool_use_(Load(tool_use)) {}

PromptTemplates::Loaded PromptTemplates::Load(std::string_view text) {
  Loaded loaded;
  if (text.empty()) {
    loaded.status = absl::NotFoundError("the model has no chat template");
    return loaded;
  }
  absl::StatusOr<std::unique_ptr<ChatTemplate>> parsed = ChatTemplate::Parse(text);
  if (!parsed.ok()) {
    loaded.status = parsed.status();
    return loaded;
  }
  loaded.source = *std::move(parsed);
  loaded.dialect = FindDialect(*loaded.source);
  return loaded;
}

absl::StatusOr<std::string> PromptTemplates::Render(const Conversation& conversation,
                                                    const SpecialTokens& special_tokens,
                                                    std::string_view origin) const {
  const Loaded& loaded = has_tool_use_ && !conversation.tools.empty() ? tool_use_ : chat_;
  if (loaded.source == nullptr) {
    return absl::InvalidArgumentError(Concat(origin, ": ", loaded.status.message(), "; use prompt or token_ids"));
  }
  BATON_ASSIGN_OR_RETURN(ChatTemplateInputs inputs, TemplateInputs(conversation, loaded.dialect, origin));
  BATON_RETURN_IF_ERROR(CheckSeen(*loaded.source, conversation, inputs, origin));
  inputs.bos_token = special_tokens.bos;
  inputs.eos_token = special_tokens.eos;
  inputs.more_special_tokens = special_tokens.more;
  absl::StatusOr<std::string> rendered = loaded.source->Render(inputs);
  if (rendered.ok()) return rendered;
  return absl::Status(rendered.status().code(), ToAbsl(Concat(origin, ": ", rendered.status().message())));
}

}  // namespace baton
