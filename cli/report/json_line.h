// SPDX-License-Identifier: Apache-2.0
// Formats protobuf messages as JSON lines.
#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace baton {

// Returns one line without its newline, in valid UTF-8. Fields have their names in the proto. Fields with default
// values are included, such as an output_index of 0. As in protobuf's JSON, 64-bit integers are strings and bytes are
// base64.
std::string ToJsonLine(const google::protobuf::Message& message);

}  // namespace baton
