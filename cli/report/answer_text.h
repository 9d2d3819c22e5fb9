// SPDX-License-Identifier: Apache-2.0
// Formats the router's answers, for people and for programs.
#pragma once

#include <google/protobuf/message.h>

#include <string>

#include "baton/v1/inference.pb.h"

namespace baton {

// Returns a line such as "TTFT 12.3 ms, TPOT 1.9 ms, 18 prompt + 48 output tokens, 123.4 KiB of KV handed over by
// ucx:shm, prefill-0 -> decode-0". When there was more than one attempt, the line ends with their number and causes.
std::string SummaryLine(const v1::Finish& finish);

// Returns one line per token of `chunk`: output index, token, logprob, and the most likely tokens with theirs.
std::string LogprobLines(const v1::Chunk& chunk);

// Returns an answer of the router as one line of JSON without its newline, in valid UTF-8. Fields have their names in
// the proto. Fields with default values are included, such as an output_index of 0. As in protobuf's JSON, 64-bit
// integers are strings and bytes are base64.
std::string ToJsonLine(const google::protobuf::Message& message);

// Returns, for instance, "1 request" or "2 requests".
std::string Count(uint64_t count, const std::string& noun);

// Returns a number of bytes with a binary unit, such as "512 B" or "1.5 MiB".
std::string HumanBytes(uint64_t count);

}  // namespace baton
