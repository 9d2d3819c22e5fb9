// SPDX-License-Identifier: Apache-2.0
#include "text/chat/chat_template.h"

#include <utility>
#include <variant>

#include "common/status_macros.h"
#include "text/jinja/evaluator.h"
#include "text/jinja/parser.h"
#include "text/utf8.h"

namespace baton {
namespace {

// Does not copy valid strings: `text` must outlive the render.
absl::StatusOr<jinja::Value> Import(jinja::Heap& heap, const std::string& text) {
  if (ValidUtf8Prefix(text) == text.size()) return jinja::Value::String(text);
  std::string repaired;
  RepairUtf8(text, repaired);
  return heap.NewString(std::move(repaired));
}

absl::StatusOr<jinja::Value> Import(jinja::Heap& /*heap*/, std::monostate) { return jinja::Value::None(); }
absl::StatusOr<jinja::Value> Import(jinja::Heap& /*heap*/, bool value) { return jinja::Value::Bool(value); }
absl::StatusOr<jinja::Value> Import(jinja::Heap& /*heap*/, int64_t value) { return jinja::Value::Int(value); }
absl::StatusOr<jinja::Value> Import(jinja::Heap& /*heap*/, double value) { return jinja::Value::Float(value); }
absl::StatusOr<jinja::Value> Import(jinja::Heap& heap, const TemplateValue::List& list);
absl::StatusOr<jinja::Value> Import(jinja::Heap& heap, const TemplateValue::Dict& dict);

absl::StatusOr<jinja::Value> ImportAny(jinja::Heap& heap, const TemplateValue& value) {
  const jinja::DepthGuard guard(heap);
  BATON_RETURN_IF_ERROR(guard.status());
  return std::visit([&heap](const auto& data) { return Import(heap, data); }, value.data());
}

absl::StatusOr<jinja::Value> Import(jinja::Heap& heap, const TemplateValue::List& list) {
  std::vector<jinja::Value> items;
  items.reserve(list.size());
  for (const TemplateValue& item : list) {
    BATON_ASSIGN_OR_RETURN(const jinja::Value imported, ImportAny(heap, item));
    items.push_back(imported);
  }
  return heap.NewList(std::move(items));
}

absl::StatusOr<jinja::Value> Import(jinja::Heap& heap, const TemplateValue::Dict& dict) {
  std::vector<std::pair<jinja::Value, jinja::Value>> entries;
  entries.reserve(dict.size());
  for (const auto& [name, value] : dict) {
    BATON_ASSIGN_OR_RETURN(const jinja::Value key, Import(heap, name));
    BATON_ASSIGN_OR_RETURN(const jinja::Value imported, ImportAny(heap, value));
    entries.emplace_back(key, imported);
  }
  return heap.NewDict(std::move(entries));
}

class JinjaChatTemplate : public ChatTemplate {
 public:
  explicit JinjaChatTemplate(jinja::Template parsed) : template_(std::move(parsed)) {}

  absl::StatusOr<std::string> Render(const ChatTemplateInputs& inputs) const override {
    jinja::Runtime runtime((jinja::Limits()));
    runtime.now = inputs.now;
    jinja::Evaluator evaluator(runtime);
    BATON_RETURN_IF_ERROR(SetVariables(inputs, runtime.heap, evaluator));
    return evaluator.Run(template_);
  }

  bool ReadsVariable(std::string_view name) const override { return template_.variables.contains(name); }
  bool ReadsField(std::string_view name) const override { return template_.fields.contains(name); }

 private:
  static absl::Status SetVariables(const ChatTemplateInputs& inputs, jinja::Heap& heap, jinja::Evaluator& evaluator) {
    BATON_RETURN_IF_ERROR(SetEach(inputs.more_special_tokens, heap, evaluator));
    BATON_ASSIGN_OR_RETURN(const jinja::Value messages, Import(heap, inputs.messages));
    BATON_ASSIGN_OR_RETURN(const jinja::Value tools, Import(heap, inputs.tools));
    BATON_ASSIGN_OR_RETURN(const jinja::Value bos_token, Import(heap, inputs.bos_token));
    BATON_ASSIGN_OR_RETURN(const jinja::Value eos_token, Import(heap, inputs.eos_token));
    evaluator.SetVariable("messages", messages);
    evaluator.SetVariable("tools", inputs.tools.empty() ? jinja::Value::None() : tools);
    evaluator.SetVariable("documents", jinja::Value::None());
    evaluator.SetVariable("bos_token", bos_token);
    evaluator.SetVariable("eos_token", eos_token);
    evaluator.SetVariable("add_generation_prompt", jinja::Value::Bool(inputs.add_generation_prompt));
    return SetEach(inputs.variables, heap, evaluator);
  }

  static absl::Status SetEach(const TemplateValue::Dict& values, jinja::Heap& heap, jinja::Evaluator& evaluator) {
    for (const auto& [name, value] : values) {
      BATON_ASSIGN_OR_RETURN(const jinja::Value imported, ImportAny(heap, value));
      evaluator.SetVariable(name, imported);
    }
    return absl::OkStatus();
  }

  const jinja::Template template_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ChatTemplate>> ChatTemplate::Parse(std::string_view source) {
  BATON_ASSIGN_OR_RETURN(jinja::Template parsed, jinja::ParseTemplate(source));
  return std::make_unique<JinjaChatTemplate>(std::move(parsed));
}

}  // namespace baton
