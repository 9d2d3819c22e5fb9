// SPDX-License-Identifier: Apache-2.0
#include "text/chat/prompt_templates.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/status_matchers.h"

namespace baton {
namespace {

using absl::StatusCode;
using testing::Fails;

absl::StatusOr<std::string> Render(const std::string& chat, const Conversation& conversation,
                                   const std::string& tool_use = "") {
  return PromptTemplates(chat, tool_use).Render(conversation, {"<s>", "</s>", {{"pad_token", "<p>"}}}, "chat");
}

Conversation Plain(const std::string& template_arguments_json = "") {
  return {.messages = {{"user", "hi"}}, .tools = {}, .template_arguments_json = template_arguments_json};
}

const Conversation kWithTools{.messages = {{"user", "hi"}}, .tools = {{"f", "", ""}}};
const Conversation kWithCall{
    .messages = {{.role = "assistant", .content = {}, .tool_calls = {{"", "f", R"({"b":1, "a": 2})"}}}}};

TEST(PromptTemplatesTest, RendersWithSpecialTokensAndArguments) {
  EXPECT_EQ(*Render("{{ bos_token }}{{ messages[0].content }}{{ eos_token }}{{ add_generation_prompt }}", Plain()),
            "<s>hi</s>True");
  EXPECT_EQ(
      *Render("{{ add_generation_prompt }}{{ thinking }}", Plain(R"({"add_generation_prompt": false, "thinking": 1})")),
      "False1");
  EXPECT_EQ(*Render("{% if not day is defined %}{% set day = 'today' %}{% endif %}{{ day }}", Plain(R"({"day": "x"})")),
            "x");
  EXPECT_EQ(*Render("{{ pad_token }}", Plain()), "<p>");
  EXPECT_EQ(*Render("{{ pad_token }}", Plain(R"({"pad_token": "x"})")), "x")
      << "an argument overrides a special token, as in Hugging Face's transformers";
}

TEST(PromptTemplatesTest, FailsWithoutAUsableTemplate) {
  EXPECT_TRUE(Fails(Render("", Plain()), StatusCode::kInvalidArgument,
                    "chat: the model has no chat template; use prompt or token_ids"));
  EXPECT_TRUE(Fails(Render("{% for", Plain()), StatusCode::kInvalidArgument, "chat: chat template, line 1: "));
  EXPECT_TRUE(Fails(Render("{{ raise_exception('no') }}", Plain()), StatusCode::kInvalidArgument, "chat: no"));
}

TEST(PromptTemplatesTest, RefusesInputsThatTheTemplateWouldIgnore) {
  const auto refused = [](const std::string& source, const Conversation& conversation, const std::string& what) {
    EXPECT_TRUE(Fails(Render(source, conversation), StatusCode::kInvalidArgument, what)) << source;
  };
  refused("x", kWithTools, "chat.tools: expected no value, because the model's chat template does not look at tools");
  refused(
      "{{ messages[0].content }}", kWithCall,
      "chat.messages[0].tool_calls: expected no value, because the model's chat template does not look at tool calls");
  refused("{{ messages[0].content }}", {.messages = {{.role = "assistant", .content = "", .reasoning_content = "r"}}},
          "chat.messages[0].reasoning_content: expected no value, because the model's chat template does not look at "
          "reasoning");
  const std::string unread = ": expected no value, because the model's chat template does not look at this argument";
  refused("{{ thinking }}", Plain(R"({"thinkin": 1})"), "chat.template_arguments_json: thinkin" + unread);
  refused("{% for message in messages %}{{ message.role }}{% endfor %}", Plain(R"({"message": 1})"),
          "chat.template_arguments_json: message" + unread);
  refused("{% macro m(x) %}{{ x }}{% endmacro %}{{ m(1) }}", Plain(R"({"x": 1})"), "x" + unread);
  refused("{% macro m(x) %}{{ x }}{% endmacro %}{{ m(1) }}", Plain(R"({"m": 1})"), "m" + unread);
  refused("{{ raise_exception('x') }}", Plain(R"({"raise_exception": 1})"), "raise_exception" + unread);
  for (const char* name : {"messages", "tools", "bos_token", "eos_token"}) {
    refused(
        std::string("{{ ") + name + " }}", Plain(std::string(R"({")") + name + R"(": 1})"),
        std::string("chat.template_arguments_json: ") + name + ": expected no value, because Baton sets this variable");
  }
}

TEST(PromptTemplatesTest, ALoopVariableDoesNotHideAVariableReadElsewhere) {
  EXPECT_EQ(*Render("{% macro m(tools) %}{{ tools|length }}{% endmacro %}{{ m(tools) }}", kWithTools), "1");
  EXPECT_EQ(*Render("{% for x in [1] if x == 1 %}{{ x }}{% endfor %}{{ x }}", Plain(R"({"x": 2})")), "12");
  EXPECT_EQ(*Render("{% for x in x %}{{ x }}{% endfor %}", Plain(R"({"x": [3]})")), "3");
}

TEST(PromptTemplatesTest, FindsFieldsReadAsAttributeItemOrKey) {
  for (const char* source : {"{{ messages[0].tool_calls|length }}", "{{ messages[0]['tool_calls']|length }}",
                             "{{ messages[0].get('tool_calls')|length }}",
                             "{% for m in messages %}{% if 'tool_calls' in m %}1{% endif %}{% endfor %}"}) {
    EXPECT_EQ(*Render(source, kWithCall), "1") << source;
  }
}

TEST(PromptTemplatesTest, UsesTheToolTemplateOnlyWithTools) {
  EXPECT_EQ(*Render("plain", kWithTools, "{{ tools[0].function.name }}"), "f");
  EXPECT_EQ(*Render("plain", Plain(), "{{ tools[0].function.name }}"), "plain");
  EXPECT_EQ(*Render("plain", Plain(), "{% for"), "plain");
  EXPECT_TRUE(Fails(Render("plain", kWithTools, "{% for"), StatusCode::kInvalidArgument, "chat template, line 1: "));
}

TEST(PromptTemplatesTest, PassesArgumentsAsTheTemplateExpectsThem) {
  const auto loop = [](const std::string& use) {
    return "{% for m in messages %}{% if m.tool_calls and m.content is none %}{% for c in m.tool_calls %}" + use +
           "{% endfor %}{% endif %}{% endfor %}";
  };
  const auto with = [&](const std::string& use) { return *Render(loop(use), kWithCall, loop("{{ tools }}")); };
  EXPECT_EQ(with("{{ c.function.arguments|tojson }}"), R"({"b": 1, "a": 2})");
  EXPECT_EQ(with("{{ 'a: ' + c.function.arguments }}"), R"(a: {"b":1, "a": 2})") << "an object would fail";
  EXPECT_EQ(with("{{ c.function.arguments }}"), R"({"b":1, "a": 2})") << "an object would print as a Python dict";
  EXPECT_EQ(with("{% for k, v in c.function.arguments|items %}{{ k }}{% endfor %}"), "ba") << "a text would fail";
  EXPECT_EQ(with("{{ c.function.arguments if c.function.arguments is string else c.function.arguments|tojson }}"),
            R"({"b": 1, "a": 2})");
}

}  // namespace
}  // namespace baton
