// SPDX-License-Identifier: Apache-2.0
// A model's chat templates: a template for conversations and optionally a second template for conversations with tools.
//
// Immutable, so thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "text/chat/chat_template.h"
#include "text/chat/conversation.h"
#include "text/chat/template_dialect.h"

namespace baton {

// A model's special tokens, for use in templates.
struct SpecialTokens {
  std::string bos;  // empty when the model has none
  std::string eos;  // empty when the model has none
  TemplateValue::Dict more = {};
};

class PromptTemplates {
 public:
  PromptTemplates() : PromptTemplates("", "") {}
  // An empty text means that the model lacks the template. A template that does not parse makes Render fail.
  PromptTemplates(std::string_view chat, std::string_view tool_use);

  // NOT_FOUND when the model has no chat template. Otherwise the parse error of the first template that has one, or OK.
  const absl::Status& status() const { return chat_.status.ok() && has_tool_use_ ? tool_use_.status : chat_.status; }

  // Returns the prompt. `origin` names the conversation in errors. RESOURCE_EXHAUSTED when the template hits a limit.
  // INVALID_ARGUMENT when the conversation is invalid or the template raises an error. INVALID_ARGUMENT also when the
  // template would silently ignore tools, tool calls, reasoning or an argument of the conversation.
  absl::StatusOr<std::string> Render(const Conversation& conversation, const SpecialTokens& special_tokens,
                                     std::string_view origin) const;

 private:
  struct Loaded {
    std::unique_ptr<const ChatTemplate> source;  // null unless `status` is OK
    absl::Status status;
    TemplateDialect dialect;
  };
  static Loaded Load(std::string_view text);

  Loaded chat_;
  bool has_tool_use_ = false;
  Loaded tool_use_;
};

}  // namespace baton
