// Renders conversations with a model's chat template (Jinja, as Hugging Face uses it: trim_blocks, lstrip_blocks, loop
// controls, raise_exception, strftime_now, a plain tojson).
//
// Immutable after Parse, so thread-safe. A template is data from outside: it cannot loop for ever, use unbounded memory
// or reach anything but its inputs.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "text/template_value.h"

namespace baton {

// All that a template can see.
struct ChatTemplateInputs {
  TemplateValue::List messages;  // dicts with role, content, tool_calls, ...
  TemplateValue::List tools;     // empty: the template sees none
  std::string bos_token;
  std::string eos_token;
  TemplateValue::Dict more_special_tokens;  // by name
  bool add_generation_prompt = true;
  TemplateValue::Dict variables;  // more of them, by name; they replace those above
  absl::Time now = absl::Now();   // what strftime_now formats, in the local time zone
};

class ChatTemplate {
 public:
  // UNIMPLEMENTED names a construct that is not supported, INVALID_ARGUMENT a syntax error; both with the line.
  static absl::StatusOr<std::unique_ptr<ChatTemplate>> Parse(std::string_view source);
  virtual ~ChatTemplate() = default;

  // INVALID_ARGUMENT carries exactly what the template itself raised, or what went wrong and the line;
  // RESOURCE_EXHAUSTED a limit that it hit. Invalid UTF-8 in the inputs becomes U+FFFD.
  virtual absl::StatusOr<std::string> Render(const ChatTemplateInputs& inputs) const = 0;

  // Whether the template speaks anywhere of a variable of that name, other than one of a loop, a macro or a function.
  virtual bool ReadsVariable(std::string_view name) const = 0;
  // Whether it speaks of a field of that name, as an attribute or in a string.
  virtual bool ReadsField(std::string_view name) const = 0;
};

}  // namespace baton
