// SPDX-License-Identifier: Apache-2.0
#include "common/grpc_message.h"

#include <gtest/gtest.h>

#include <string>

#include "baton/v1/inference.pb.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using testing::Fails;
using testing::kInvalid;

grpc::ByteBuffer Bytes(const std::string& text) {
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

// A text field of a message: its number, then its length, then what it holds.
std::string Field(int number, const std::string& text) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(text.size()) + text;
}

TEST(ParseMessage, ReadsWhatSerializeMessageWrote) {
  v1::GenerateRequest request;
  request.set_prompt(std::string(3 << 20, 'x'));  // several blocks
  request.set_model("demo");
  v1::GenerateRequest read;
  EXPECT_OK(ParseMessage(SerializeMessage(request), read));
  EXPECT_EQ(read.SerializeAsString(), request.SerializeAsString());
}

TEST(ParseMessage, AnEmptyMessageIsAMessage) {
  v1::ListModelsRequest request;
  EXPECT_OK(ParseMessage(Bytes(""), request));
  EXPECT_OK(ParseMessage(SerializeMessage(request), request));
}

TEST(ParseMessage, NamesTheFieldThatIsNotUtf8) {
  v1::GenerateRequest request;
  const int model = v1::GenerateRequest::kModelFieldNumber;
  EXPECT_TRUE(Fails(ParseMessage(Bytes(Field(model, "\xff")), request), kInvalid, "model: not valid UTF-8"));

  const std::string message = Field(v1::ChatMessage::kContentFieldNumber, "\xc3");
  const std::string chat = Field(v1::ChatInput::kMessagesFieldNumber, message);
  const std::string bytes = Field(v1::GenerateRequest::kChatFieldNumber, chat);
  EXPECT_TRUE(Fails(ParseMessage(Bytes(bytes), request), kInvalid, "ChatMessage.content: not valid UTF-8"));
}

TEST(ParseMessage, SaysWhatBytesAreNot) {
  v1::GenerateRequest request;
  EXPECT_TRUE(Fails(ParseMessage(Bytes("\xff\xff\xff"), request), kInvalid, "expected a baton.v1.GenerateRequest"));
}

}  // namespace
}  // namespace baton
