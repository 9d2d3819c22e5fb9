// SPDX-License-Identifier: Apache-2.0
#include "router/chat_input.h"

#include <gtest/gtest.h>

#include "tests/status_matchers.h"

namespace baton::router {
namespace {

TEST(ChatInputTest, ReadsEveryField) {
  v1::ChatInput chat;
  v1::ChatMessage& message = *chat.add_messages();
  message.set_role("assistant");
  message.set_reasoning_content("r");
  v1::ToolCall& call = *message.add_tool_calls();
  call.set_id("1");
  call.set_name("f");
  call.set_arguments_json("{}");
  v1::ChatMessage& answer = *chat.add_messages();
  answer.set_role("tool");
  answer.set_content("");
  answer.set_tool_call_id("1");
  answer.set_name("f");
  v1::Tool& tool = *chat.add_tools();
  tool.set_name("f");
  tool.set_description("d");
  tool.set_parameters_json_schema("{}");
  chat.add_tools()->set_definition_json("{}");
  chat.set_template_arguments_json("{\"a\": 1}");

  ASSERT_OK_AND_ASSIGN(const Conversation read, ReadChat(chat, "chat"));
  ASSERT_EQ(read.messages.size(), 2u);
  EXPECT_EQ(read.messages[0].role, "assistant");
  EXPECT_FALSE(read.messages[0].content.has_value());
  EXPECT_EQ(read.messages[0].reasoning_content, "r");
  ASSERT_EQ(read.messages[0].tool_calls.size(), 1u);
  EXPECT_EQ(read.messages[0].tool_calls[0].id, "1");
  EXPECT_EQ(read.messages[0].tool_calls[0].name, "f");
  EXPECT_EQ(read.messages[0].tool_calls[0].arguments_json, "{}");
  EXPECT_EQ(read.messages[1].content, "");
  EXPECT_EQ(read.messages[1].tool_call_id, "1");
  EXPECT_EQ(read.messages[1].name, "f");
  ASSERT_EQ(read.tools.size(), 2u);
  EXPECT_EQ(read.tools[0].name, "f");
  EXPECT_EQ(read.tools[0].description, "d");
  EXPECT_EQ(read.tools[0].parameters_json_schema, "{}");
  EXPECT_EQ(read.tools[1].definition_json, "{}");
  EXPECT_EQ(read.template_arguments_json, "{\"a\": 1}");
}

TEST(ChatInputTest, ContentPartsAreTexts) {
  v1::ChatInput chat;
  v1::ChatMessage& message = *chat.add_messages();
  for (const char* text : {"a", ""}) {
    v1::ContentPart& part = *message.add_content_parts();
    part.set_type("text");
    part.set_text(text);
  }
  ASSERT_OK_AND_ASSIGN(const Conversation read, ReadChat(chat, "chat"));
  EXPECT_EQ(read.messages[0].content_parts, (std::vector<std::string>{"a", ""}));
  message.mutable_content_parts(1)->set_type("image_url");
  EXPECT_TRUE(testing::Fails(ReadChat(chat, "chat"), absl::StatusCode::kInvalidArgument,
                             "chat.messages[0].content_parts[1].type: expected text, got 'image_url'"));
}

}  // namespace
}  // namespace baton::router
