// Protobuf messages as JSON lines.
#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace baton {

// One line without its newline: the proto's field names, fields at their default included (an output_index of 0 is
// there), 64-bit integers as strings and bytes as base64 as protobuf's JSON has it. Always valid UTF-8.
std::string ToJsonLine(const google::protobuf::Message& message);

}  // namespace baton
