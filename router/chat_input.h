// The conversation that a client sends, as the chat template's side knows it.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "baton/v1/inference.pb.h"
#include "text/chat/conversation.h"

namespace baton::router {

// INVALID_ARGUMENT, with `field` for the conversation, names what is not supported. What is wrong with the conversation
// itself shows when it is rendered.
absl::StatusOr<Conversation> ReadChat(const v1::ChatInput& chat, const std::string& field);

}  // namespace baton::router
