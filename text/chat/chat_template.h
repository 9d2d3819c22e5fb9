// SPDX-License-Identifier: Apache-2.0
// Renders conversations with a model's chat template. The language is Jinja with Hugging Face's settings: trim_blocks,
// lstrip_blocks, loop controls, raise_exception, strftime_now, and tojson without HTML escapes.
//
// Templates are untrusted: time and memory are bounded, and a template sees only its inputs. Immutable after Parse, so
// thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "text/template_value.h"

namespace baton {

// The variables that a template can read.
struct ChatTemplateInputs {
  TemplateValue::List messages;  // dicts with role, content, tool_calls, ...
  TemplateValue::List tools;     // if empty, the variable is None
  std::string bos_token;
  std::string eos_token;
  TemplateValue::Dict more_special_tokens;  // by variable name
  bool add_generation_prompt = true;
  TemplateValue::Dict variables;  // further variables by name; they override the fields above
  absl::Time now = absl::Now();   // the result of strftime_now, in the local time zone
};

class ChatTemplate {
 public:
  // UNIMPLEMENTED names an unsupported construct, INVALID_ARGUMENT a syntax error. Both name the line.
  static absl::StatusOr<std::unique_ptr<ChatTemplate>> Parse(std::string_view source);
  virtual ~ChatTemplate() = default;

  // INVALID_ARGUMENT: the text that the template passed to raise_exception, unchanged, or an error with its line.
  // RESOURCE_EXHAUSTED: the render hit a limit (jinja/heap.h). Invalid UTF-8 in the inputs becomes U+FFFD.
  virtual absl::StatusOr<std::string> Render(const ChatTemplateInputs& inputs) const = 0;

  // Returns whether the template mentions a variable `name` that it does not define itself (in a loop or macro).
  virtual bool ReadsVariable(std::string_view name) const = 0;
  // Returns whether the template mentions `name` as an attribute or as a string literal, which may be a key.
  virtual bool ReadsField(std::string_view name) const = 0;
};

}  // namespace baton
