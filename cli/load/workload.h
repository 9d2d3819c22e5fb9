// SPDX-License-Identifier: Apache-2.0
// Load, reproducible from its seed: when requests arrive and what they ask for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/load/load_target.h"
#include "cli/load/trace.h"

namespace baton {

enum class ArrivalProcess {
  kPoisson,
  kGamma,     // gaps of a gamma distribution
  kConstant,  // equal gaps
  kTrace,     // as recorded
};

// How a run keeps its prompts apart from those of earlier runs in the server's prefix cache.
enum class Salting {
  kField,   // by the request's cache_salt
  kPrompt,  // by the first tokens of each prompt too, for servers that may not know cache_salt
};

// A conversation has one request a turn. A turn's prompt is the prompt and answer of the turn before, and
// prompt_tokens more.
struct Workload {
  std::string model;
  ArrivalProcess arrivals = ArrivalProcess::kPoisson;
  double rate = 4;        // conversations per second
  double burstiness = 1;  // the shape of kGamma: 1 is kPoisson, less comes in bursts, more is more even
  int requests = 100;     // conversations
  int turns = 1;          // of a conversation
  absl::Duration think_time = absl::Seconds(1);  // from the end of an answer to the next turn
  int prompt_tokens = 128;
  int output_tokens = 64;
  uint64_t seed = 0;
  uint32_t vocab_size = 0;
  std::optional<Trace> trace;  // replaces prompt_tokens and output_tokens
  std::string cache_salt;      // of all requests; empty: none
  Salting salting = Salting::kField;
};

// Returns the arrival times from the start, ascending. kTrace needs a trace.
std::vector<absl::Duration> Arrivals(const Workload& workload);

// Returns the first request of conversation number `index`: a prompt of random token ids, and an answer that ends at
// its length and nowhere else. Blocks of a trace with the same id have the same tokens.
LoadRequest MakeRequest(const Workload& workload, int index);

// Returns the request of turn `turn`, from 1, after the earlier turn's prompt and answer. Random tokens stand for
// tokens of the answer whose ids the server did not tell.
LoadRequest NextTurn(const Workload& workload, int index, int turn, const std::vector<int32_t>& earlier_prompt,
                     const std::vector<int32_t>& answer);

// Returns a salt that no other run has, so that no earlier run's cached prefixes shorten this run's prefill.
std::string FreshCacheSalt();

}  // namespace baton
