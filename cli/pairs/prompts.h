// SPDX-License-Identifier: Apache-2.0
// The requests that `verify` sends to every pair, reproducible from a seed. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "baton/v1/inference.pb.h"
#include "cli/pairs/plan.h"

namespace baton {

struct PromptOptions {
  int prompts = 8;
  int prompt_tokens = 96;  // of the longest prompt
  int output_tokens = 32;
  uint64_t seed = 0;
};

// Returns `prompts` requests for the group's model, without a pin. Prompts are random token ids; every second one
// begins like the one before. The sampling parameters differ: greedy, seeded with a temperature, with penalties, with a
// bias, with an end where the model wants one. All ask for logprobs. Prompt and output shrink to fit the context.
std::vector<v1::GenerateRequest> MakePrompts(const WorkerGroup& group, const PromptOptions& options);

// Returns `count` random token ids, a function of the seed, away from the ends of the vocabulary.
std::vector<int32_t> RandomTokens(uint32_t vocab_size, int count, uint64_t seed);

// Returns a cache salt that no other request has.
std::string FreshSalt();

}  // namespace baton
