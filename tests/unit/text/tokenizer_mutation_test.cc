// SPDX-License-Identifier: Apache-2.0
// Loads thousands of damaged files. Each must give an error or a usable object, without a crash or a hang. Sanitizers
// make these tests more effective.
#include <gtest/gtest.h>

#include <array>

#include "test_tokenizer.h"
#include "tests/status_matchers.h"
#include "text/chat/chat_template.h"
#include "text/tokenizer/tokenizer_config.h"

namespace baton {
namespace {

// Bytes with a meaning in JSON and templates, so that a mutation often stays well-formed.
constexpr std::string_view kPoison = "{}[]()\",:0123456789-+*?\\|%#'._aefint \n\x00\x80\xFF\xC3";

std::string Mutate(std::string text, std::mt19937& random) {
  const int edits = 1 + static_cast<int>(random() % 4);
  for (int i = 0; i < edits && !text.empty(); ++i) {
    const size_t at = random() % text.size();
    const size_t length = 1 + random() % std::min<size_t>(text.size() - at, 24);
    switch (random() % 6) {
      case 0: text.resize(at); break;
      case 1: text[at] = static_cast<char>(text[at] ^ (1 << random() % 8)); break;
      case 2: text[at] = kPoison[random() % kPoison.size()]; break;
      case 3: text.erase(at, length); break;
      case 4: text.insert(random() % text.size(), text.substr(at, length)); break;
      default: text.insert(at, 1, kPoison[random() % kPoison.size()]);
    }
  }
  return text;
}

// A small tokenizer.json with all stages of a real file. The small vocabulary leaves most mutations to the other
// fields.
std::string SmallFile() {
  nlohmann::json json = testing::SmallTokenizer({{"a", "b"}, {"ab", "ab"}, {"Ġ", "t"}});
  nlohmann::json special = testing::AddedToken(259, "<s>");
  special["special"] = true;
  special["lstrip"] = true;
  nlohmann::json word = testing::AddedToken(260, "word");
  word["single_word"] = true;
  json["added_tokens"] = nlohmann::json::array({special, word});
  json["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"},
         {"pattern", {{"Regex", "(?i:'s|'t)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|\\s+(?!\\S)|\\s+"}}},
         {"behavior", "Isolated"},
         {"invert", false}},
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
  json["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}}, {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
      {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {259}}, {"tokens", {"<s>"}}}}}}};
  return json.dump();
}

TEST(TokenizerMutationTest, DamagedTokenizerFilesAreRefusedOrWork) {
  const std::string file = SmallFile();
  const std::string config = R"({"bos_token": "<s>", "add_bos_token": true})";
  ASSERT_OK(Tokenizer::Create(file, config));
  std::mt19937 random(5);
  int loaded = 0;
  for (int i = 0; i < 6000; ++i) {
    const auto tokenizer = Tokenizer::Create(Mutate(file, random), config);
    if (!tokenizer.ok()) continue;
    ++loaded;
    const auto ids = (*tokenizer)->Encode("<s>ababab the word's 12345  \n\u00E9 <s>", true);
    if (!ids.ok()) continue;
    EXPECT_OK((*tokenizer)->Decode(*ids, false));
  }
  EXPECT_GT(loaded, 10) << "no mutation passes the JSON parser";
}

TEST(TokenizerMutationTest, TruncatedTokenizerFilesAreRefused) {
  const std::string file = SmallFile();
  for (size_t size = 0; size < file.size(); size += 7) {
    EXPECT_EQ(Tokenizer::Create(file.substr(0, size), "").status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(TokenizerMutationTest, DamagedValuesAreRefusedOrWork) {
  // Replaces every value of the file, one at a time, by values of other types.
  const nlohmann::json good = nlohmann::json::parse(SmallFile());
  const std::array<nlohmann::json, 9> values = {
      nullptr, true, -1, 4'000'000'000, 1e300, "x", "", nlohmann::json::array(), nlohmann::json::object()};
  const nlohmann::json flat = good.flatten();
  int tried = 0;
  for (const auto& [path, old] : flat.items()) {
    if (path.starts_with("/model/vocab/") && ++tried > 20) continue;
    std::string place = path;
    while (!place.empty()) {
      for (const nlohmann::json& value : values) {
        nlohmann::json damaged = good;
        damaged[nlohmann::json::json_pointer(place)] = value;
        const auto tokenizer = Tokenizer::Create(damaged.dump(), "");
        if (tokenizer.ok()) (void)(*tokenizer)->Encode("<s>abab word", true);
      }
      place.resize(place.rfind('/'));
    }
  }
}

TEST(TokenizerMutationTest, DamagedTokenizerConfigsAreRefusedOrWork) {
  const std::string file =
      R"({"bos_token": {"content": "<s>"}, "eos_token": "</s>", "add_bos_token": true, "add_eos_token": false,
          "chat_template": [{"name": "default", "template": "{{ bos_token }}"}], "model_max_length": 1e30})";
  ASSERT_OK(ParseTokenizerConfig(file));
  std::mt19937 random(6);
  for (int i = 0; i < 10000; ++i) (void)ParseTokenizerConfig(Mutate(file, random));
}

TEST(TokenizerMutationTest, DamagedChatTemplatesAreRefusedOrRender) {
  const std::string templates[] = {
      "{%- if messages[0]['role'] == 'system' %}{%- set loop_messages = messages[1:] %}{%- else %}"
      "{%- set loop_messages = messages %}{%- endif %}{%- set ns = namespace(i=0) %}{{- bos_token }}"
      "{%- for m in loop_messages if m.role is defined %}{%- if (m['role'] == 'user') != (ns.i % 2 == 0) %}"
      "{{- raise_exception('alternate') }}{%- endif %}{%- set ns.i = ns.i + 1 %}"
      "{{- '[' ~ m.role|upper ~ '] ' + m.content|trim + '\\n' }}{%- if not loop.last %}, {% endif %}{%- endfor %}",
      "{% macro show(x, depth=0) %}{% if x is mapping %}{% for k, v in x|items %}{{ '  ' * depth }}{{ k }}:"
      "{{ show(v, depth + 1) }}{% endfor %}{% else %}{{ x|tojson(indent=2) }}{% endif %}{% endmacro %}"
      "{# all of it #}{{- show({'a': [1, 2.5, none], 'b': {'c': messages|map(attribute='role')|list}}) -}}"
      "{% set s = 'a,b'.split(',')|join('-')|replace('a', 'x') %}{{ s[::-1] }}{{ s[1:] if s is string else '' }}"
      "{% raw %}{{ x }}{% endraw %}{{ strftime_now('%d %b %Y')|length > 3 }}{{ range(3)|select('odd')|sum }}",
  };
  for (const std::string& source : templates) {
    const auto parsed = ChatTemplate::Parse(source);
    ASSERT_OK(parsed);
    ASSERT_OK(testing::RenderTurns(**parsed, {{"system", "s"}, {"user", " u "}}, "<s>", "</s>"));
  }
  std::mt19937 random(7);
  int rendered = 0;
  for (int i = 0; i < 12000; ++i) {
    const auto parsed = ChatTemplate::Parse(Mutate(templates[i % 2], random));
    if (!parsed.ok()) continue;
    rendered += testing::RenderTurns(**parsed, {{"system", "s"}, {"user", " u "}}, "<s>", "</s>").ok() ? 1 : 0;
  }
  EXPECT_GT(rendered, 100) << "no mutation passes the parser";
}

}  // namespace
}  // namespace baton
