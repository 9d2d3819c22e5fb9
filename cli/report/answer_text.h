// Words about an answer, for people: its summary line and its logprobs.
#pragma once

#include <string>

#include "baton/v1/inference.pb.h"

namespace baton {

// "TTFT 12.3 ms, TPOT 1.9 ms, 18 prompt + 48 output tokens, 123.4 KiB of KV handed over by ucx:shm,
// prefill-0 -> decode-0". Attempts before the last are counted with their causes.
std::string SummaryLine(const v1::Finish& finish);

// One line per token of `chunk`: output index, the token, its logprob, then the most likely ones.
std::string LogprobLines(const v1::Chunk& chunk);

// "1 request", "2 requests".
std::string Count(uint64_t count, const std::string& noun);

// `count` with a binary unit: "512 B", "1.5 MiB".
std::string HumanBytes(uint64_t count);

}  // namespace baton
