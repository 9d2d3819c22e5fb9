// In which form a chat template wants what clients send in several: a message's content as a text or as a list of
// parts, a call's arguments as an object or as JSON text. No model says so; it is found out by rendering small
// conversations.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "text/chat/chat_template.h"

namespace baton {

enum class ContentForm {
  kText,         // a text; parts are joined to one by line feeds
  kTextOrParts,  // as it came
  kParts,        // parts; a text becomes one
  kOnePart,      // a part; several are joined to one by line feeds
};

struct TemplateDialect {
  // It writes a call's arguments as they are: it was made for their JSON text.
  bool arguments_as_text = false;
  std::map<std::string, ContentForm, std::less<>> content = {};  // by role, of those that were tried

  // Of a role that was not tried: the user's, where a text would not do.
  ContentForm ContentOf(std::string_view role) const;
};

TemplateDialect FindDialect(const ChatTemplate& source);

}  // namespace baton
