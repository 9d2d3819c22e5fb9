// Messages of calls that take bytes and parse them themselves. gRPC answers a request that it cannot parse with an
// empty UNIMPLEMENTED; these say what is wrong with it.
//
// Thread-safe.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include "absl/status/status.h"

namespace baton {

// INVALID_ARGUMENT names the text field that is not valid UTF-8, or the message's type if it is no such message. What
// was read until then is in `message`.
absl::Status ParseMessage(const grpc::ByteBuffer& bytes, google::protobuf::Message& message);

grpc::ByteBuffer SerializeMessage(const google::protobuf::Message& message);

// Protobuf's own complaints go to our log. Idempotent.
void RouteProtobufLog();

}  // namespace baton
