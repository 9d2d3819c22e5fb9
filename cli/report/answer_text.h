// SPDX-License-Identifier: Apache-2.0
// Describes an answer to people: the summary line and the logprobs.
#pragma once

#include <string>

#include "baton/v1/inference.pb.h"

namespace baton {

// Returns a line such as "TTFT 12.3 ms, TPOT 1.9 ms, 18 prompt + 48 output tokens, 123.4 KiB of KV handed over by
// ucx:shm, prefill-0 -> decode-0". When there was more than one attempt, the line ends with their number and causes.
std::string SummaryLine(const v1::Finish& finish);

// Returns one line per token of `chunk`: output index, token, logprob, and the most likely tokens with theirs.
std::string LogprobLines(const v1::Chunk& chunk);

// Returns, for instance, "1 request" or "2 requests".
std::string Count(uint64_t count, const std::string& noun);

// Returns a number of bytes with a binary unit, such as "512 B" or "1.5 MiB".
std::string HumanBytes(uint64_t count);

}  // namespace baton
