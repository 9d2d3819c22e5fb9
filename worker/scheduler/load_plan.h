// SPDX-License-Identifier: Apache-2.0
// Decides how many pages of a prompt are loaded from tiers instead of computed: a pure function of measured times.
#pragma once

#include <span>

#include "common/step_cost.h"
#include "engine/kv/tiers/tier_load.h"

namespace baton {

// A prompt's part without KV in the pool, and the pages of its beginning that tiers have.
struct LoadQuestion {
  std::span<const TierKind> found;  // by page, of all KV groups
  int groups = 1;                   // a page of each group holds the same tokens
  int page_tokens = 16;
  int position = 0;        // tokens before the part
  int pending = 0;         // tokens of the part: more than the found pages hold
  int chunk_tokens = 512;  // of one step
  int tokens_ahead = 0;    // of older prompts, which are computed first: a load does not wait for them
};

// Returns the number of pages, from the first on, whose load saves the most time, of equals the largest. Returns 0 if
// no load saves time, or if the load that runs hangs. The rest of the prompt waits for the load, the loads before it
// included, and for older prompts. A time that is not known yet counts as nothing in favour of the load: the load then
// measures the time.
int PagesToLoad(const LoadQuestion& question, const TierSpeed& speed, const StepCost& cost);

// The time to compute `tokens` of a prompt in steps of chunks, in seconds.
double SecondsToCompute(int position, int tokens, int chunk_tokens, const StepCost& cost);

}  // namespace baton
