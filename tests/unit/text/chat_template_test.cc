// SPDX-License-Identifier: Apache-2.0
// Tests the template language. Expected results are from Python's jinja2 with Hugging Face's settings.
#include "text/chat/chat_template.h"

#include <gtest/gtest.h>

#include "test_tokenizer.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using absl::StatusCode;
using testing::Fails;

absl::StatusOr<std::string> TryRender(std::string_view source) {
  auto parsed = ChatTemplate::Parse(source);
  if (!parsed.ok()) return parsed.status();
  ChatTemplateInputs inputs;
  inputs.now = absl::FromCivil(absl::CivilDay(2024, 7, 26), absl::LocalTimeZone());
  inputs.bos_token = "<s>";
  inputs.messages = {TemplateValue::Dict{{"role", "system"}, {"content", " sys "}},
                     TemplateValue::Dict{{"role", "user"}, {"content", "Z\u00FCrich"}}};
  inputs.variables = {
      {"xs", TemplateValue::List{3, 1, 2}},
      {"d", TemplateValue::Dict{{"a", 1}, {"B", 2.5}, {"items", TemplateValue()}}},
      {"s", "Hello World"},
      {"empty", ""},
      {"words", TemplateValue::List{"b", "A", "a"}},
  };
  return (*parsed)->Render(inputs);
}

std::string Render(std::string_view source) {
  const absl::StatusOr<std::string> text = TryRender(source);
  EXPECT_OK(text) << source;
  return text.value_or("");
}

TEST(ChatTemplateTest, ExpressionsFollowPython) {
  EXPECT_EQ(Render("{{ 1 + 2 * 3 - 4 / 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 2 ** 10 }} {{ 2 ** -1 }}"),
            "5.0 -4 2 1024 0.5");
  EXPECT_EQ(Render("{{ 1e20 }} {{ 1e-7 }} {{ 0.1 + 0.2 }} {{ 1.0 }}"), "1e+20 1e-07 0.30000000000000004 1.0");
  EXPECT_EQ(Render("{{ 1 < 2 < 3 }} {{ 'a' in 'abc' }} {{ 5 not in xs }} {{ not empty }} {{ empty or 'z' }}"),
            "True True True True z");
  EXPECT_EQ(Render("{{ 'a' ~ 1 ~ none ~ 1.5 }} {{ 'ab' * 2 }} {{ [1] + [2] }} {{ (1,) }} {{ {'k': 'v'} }}"),
            "a1None1.5 abab [1, 2] (1,) {'k': 'v'}");
  EXPECT_EQ(Render("{{ 'y' if xs else 'n' }}{{ 'y' if empty }}{{ 1 if empty else 2 if none else 3 }}"), "y3");
  EXPECT_EQ(Render("{{ [1, 2] == [1, 2] }} {{ 1 == 1.0 }} {{ true == 1 }} {{ 'a' == 1 }} {{ 'a' < 'b' }}"),
            "True True True False True");
}

TEST(ChatTemplateTest, StringsAreSequencesOfCodePoints) {
  EXPECT_EQ(
      Render("{% set t = messages[1].content %}{{ t|length }} {{ t[1] }} {{ t[::-1] }} {{ t[:-1] }} {{ t[-3:] }}"),
      "6 \u00FC hcir\u00FCZ Z\u00FCric ich");
  EXPECT_EQ(Render("{{ s[1:4] }} {{ xs[::2] }} {{ xs[-1] }} [{{ xs[9] }}] [{{ s[5:2] }}]"), "ell [3, 2] 2 [] []");
}

TEST(ChatTemplateTest, AttributesAndItemsFindEntriesAndMethods) {
  EXPECT_EQ(Render("{{ d.a }} {{ d['B'] }} {{ d['items'] }} {{ d.items()|list }} {{ d.nope }} {{ xs.0 }}"),
            "1 2.5 None [('a', 1), ('B', 2.5), ('items', None)]  3");
  EXPECT_EQ(Render("{{ d.get('a') }} {{ d.get('z', 9) }} {{ d.keys()|list }}"), "1 9 ['a', 'B', 'items']");
}

TEST(ChatTemplateTest, StringMethodsFollowPython) {
  EXPECT_EQ(Render("{{ ' a b c '.split(none, 1) }} {{ 'a,b,,c'.split(',') }} {{ 'a b c'.rsplit(' ', 1) }}"),
            "['a', 'b c '] ['a', 'b', '', 'c'] ['a b', 'c']");
  EXPECT_EQ(Render("{{ 'xax'.strip('x') }} {{ 'abc'.startswith(('x', 'a')) }} {{ 'abc'.replace('', '-') }} "
                   "{{ 'banana'.count('an') }} {{ '-5'.zfill(4) }} {{ 'it is'.title() }}"),
            "a True -a-b-c- 2 -005 It Is");
}

TEST(ChatTemplateTest, CaseMappingFollowsUnicode) {
  EXPECT_EQ(
      Render("{{ 'Straße ŉ ﬁ'.upper() }} {{ 'ΑΣ ΣΑΣ.'.lower() }} {{ 'İ'.lower()|length }} {{ 'ΐ'|upper|length }}"),
      "STRASSE ʼN FI ας σας. 2 3");
  EXPECT_EQ(Render("{{ 'ßa ǆb ΑΣ it\\'s'.title() }} {{ 'ßAΣ'.capitalize() }}"), "Ssa ǅb Ας It'S Ssaς");
  EXPECT_EQ(Render("{{ 'ßa ǆb it\\'s a-b'|title }} {{ 'ßAΣ'|capitalize }}"), "SSa Ǆb It's A-B Ssaς");
  EXPECT_EQ(
      Render("{{ 'ªⅰ'.islower() }} {{ 'aǅ'.islower() }} {{ 'Aǅ'.isupper() }} {{ 'A1'.isupper() }} {{ 'ß' is lower }}"),
      "True False False True True");
  EXPECT_EQ(
      Render("{{ '٣²'.isdigit() }} {{ '½'.isdigit() }} {{ '½a'.isalnum() }} {{ '一é'.isalpha() }} {{ 'ⅷ'.isalpha() }}"),
      "True False True True False");
}

TEST(ChatTemplateTest, ReprEscapesCharactersThatAreNotPrintable) {
  EXPECT_EQ(Render("{{ ['é中😀', '\\x7f\\x85\\xa0\\xad', '\\u200b\\u2028\\u3000\\ue000', '\\U000e0001\\U0010ffff'] }}"),
            R"(['é中😀', '\x7f\x85\xa0\xad', '\u200b\u2028\u3000\ue000', '\U000e0001\U0010ffff'])");
  EXPECT_EQ(Render("{{ ['\\'\\n', '\"\\\\'] }}"), R"(["'\n", '"\\'])");
}

TEST(ChatTemplateTest, FiltersFollowJinja) {
  EXPECT_EQ(
      Render("{{ words|sort }} {{ words|unique|list }} {{ xs|sort(reverse=true)|join(',') }} {{ d|dictsort|first }}"),
      "['A', 'a', 'b'] ['b', 'A'] 3,2,1 ('a', 1)");
  EXPECT_EQ(Render("{{ messages|map(attribute='role')|join('+') }} {{ xs|select('odd')|list }} "
                   "{{ messages|selectattr('role', 'equalto', 'user')|list|length }} {{ words|map('upper')|list }}"),
            "system+user [3, 1] 1 ['B', 'A', 'A']");
  EXPECT_EQ(Render("{{ nope|default('q') }} {{ empty|default('q', true) }} {{ '3.7'|int }} {{ 2.5|round }} {{ "
                   "'a\nb'|indent(2) }}"),
            "q q 3 2.0 a\n  b");
  EXPECT_EQ(Render("{{ ' x '|trim }}{{ s|upper }}{{ s|replace('l', 'L', 1) }}{{ -3|abs }}{{ xs|sum }}{{ xs|max }}"),
            "xHELLO WORLDHeLlo World363");
}

TEST(ChatTemplateTest, ToJsonFollowsPythonsJsonDumps) {
  EXPECT_EQ(Render("{{ d|tojson }} {{ messages[1]|tojson }} {{ [true, none, 'a\"\\n']|tojson }}"),
            "{\"a\": 1, \"B\": 2.5, \"items\": null} {\"role\": \"user\", \"content\": \"Z\u00FCrich\"} "
            "[true, null, \"a\\\"\\n\"]");
  EXPECT_EQ(Render("{{ {'a': [1, {}], 'b': []}|tojson(indent=2) }}"),
            "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}");
  EXPECT_EQ(Render("{{ '\u00E9\U0001F600'|tojson(ensure_ascii=true) }}"), "\"\\u00e9\\ud83d\\ude00\"");
}

TEST(ChatTemplateTest, TestsFollowJinja) {
  EXPECT_EQ(
      Render(
          "{{ nope is defined }} {{ s is defined }} {{ none is none }} {{ s is string }} {{ d is mapping }} "
          "{{ xs is iterable }} {{ 9 is divisibleby 3 }} {{ true is number }} {{ 1 is not string }} {{ 1 is in xs }}"),
      "False True True True True True True True True True");
}

TEST(ChatTemplateTest, LoopsHaveTheVariableLoop) {
  EXPECT_EQ(
      Render("{% for x in xs %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.first }}{{ loop.last }}"
             "{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('a', 'b') }};{% endfor %}"),
      "103TrueFalse1a;212FalseFalse32b;321FalseTrue1a;");
  EXPECT_EQ(
      Render(
          "{% for k, v in d.items() if v %}{{ loop.index }}{{ k }}={{ v }}{{ '' if loop.last else ',' }}{% endfor %}"),
      "1a=1,2B=2.5");
  EXPECT_EQ(Render("{% for x in [] %}x{% else %}none{% endfor %}"), "none");
  EXPECT_EQ(Render("{% for x in range(9) %}{% if x == 1 %}{% continue %}{% endif %}{% if x > 3 %}{% break %}{% endif %}"
                   "{{ x }}{% endfor %}"),
            "023");
}

TEST(ChatTemplateTest, LoopsHaveTheirOwnScopeButCanChangeNamespaces) {
  EXPECT_EQ(Render("{% set a = 1 %}{% for x in xs %}{% set a = a + x %}{{ a }}{% endfor %}{{ a }}"), "4231");
  EXPECT_EQ(Render("{% set ns = namespace(a=1) %}{% for x in xs %}{% set ns.a = ns.a + x %}{% endfor %}{{ ns.a }}"),
            "7");
  EXPECT_EQ(Render("{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set q %}<{{ a }}>{% endset %}{{ q }}"), "12<1>");
}

TEST(ChatTemplateTest, MacrosTakeDefaultAndNamedArguments) {
  EXPECT_EQ(
      Render("{% macro m(a, b=2, c=a) %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ m(1) }}{{ m(b=1, a=2) }}{{ m() }}"),
      "[121][212][2]");
  EXPECT_EQ(Render("{% set x = 5 %}{% macro g() %}{{ x }}{% endmacro %}{% set x = 6 %}{{ g() }}"), "6");
  EXPECT_EQ(Render("{% for i in range(2) %}{% macro z() %}{{ i }}{% endmacro %}{{ z() }}{% endfor %}"), "01");
}

TEST(ChatTemplateTest, TagsStripWhitespaceLikeJinja) {
  EXPECT_EQ(Render("  {# line #}\nx\n  {%- if s -%}  a  {%- endif -%}  \n y\n"),
            "x"
            "ay");
  EXPECT_EQ(Render("  {% if s %}\n  a\n  {% endif %}\nb\n"), "  a\nb");
  EXPECT_EQ(Render("a {% if s %} b {% endif %} c"), "a  b  c");
  EXPECT_EQ(Render("{%+ if s %} x {%+ endif +%}\n z"), " x \n z");
  EXPECT_EQ(Render("  {{ 1 }}\n  {{- 2 -}}\n  3\n\n"), "  123\n");
  EXPECT_EQ(Render("a {%- raw -%} {{ x }} {% if %} {%- endraw %}\nb"), "a{{ x }} {% if %}b");
  EXPECT_EQ(Render("one\r\ntwo\rthree"), "one\ntwo\nthree");
}

TEST(ChatTemplateTest, StringLiteralsHavePythonsEscapes) {
  EXPECT_EQ(Render(R"({{ "\x41\u00e9\n\t\\\'\"\q\101" }}{{ 'a' 'b' }}{{ "}}" }})"), "A\u00E9\n\t\\'\"\\qAab}}");
}

TEST(ChatTemplateTest, GenerationBlocksRenderTheirBody) {
  EXPECT_EQ(Render("{% generation %}{{ s }}{% endgeneration %}"), "Hello World");
  EXPECT_EQ(Render("{% set s = 1 %}{% generation %}{{ s }}{% set s = 2 %}{{ s }}{% endgeneration %}{{ s }}"), "121")
      << "a generation block has its own scope";
}

TEST(ChatTemplateTest, StrftimeNowUsesTheCallersTime) {
  EXPECT_EQ(Render("{{ strftime_now('%d %b %Y') }}"), "26 Jul 2024");
  EXPECT_EQ(Render("{{ strftime_now('%H:%M:%S.%f [%Z%z] 100%% %%Z') }}"), "00:00:00.000000 [] 100% %Z");
}

TEST(ChatTemplateTest, ToolsAreNoneUnlessGiven) { EXPECT_EQ(Render("{{ tools is none }}{{ bos_token }}"), "True<s>"); }

TEST(ChatTemplateTest, RaiseExceptionGivesItsMessageUnchanged) {
  const auto result = TryRender("{{ raise_exception('No ' ~ 'system role') }}");
  EXPECT_EQ(result.status(), absl::InvalidArgumentError("No system role"));
}

TEST(ChatTemplateTest, ErrorsNameTheLine) {
  const struct {
    const char* source;
    const char* message;
  } cases[] = {
      {"\n{{ nope.x }}", "line 2: 'nope' is undefined"},
      {"{{ d.x.y }}", "'dict object' has no attribute 'x'"},
      {"{{ 'a' + 1 }}", "unsupported operand types for +: 'str' and 'int'"},
      {"{{ nope + 1 }}", "'nope' is undefined"},
      {"{{ 1 // 0 }}", "zero"},
      {"{{ nope() }}", "'nope' is undefined"},
      {"{{ xs() }}", "'list' object is not callable"},
      {"{% for a, b in xs %}{% endfor %}", "not iterable"},
      {"{% set s.x = 1 %}", "not a namespace"},
      {"{{ nope|tojson }}", "'nope' is undefined"},
      {"{{ 9223372036854775807 + 1 }}", "overflow"},
  };
  for (const auto& c : cases) {
    EXPECT_TRUE(Fails(TryRender(c.source), StatusCode::kInvalidArgument, c.message)) << c.source;
  }
}

TEST(ChatTemplateTest, SyntaxErrorsNameTheLine) {
  for (const char* source :
       {"\n{{ 1 + }}", "\n{% if %}{% endif %}", "\n{% endif %}", "\n{% for x in xs %}", "\n{{ (1 }}", "\n{{ 1) }}",
        "\n{# open", "\n{% raw %}x", "\n{% unknown %}", "\n{% break %}", "\n{{ a b }}", "\n{{ 'abc }}", "\n{% set %}",
        "\n{{ {'a' 1} }}", "\n{{ \"\\ud800\" }}", "\n{{ \x01 }}"}) {
    EXPECT_TRUE(Fails(ChatTemplate::Parse(source), StatusCode::kInvalidArgument, "line 2")) << source;
  }
  EXPECT_TRUE(Fails(ChatTemplate::Parse("a\xFF"), StatusCode::kInvalidArgument, "invalid UTF-8 at byte 1"));
}

TEST(ChatTemplateTest, ParserRefusesUnsupportedFeatures) {
  const struct {
    const char* source;
    const char* name;
  } cases[] = {
      {"\n{% include 'x' %}", "'include'"},
      {"\n{% block a %}{% endblock %}", "'block'"},
      {"\n{{ x|wordwrap }}", "the filter 'wordwrap'"},
      {"\n{{ x is filter }}", "the test 'filter'"},
      {"\n{{ x|map('xmlattr') }}", "the filter 'xmlattr'"},
      {"\n{{ x|select('escaped') }}", "the test 'escaped'"},
      {"\n{{ x.encode('utf-8') }}", "the method 'encode'"},
      {"\n{{ x.expandtabs() }}", "the method 'expandtabs'"},
      {"\n{{ cycler(1) }}", "the function 'cycler'"},
      {"\n{% for a in b recursive %}{% endfor %}", "recursive"},
      {"\n{{ f(*a) }}", "unpacking"},
      {"{% if false %}\n{{ x|wordwrap }}{% endif %}", "the filter 'wordwrap'"},
  };
  for (const auto& c : cases) {
    const auto parsed = ChatTemplate::Parse(c.source);
    EXPECT_TRUE(Fails(parsed, StatusCode::kUnimplemented, c.name)) << c.source;
    EXPECT_TRUE(Fails(parsed, StatusCode::kUnimplemented, "line 2")) << c.source;
  }
}

TEST(ChatTemplateTest, CallingAMethodThatChangesAListOrDictFails) {
  EXPECT_EQ(Render("{% if false %}{{ [].append(1) }}{% endif %}x"), "x");
  for (const auto& [source, what] : {std::pair("{{ [].append(1) }}", "'append' of 'list'"),
                                     {"{% set _ = {'a': 1}.pop('a') %}", "'pop' of 'dict'"}}) {
    EXPECT_TRUE(Fails((*ChatTemplate::Parse(source))->Render({}), StatusCode::kInvalidArgument, what)) << source;
  }
}

TEST(ChatTemplateTest, FormatFillsInArguments) {
  EXPECT_EQ(Render("{{ '<{}|{{}}|{}>'.format(1, none) }}"), "<1|{}|None>");
  EXPECT_EQ(Render("{{ '{1}{0}{a}'.format('x', 'y', a=[1]) }}{{ ''.format() }}"), "yx[1]");
  for (const char* source : {"{{ '{}'.format() }}", "{{ '{2}'.format(1) }}", "{{ '{a}'.format(1) }}",
                             "{{ '{'.format() }}", "{{ '}'.format() }}", "{{ '{99999999999999999999}'.format(1) }}"}) {
    EXPECT_TRUE(Fails((*ChatTemplate::Parse(source))->Render({}), StatusCode::kInvalidArgument, "line 1")) << source;
  }
}

TEST(ChatTemplateTest, UnsupportedFormatFieldsAreRefused) {
  for (const std::string field : {"{:>5}", "{0!r}", "{a.b}", "{a[0]}", "{:.2f}"}) {
    const auto parsed = ChatTemplate::Parse("\n{{ '{}{{ " + field + "'.format(1, 2, a=3) }}");
    EXPECT_TRUE(Fails(parsed, StatusCode::kUnimplemented, "line 2")) << field;
    EXPECT_TRUE(Fails(parsed, StatusCode::kUnimplemented, "the format '" + field + "'"));
    EXPECT_EQ(Render("{{ '" + field + "' }}"), field) << "a string on which format() is not called";
  }
  // The parser cannot see a format that is computed at run time.
  EXPECT_TRUE(Fails((*ChatTemplate::Parse("{{ ('{:>' ~ '5}').format(1) }}"))->Render({}), StatusCode::kUnimplemented,
                    "the format '{:>5}' is not supported"));
}

TEST(ChatTemplateTest, MapAndSelectTreatFalseValuesAsEmpty) {
  EXPECT_EQ(Render("{{ none|selectattr('a')|list }}{{ x|map('upper')|list }}{{ ''|reject('odd')|list }}"), "[][][]");
}

TEST(ChatTemplateTest, InvalidUtf8InTheInputsIsRepaired) {
  const auto parsed = *ChatTemplate::Parse("{{ messages[0].content|length }}{{ messages[0].content }}");
  ASSERT_OK_AND_ASSIGN(const std::string text, testing::RenderTurns(*parsed, {{"user", "a\xFF"}}));
  EXPECT_EQ(text, "2a\uFFFD");
}

}  // namespace
}  // namespace baton
