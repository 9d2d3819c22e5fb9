// SPDX-License-Identifier: Apache-2.0
// Parses and serializes messages of calls that take raw bytes. gRPC itself answers a message that it cannot parse with
// an empty UNIMPLEMENTED; ParseMessage names the error.
//
// Thread-safe.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include "absl/status/status.h"

namespace baton {

// INVALID_ARGUMENT names the string field that is not valid UTF-8, or the expected message type. On error `message`
// holds the fields read so far.
absl::Status ParseMessage(const grpc::ByteBuffer& bytes, google::protobuf::Message& message);

grpc::ByteBuffer SerializeMessage(const google::protobuf::Message& message);

// Redirects protobuf's own log to Baton's log. Idempotent.
void RouteProtobufLog();

}  // namespace baton
