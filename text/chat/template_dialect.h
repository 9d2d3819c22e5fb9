// SPDX-License-Identifier: Apache-2.0
// A TemplateDialect says in which form a chat template expects message contents and tool call arguments. Models do not
// declare the dialect, so FindDialect renders small conversations and inspects the result.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "text/chat/chat_template.h"

namespace baton {

enum class ContentForm {
  kText,         // a string; parts are joined with line feeds
  kTextOrParts,  // a string or a list of parts, whichever the client sent
  kParts,        // a list of parts; a string becomes one part
  kOnePart,      // a list of exactly one part; several parts are joined with line feeds
};

struct TemplateDialect {
  bool arguments_as_text = false;                                // tool call arguments are JSON text, not an object
  std::map<std::string, ContentForm, std::less<>> content = {};  // by role

  // For a role that FindDialect did not try: the user's form if the user's content cannot be a string, otherwise kText.
  ContentForm ContentOf(std::string_view role) const;
};

// Renders up to 20 small conversations.
TemplateDialect FindDialect(const ChatTemplate& source);

}  // namespace baton
