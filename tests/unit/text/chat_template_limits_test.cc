// SPDX-License-Identifier: Apache-2.0
// Templates that would need unbounded time, memory or stack.
#include <gtest/gtest.h>

#include "test_tokenizer.h"
#include "tests/status_matchers.h"
#include "text/chat/chat_template.h"

namespace baton {
namespace {

using absl::StatusCode;
using testing::Fails;

absl::StatusOr<std::string> RenderHi(std::string_view source) {
  auto parsed = ChatTemplate::Parse(source);
  if (!parsed.ok()) return parsed.status();
  return testing::RenderTurns(**parsed, {{"user", "hi"}});
}

std::string Repeated(std::string_view text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

TEST(ChatTemplateLimitsTest, WorkIsBounded) {
  for (const char* source :
       {// Nested loops.
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        // Few steps, each of which reads much text.
        "{% set x = 'a' * 9000000 %}{% for i in range(99999) %}{% if x == x ~ '' %}{% endif %}{% endfor %}",
        "{% set x = 'a' * 9000000 %}{% for i in range(99999) %}{{ 'b' in x }}{% endfor %}",
        "{% set x = 'a' * 9000000 %}{% for i in range(99999) %}{{ x|length }}{% endfor %}",
        // A small list whose expansion has 2^40 items.
        "{% set ns = namespace(x=[1]) %}{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x == "
        "ns.x }}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ "
        "ns.x|tojson }}"}) {
    EXPECT_TRUE(Fails(RenderHi(source), StatusCode::kResourceExhausted, "template")) << source;
  }
}

TEST(ChatTemplateLimitsTest, MemoryIsBounded) {
  for (const char* source :
       {"{{ 'a' * 9000000000000000000 }}", "{{ [1] * 9000000000000000000 }}", "{{ 'ab' * 9223372036854775807 }}",
        "{% set ns = namespace(x='a') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
        "{% set ns = namespace(x='a') %}{% for i in range(99) %}{% set ns.x = ns.x|replace('a', 'aaaa') %}{% endfor %}",
        "{% set ns = namespace(x='a') %}{% for i in range(99) %}{% set ns.x = ns.x|tojson|tojson %}{% endfor %}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = ns.x * 9 %}{% endfor %}",
        "{{ '5'.zfill(9000000000000000000) }}", "{% for i in range(99999) %}{{ 'a' * 100000 }}{% endfor %}",
        "{{ range(9000000000) }}"}) {
    const auto result = RenderHi(source);
    EXPECT_EQ(result.status().code(), StatusCode::kResourceExhausted) << source << " " << result.status();
  }
}

TEST(ChatTemplateLimitsTest, RecursionIsBounded) {
  EXPECT_TRUE(Fails(RenderHi("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), StatusCode::kResourceExhausted,
                    "levels of nesting"));
  // A list nested deeper than the stack allows: printing, comparing and tojson must fail.
  const std::string deep =
      "{% set ns = namespace(x=[]) %}{% for i in range(50000) %}{% set ns.x = [ns.x] %}{% endfor %}";
  for (const char* use :
       {"{{ ns.x }}", "{{ ns.x == [[ns.x]] or ns.x == [ns.x] }}{{ ns.x|string }}", "{{ ns.x|tojson }}"}) {
    EXPECT_TRUE(Fails(RenderHi(deep + use), StatusCode::kResourceExhausted, "levels of nesting")) << use;
  }
  EXPECT_OK(RenderHi(deep)) << "creating and freeing the list needs no recursion";
  EXPECT_TRUE(Fails(RenderHi("{{ [1]|map('map', 'map', 'map') }}"), StatusCode::kInvalidArgument, "not iterable"));
}

TEST(ChatTemplateLimitsTest, ParserBoundsNesting) {
  constexpr int kMany = 20'000;
  const std::string cases[] = {
      "{{ " + Repeated("(", kMany) + "1" + Repeated(")", kMany) + " }}",
      "{{ " + Repeated("[", kMany) + Repeated("]", kMany) + " }}",
      "{{ " + Repeated("{'a':", kMany) + "1" + Repeated("}", kMany) + " }}",
      "{{ " + Repeated("-", kMany) + "1 }}",
      "{{ " + Repeated("not ", kMany) + "1 }}",
      "{{ 1" + Repeated(" + 1", kMany) + " }}",
      "{{ 1" + Repeated(" and 1", kMany) + " }}",
      "{{ 1" + Repeated(" ** 1", kMany) + " }}",
      "{{ x" + Repeated(".a", kMany) + " }}",
      "{{ x" + Repeated("[0]", kMany) + " }}",
      "{{ x" + Repeated("()", kMany) + " }}",
      "{{ x" + Repeated("|list", kMany) + " }}",
      "{{ 1" + Repeated(" if 1 else 1", kMany) + " }}",
      "{{ 1" + Repeated(" if 1", kMany) + " }}",
      Repeated("{% if 1 %}", kMany) + Repeated("{% endif %}", kMany),
      Repeated("{% for a in b %}", kMany) + Repeated("{% endfor %}", kMany),
      Repeated("{% set a %}", kMany) + Repeated("{% endset %}", kMany),
      Repeated("{% macro m() %}", kMany) + Repeated("{% endmacro %}", kMany),
  };
  for (const std::string& source : cases) {
    EXPECT_TRUE(Fails(ChatTemplate::Parse(source), StatusCode::kInvalidArgument, "line 1")) << source.substr(0, 40);
  }
}

TEST(ChatTemplateLimitsTest, LongChainsWithoutNestingAreAccepted) {
  ASSERT_OK_AND_ASSIGN(const std::string concatenated, RenderHi("{{ 'a'" + Repeated(" ~ 'a'", 5000) + " }}"));
  EXPECT_EQ(concatenated.size(), 5001u);
  ASSERT_OK_AND_ASSIGN(const std::string chosen,
                       RenderHi("{% if 0 %}" + Repeated("{% elif 0 %}", 5000) + "{% else %}x{% endif %}"));
  EXPECT_EQ(chosen, "x");
}

TEST(ChatTemplateLimitsTest, DeeplyNestedInputsAreRefused) {
  TemplateValue deep;
  for (int i = 0; i < 5000; ++i) {
    TemplateValue::List list;
    list.push_back(std::move(deep));
    deep = std::move(list);
  }
  ChatTemplateInputs inputs;
  inputs.variables.emplace_back("deep", std::move(deep));
  EXPECT_TRUE(Fails((*ChatTemplate::Parse("x"))->Render(inputs), StatusCode::kResourceExhausted, "levels of nesting"));
}

TEST(ChatTemplateLimitsTest, LongConversationStaysWithinTheLimits) {
  const auto parsed = *ChatTemplate::Parse(
      "{% set ns = namespace(text='') %}{% for m in messages %}{% if m.role == 'user' and m.content|trim %}"
      "{{- '<' + m.role + '>' + m.content|trim + '</>' }}{% endif %}{% endfor %}");
  const std::vector<ChatTurn> turns(5000, {"user", std::string(2000, 'x')});
  ASSERT_OK_AND_ASSIGN(const std::string text, testing::RenderTurns(*parsed, turns));
  EXPECT_EQ(text.size(), 5000u * (2000 + 6 + 3));
}

}  // namespace
}  // namespace baton
