// The handoff messages as bytes: proto/baton/v1/handoff.proto.
//
// Decode takes whatever a peer sends. What it returns has been checked field by field, except for what only the handoff
// machine can judge (is the attempt known, do the pages exist).
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

// INVALID_ARGUMENT, naming the field and what was expected.
absl::StatusOr<WireMessage> Decode(std::string_view bytes);

}  // namespace baton::handoff
