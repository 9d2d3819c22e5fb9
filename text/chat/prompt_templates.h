// A model's chat templates: the one for conversations and, when the model has one, that for conversations with tools.
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

// A model's, as its templates see them.
struct SpecialTokens {
  std::string bos;  // empty: none
  std::string eos;  // likewise
  TemplateValue::Dict more = {};
};

class PromptTemplates {
 public:
  PromptTemplates() : PromptTemplates("", "") {}
  // Empty: there is none. What is not supported fails when it is wanted.
  PromptTemplates(std::string_view chat, std::string_view tool_use);

  // NOT_FOUND when the model has none; else what of the first one that cannot be used is not supported, with its line.
  const absl::Status& status() const { return chat_.status.ok() && has_tool_use_ ? tool_use_.status : chat_.status; }

  // The prompt. `origin` names the conversation in errors: INVALID_ARGUMENT for what is wrong with it, for what the
  // template would not look at - tools, calls, reasoning, arguments - and for what the template raises;
  // RESOURCE_EXHAUSTED for a limit of the template.
  absl::StatusOr<std::string> Render(const Conversation& conversation, const SpecialTokens& special_tokens,
                                     std::string_view origin) const;

 private:
  struct Loaded {
    std::unique_ptr<const ChatTemplate> source;  // null: `status` says why
    absl::Status status;
    TemplateDialect dialect;
  };
  static Loaded Load(std::string_view text);

  Loaded chat_;
  bool has_tool_use_ = false;
  Loaded tool_use_;
};

}  // namespace baton
