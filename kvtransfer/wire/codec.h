// SPDX-License-Identifier: Apache-2.0
// The handoff messages as bytes: proto/baton/v1/handoff.proto.
//
// Decode accepts any bytes and checks every field of the result. Only the handoff machine can check whether the attempt
// is known and the pages exist.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "absl/status/statusor.h"
#include "kvtransfer/handoff/messages.h"
#include "kvtransfer/wire/hello.h"

namespace baton::handoff {

std::string Encode(const Hello& hello);
std::string Encode(const Welcome& welcome);
std::string Encode(const Message& message);

using WireMessage = std::variant<Hello, Welcome, Message>;

// INVALID_ARGUMENT names the field and the expected value.
absl::StatusOr<WireMessage> Decode(std::string_view bytes);

}  // namespace baton::handoff
