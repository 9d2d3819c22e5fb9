// SPDX-License-Identifier: Apache-2.0
// Converts a client's conversation to the form of text/chat.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "baton/v1/inference.pb.h"
#include "text/chat/conversation.h"

namespace baton::router {

// INVALID_ARGUMENT names the unsupported field, with `field` as the conversation's name. RenderChat checks the
// conversation.
absl::StatusOr<Conversation> ReadChat(const v1::ChatInput& chat, const std::string& field);

}  // namespace baton::router
