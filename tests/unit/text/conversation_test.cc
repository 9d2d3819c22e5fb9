// SPDX-License-Identifier: Apache-2.0
#include "text/chat/conversation.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <utility>

#include "test_tokenizer.h"
#include "tests/status_matchers.h"
#include "text/chat/template_json.h"

namespace baton {
namespace {

using absl::StatusCode;
using testing::Fails;

// Returns the template's variables as JSON, or the error message.
std::string Seen(const Conversation& conversation, const TemplateDialect& dialect = {}) {
  const auto inputs = TemplateInputs(conversation, dialect, "chat");
  if (!inputs.ok()) return std::string(inputs.status().message());
  return (*ChatTemplate::Parse("{{ messages|tojson }} {{ tools|tojson }} {{ x }}"))->Render(*inputs).value();
}

std::string SeenFromJson(std::string_view json) {
  const auto conversation = ParseConversation(json, "file");
  return conversation.ok() ? Seen(*conversation) : std::string(conversation.status().message());
}

TEST(ConversationTest, ConvertsMessagesToTemplateVariables) {
  EXPECT_EQ(Seen({.messages = {{"user", "Hi"}}}), R"([{"role": "user", "content": "Hi"}] null )");
  EXPECT_EQ(Seen({.messages = {{.role = "user", .content = {}}}}), R"([{"role": "user", "content": ""}] null )");
  Conversation conversation;
  conversation.messages = {
      {.role = "assistant",
       .content = {},
       .tool_calls = {{.id = "c1", .name = "f", .arguments_json = R"({"b": 1, "a": [true, null, 1.5]})"},
                      {.id = "", .name = "g", .arguments_json = "{}"}},
       .reasoning_content = "Hm."},
      {.role = "tool", .content = "4", .tool_call_id = "c1", .name = "f"}};
  EXPECT_EQ(
      Seen(conversation),
      R"([{"role": "assistant", "content": null, "reasoning_content": "Hm.", "tool_calls": [)"
      R"({"id": "c1", "type": "function", "function": {"name": "f", "arguments": {"b": 1, "a": [true, null, 1.5]}}}, )"
      R"({"type": "function", "function": {"name": "g", "arguments": {}}}]}, )"
      R"({"role": "tool", "content": "4", "tool_call_id": "c1", "name": "f"}] null )");
  conversation.messages.resize(1);
  conversation.messages[0].tool_calls.resize(1);
  EXPECT_NE(
      Seen(conversation, {.arguments_as_text = true}).find(R"("arguments": "{\"b\": 1, \"a\": [true, null, 1.5]}")"),
      std::string::npos);
}

TEST(ConversationTest, ConvertsContentToTheFormOfTheDialect) {
  const auto seen = [](const ChatTurn& turn, ContentForm form) {
    const std::string text = Seen({.messages = {turn}}, {.content = {{"user", form}}});
    const size_t begin = text.find("content") + 10;
    return text.substr(begin, text.rfind('}') - begin);
  };
  const ChatTurn text{.role = "user", .content = "a"};
  const ChatTurn parts{.role = "user", .content = {}, .content_parts = {"a", "b"}};
  const ChatTurn other{.role = "other", .content = {}, .content_parts = {"a", "b"}};
  const std::string two_parts = R"([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])";
  EXPECT_EQ(seen(text, ContentForm::kText), R"("a")");
  EXPECT_EQ(seen(parts, ContentForm::kText), R"("a\nb")");
  EXPECT_EQ(seen(text, ContentForm::kTextOrParts), R"("a")");
  EXPECT_EQ(seen(parts, ContentForm::kTextOrParts), two_parts);
  EXPECT_EQ(seen(text, ContentForm::kParts), R"([{"type": "text", "text": "a"}])");
  EXPECT_EQ(seen(parts, ContentForm::kParts), two_parts);
  EXPECT_EQ(seen(text, ContentForm::kOnePart), R"([{"type": "text", "text": "a"}])");
  EXPECT_EQ(seen(parts, ContentForm::kOnePart), R"([{"type": "text", "text": "a\nb"}])");
  EXPECT_EQ(seen(other, ContentForm::kTextOrParts), R"("a\nb")") << "a role that the dialect does not list";
  EXPECT_EQ(seen(other, ContentForm::kParts), two_parts);
  EXPECT_EQ(seen({.role = "user", .content = {}}, ContentForm::kParts), R"("")");
  EXPECT_EQ(Seen({.messages = {{.role = "user", .content = "a", .content_parts = {"b"}}}}),
            "chat.messages[0]: expected content or content_parts, got both");
}

TEST(ConversationTest, ConvertsToolsAndTemplateArguments) {
  Conversation conversation;
  conversation.messages = {{"user", "Hi"}};
  conversation.tools = {
      {.name = "f", .description = "Adds.", .parameters_json_schema = R"({"type": "object", "properties": {}})"},
      {.name = "g", .description = {}, .parameters_json_schema = {}},
      {.name = {}, .description = {}, .parameters_json_schema = {}, .definition_json = R"({"x": 1, "a": 2})"}};
  conversation.template_arguments_json = R"({"x": [1]})";
  EXPECT_EQ(Seen(conversation),
            R"([{"role": "user", "content": "Hi"}] [{"type": "function", "function": {"name": "f", )"
            R"("description": "Adds.", "parameters": {"type": "object", "properties": {}}}}, )"
            R"({"type": "function", "function": {"name": "g"}}, {"x": 1, "a": 2}] [1])");
}

TEST(ConversationTest, ErrorsNameTheField) {
  const auto call = [](const char* name, const char* arguments) {
    return Conversation{.messages = {{.role = "assistant", .content = "", .tool_calls = {{"", name, arguments}}}}};
  };
  Conversation tool{.messages = {{"user", ""}}, .tools = {{"", "", ""}}};
  EXPECT_EQ(Seen({}), "chat.messages: empty; expected at least one message");
  EXPECT_EQ(Seen({.messages = {{"user", ""}, {"", ""}}}),
            "chat.messages[1].role: empty; expected a role that the model's template knows");
  EXPECT_EQ(Seen(call("", "{}")), "chat.messages[0].tool_calls[0].name: empty; expected a tool's name");
  EXPECT_EQ(Seen(call("f", "{")), "chat.messages[0].tool_calls[0].arguments_json: not valid JSON at byte 2");
  EXPECT_EQ(Seen(call("f", "[]")), "chat.messages[0].tool_calls[0].arguments_json: expected a JSON object");
  EXPECT_EQ(Seen(call("f", R"({"a": 1, "a": 2})")),
            "chat.messages[0].tool_calls[0].arguments_json: expected unique keys, got \"a\" twice");
  EXPECT_EQ(Seen(tool), "chat.tools[0].name: empty; expected a tool's name");
  tool.tools[0] = {"f", "", "3"};
  EXPECT_EQ(Seen(tool), "chat.tools[0].parameters_json_schema: expected a JSON object");
  tool.tools[0] = {"f", "", "", "{}"};
  EXPECT_EQ(Seen(tool), "chat.tools[0]: expected definition_json or other fields, got both");
  EXPECT_EQ(Seen({.messages = {{"user", ""}}, .tools = {}, .template_arguments_json = "nope"}),
            "chat.template_arguments_json: not valid JSON at byte 2");
}

TEST(ConversationTest, ReadsOpenAiMessages) {
  constexpr char kMessages[] =
      R"([{"role": "user", "content": "2+2?"},
          {"role": "assistant", "content": null, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{\"b\": 2, \"a\": 2}"}},
            {"function": {"name": "add", "arguments": {"z": 1, "a": 2}}}]},
          {"role": "tool", "tool_call_id": "c1", "name": "add", "content": "4"}])";
  const std::string seen =
      R"([{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": null, "tool_calls": [)"
      R"({"id": "c1", "type": "function", "function": {"name": "add", "arguments": {"b": 2, "a": 2}}}, )"
      R"({"type": "function", "function": {"name": "add", "arguments": {"z": 1, "a": 2}}}]}, )"
      R"({"role": "tool", "content": "4", "tool_call_id": "c1", "name": "add"}])";
  EXPECT_EQ(SeenFromJson(kMessages), seen + " null ");
  EXPECT_EQ(SeenFromJson(std::string(R"({"model": "m", "messages": )") + kMessages +
                         R"(, "tools": [{"type": "function", "function": {"name": "add", "strict": true}}],)"
                         R"( "chat_template_kwargs": {"x": "y"}})"),
            seen + R"( [{"type": "function", "function": {"name": "add", "strict": true}}] y)");
}

TEST(ConversationTest, ReadsReasoningContentOrReasoning) {
  EXPECT_EQ(SeenFromJson(R"([{"role": "a", "content": "b", "reasoning": "r"}])"),
            R"([{"role": "a", "content": "b", "reasoning_content": "r"}] null )");
  EXPECT_EQ(SeenFromJson(R"([{"role": "a", "content": "b", "reasoning": "r", "reasoning_content": "s"}])"),
            R"([{"role": "a", "content": "b", "reasoning_content": "s"}] null )");
}

TEST(ConversationTest, ReadsTemplateArgumentsOfOpenAiRequests) {
  const auto arguments = [](const std::string& fields) {
    const auto read = ParseConversation(R"({"messages": [])" + fields + "}", "file");
    return read.ok() ? read->template_arguments_json : std::string(read.status().message());
  };
  EXPECT_EQ(arguments(""), "");
  EXPECT_EQ(arguments(R"(, "documents": null, "add_generation_prompt": null)"), "");
  EXPECT_EQ(arguments(R"(, "documents": [{"t": 1}], "add_generation_prompt": false)"),
            R"({"documents":[{"t":1}],"add_generation_prompt":false})");
  EXPECT_EQ(
      arguments(R"(, "add_generation_prompt": false, "chat_template_kwargs": {"x": 1, "add_generation_prompt": true})"),
      R"({"add_generation_prompt":true,"x":1})");
}

TEST(ConversationTest, ReadsContentPartsOfOpenAiMessages) {
  EXPECT_EQ(
      SeenFromJson(R"([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}])"),
      R"([{"role": "user", "content": "a\nb"}] null )");
  EXPECT_EQ(SeenFromJson(R"([{"role": "user", "content": []}])"), R"([{"role": "user", "content": ""}] null )");
}

TEST(ConversationTest, ParseErrorsNameTheField) {
  for (const auto& [json, message] : std::vector<std::pair<const char*, const char*>>{
           {"", "file: not valid JSON at byte 1"},
           {"3", "file: expected a list of messages, or an object with `messages`"},
           {"{}", "file: messages: expected a list of messages"},
           {"[3]", "file: [0]: expected an object with `role` and `content`"},
           {R"([{"role": "user", "content": {}}])", "file: [0].content: expected a text, or a list of parts"},
           {R"([{"role": "user", "content": [{"type": "text", "text": ""}, {"type": "image_url", "url": ""}]}])",
            R"(file: [0].content[1]: expected {"type": "text", "text": ...}; other parts are not supported)"},
           {R"([{"role": "user", "content": [{"type": "text"}]}])",
            R"(file: [0].content[0]: expected {"type": "text", "text": ...}; other parts are not supported)"},
           {R"([{"role": "user", "content": ["a"]}])",
            R"(file: [0].content[0]: expected {"type": "text", "text": ...}; other parts are not supported)"},
           {R"({"messages": [{"role": 1}]})", "file: messages[0].role: expected a text"},
           {R"([{"role": "a", "tool_calls": {}}])", "file: [0].tool_calls: expected a list"},
           {R"([{"role": "a", "tool_calls": [{"name": "f"}]}])",
            "file: [0].tool_calls[0]: expected an object with `function`, which has `name` and `arguments`"},
           {R"([{"role": "a", "tool_calls": [{"function": {"name": "f"}}]}])",
            "file: [0].tool_calls[0].function.arguments: expected an object, or its JSON text"},
           {R"([{"role": "a", "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}])",
            "file: [0].tool_calls[0].function.arguments: not valid JSON at byte 2"},
           {R"([{"role": "a", "tool_calls": [{"function": {"name": "f", "arguments": "3"}}]}])",
            "file: [0].tool_calls[0].function.arguments: expected a JSON object"},
           {R"({"messages": [{"role": "a", "content": "", "thinking": "hm"}]})",
            "file: messages[0].thinking: unknown field; expected one of role, content, reasoning_content, reasoning, "
            "tool_calls, tool_call_id, name"},
           {R"([{"role": "a", "content": "", "thinking": false}])",
            "file: [0].thinking: unknown field; expected one of role, content, reasoning_content, reasoning, "
            "tool_calls, tool_call_id, name"},
           {R"({"messages": [], "documents": {}})", "file: documents: expected a list"},
           {R"({"messages": [], "add_generation_prompt": 1})", "file: add_generation_prompt: expected true or false"},
           {R"({"messages": [], "tools": {}})", "file: tools: expected a list of tools"},
           {R"({"messages": [], "tools": [1]})", "file: tools[0]: expected an object"},
           {R"({"messages": [], "chat_template_kwargs": 1})", "file: chat_template_kwargs: expected an object"}}) {
    EXPECT_EQ(SeenFromJson(json), message) << json;
  }
  EXPECT_EQ(SeenFromJson(R"([{"role": "a", "refusal": null, "audio": "", "annotations": [], "x": {}}])"),
            R"([{"role": "a", "content": ""}] null )")
      << "clients send back other servers' answers, which have such fields";
  EXPECT_TRUE(Fails(ParseTools("{}", "file"), StatusCode::kInvalidArgument, "file: expected a list of tools"));
}

// The rows as a client would send them.
void ExpectRowsAsAClientSendsThem(const std::filesystem::path& folder) {
  int with_tools = 0;
  for (const auto& row : nlohmann::ordered_json::parse(testing::ReadFile(folder / "expected.json"))) {
    ASSERT_OK_AND_ASSIGN(const Conversation conversation, ParseConversation(row.dump(), "row"));
    with_tools += conversation.tools.empty() ? 0 : 1;
    const auto chat_template = *ChatTemplate::Parse(testing::ReadFile(folder / row["template"].get<std::string>()));
    TemplateDialect dialect = FindDialect(*chat_template);
    dialect.arguments_as_text = false;  // jinja2 got objects when the rows were made
    ASSERT_OK_AND_ASSIGN(ChatTemplateInputs inputs, TemplateInputs(conversation, dialect, "chat"));
    inputs.bos_token = row["bos_token"];
    inputs.eos_token = row["eos_token"];
    inputs.add_generation_prompt = row["add_generation_prompt"];
    inputs.now = absl::FromCivil(absl::CivilDay(2024, 7, 26), absl::LocalTimeZone());
    const absl::StatusOr<std::string> prompt = chat_template->Render(inputs);
    if (row.contains("error")) {
      EXPECT_EQ(prompt.status(), absl::InvalidArgumentError(row["error"].get<std::string>()));
    } else {
      ASSERT_OK(prompt);
      EXPECT_EQ(*prompt, row["expected"].get<std::string>());
    }
  }
  EXPECT_GT(with_tools, 0);
}

TEST(ConversationTest, RowsOfPublicTemplatesRenderAsExpected) {
  ExpectRowsAsAClientSendsThem(testing::SourceFolder() / "tests/golden/chat_templates");
}

TEST(ConversationTest, RowsOfTheSharedDataRenderAsExpected) {
  const auto folder = testing::SharedData("chat_templates");
  if (!folder.ok()) GTEST_SKIP() << folder.status().message();
  ExpectRowsAsAClientSendsThem(*folder);
}

TEST(TemplateJsonTest, LimitsAndNumbers) {
  const std::string deep(65, '[');
  EXPECT_TRUE(Fails(TemplateValueFromJson(deep, "x"), StatusCode::kInvalidArgument, "x: JSON nested deeper than 64"));
  EXPECT_TRUE(Fails(TemplateValueFromJson("9223372036854775808", "x"), StatusCode::kInvalidArgument,
                    "x: expected integers from -2^63 to 2^63 - 1, got 9223372036854775808"));
  EXPECT_TRUE(Fails(TemplateValueFromJson("123456789012345678901234567890", "x"), StatusCode::kInvalidArgument,
                    "x: expected integers from -2^63 to 2^63 - 1"));
  EXPECT_TRUE(Fails(TemplateValueFromJson(R"("\ud800")", "x"), StatusCode::kInvalidArgument, "not valid JSON"));
  EXPECT_TRUE(Fails(TemplateValueFromJson("\"\xFF\"", "x"), StatusCode::kInvalidArgument, "not valid JSON"));
  std::string many = "[0";
  for (int i = 0; i < 200'000; ++i) many += ",0";
  EXPECT_TRUE(
      Fails(TemplateValueFromJson(many + "]", "x"), StatusCode::kInvalidArgument, "x: expected at most 200000 values"));
  std::string wide = "{";
  for (int i = 0; i < 10'001; ++i) wide += '"' + std::to_string(i) + "\":0,";
  EXPECT_TRUE(Fails(TemplateValueFromJson(wide + "\"\":0}", "x"), StatusCode::kInvalidArgument,
                    "x: expected at most 10000 keys in an object"));
  EXPECT_TRUE(Fails(TemplateValueFromJson("1 2", "x"), StatusCode::kInvalidArgument, "not valid JSON"));
  ASSERT_OK_AND_ASSIGN(const TemplateValue number, TemplateValueFromJson("-9223372036854775808", "x"));
  EXPECT_EQ(std::get<int64_t>(number.data()), std::numeric_limits<int64_t>::min());
}

}  // namespace
}  // namespace baton
