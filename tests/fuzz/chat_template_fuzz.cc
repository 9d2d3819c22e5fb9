// SPDX-License-Identifier: Apache-2.0
// Chat templates, parsed and rendered.
#include <string>

#include "fuzz_input.h"
#include "text/chat/conversation.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace baton;
  const auto chat_template = ChatTemplate::Parse(fuzz::Text(data, size));
  fuzz::CheckRefusal(chat_template.status());
  if (!chat_template.ok()) return 0;
  // A template may raise an exception of its own with an empty text: only the code is ours.
  Conversation conversation;
  conversation.messages = {{"system", "Be brief."},
                           {"user", "Hello \xFF"},
                           {.role = "assistant", .content = {}, .tool_calls = {{"1", "f", R"({"a": [1, "b"]})"}}},
                           {.role = "tool", .content = "{{ 1 }}", .tool_call_id = "1"}};
  conversation.tools = {{"f", "", R"({"type": "object"})"}};
  ChatTemplateInputs inputs = *TemplateInputs(conversation, {}, "chat");
  inputs.bos_token = "<s>";
  inputs.eos_token = "</s>";
  const auto text = (*chat_template)->Render(inputs);
  fuzz::Check(text.ok() || absl::IsInvalidArgument(text.status()) || absl::IsUnimplemented(text.status()) ||
                  absl::IsResourceExhausted(text.status()),
              text.status().ToString());
  return 0;
}
