// SPDX-License-Identifier: Apache-2.0
// Conversations as clients send them: read, rendered by a template that looks at every field, and tokenized.
#include <memory>
#include <string>

#include "fuzz_input.h"
#include "tests/files.h"
#include "tests/tiny_models.h"
#include "text/assets/model_assets.h"
#include "text/chat/conversation.h"

namespace baton {
namespace {

constexpr char kTemplate[] =
    "{% if tools %}{% for t in tools %}{{ t|tojson }}{% endfor %}{% endif %}"
    "{% for m in messages %}<|user|>{{ m.role ~ (m.content or '')|trim }}"
    "{% if m.tool_calls %}{% for c in m.tool_calls %}{{ c.id }}{{ c.function.name }}{{ c.function.arguments|tojson }}"
    "{% for k, v in c.function.arguments|items %}{{ k }}={{ v }}{% endfor %}{% endfor %}{% endif %}"
    "{{ m.tool_call_id }}{{ m.name }}{{ m.reasoning_content }}{% endfor %}{{ more }}{{ "
    "more|default(none)|tojson(indent=2) }}";

std::shared_ptr<const ModelAssets> Assets() {
  const std::filesystem::path folder = testing::DemoModel("demo-chat");
  const AssetFiles files = {{"tokenizer.json", testing::ReadFile(folder / "tokenizer.json")},
                            {"chat_template.jinja", kTemplate}};
  return *ModelAssets::Build(AssetsFingerprint(files), files);
}

}  // namespace
}  // namespace baton

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace baton;
  static const std::shared_ptr<const ModelAssets> assets = Assets();
  const auto conversation = ParseConversation(fuzz::Text(data, size), "input");
  fuzz::CheckRefusal(conversation.status());
  if (!conversation.ok()) return 0;
  const auto prompt = assets->RenderChat(*conversation, "chat");
  fuzz::CheckRefusal(prompt.status());
  if (!prompt.ok()) return 0;
  const auto ids = assets->tokenizer->Encode(*prompt, /*add_special_tokens=*/false);
  fuzz::Check(ids.ok(), ids.status().ToString());
  fuzz::Check(*assets->tokenizer->Decode(*ids, /*skip_special_tokens=*/false) == *prompt, "the tokens are the prompt");
  return 0;
}
