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

  // Returns the form for `role`. For a role that FindDialect did not try, returns the form of the role `user` if that
  // form takes no string, otherwise kText.
  ContentForm ContentOf(std::string_view role) const;
};

// Finds out by rendering up to 20 small conversations. If a limit of rendering is exceeded, returns the default
// dialect.
TemplateDialect FindDialect(const ChatTemplate& source);

}  // namespace baton
