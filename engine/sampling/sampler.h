// SPDX-License-Identifier: Apache-2.0
// Samples a token from logits. The token is a function of logits, parameters, history and output index only; other
// sequences do not change it (random numbers are counter-based, keyed by seed and output index).
//
// Order of the chain:
//   1. logprobs: taken from the model's unchanged logits
//   2. penalties: repetition (prompt and output: divides a positive logit, multiplies a negative one); then frequency
//      times count, and presence, are subtracted (output only)
//   3. logit bias is added
//   4. min_tokens: stop tokens are excluded until the output has this many tokens
//   5. temperature; 0 takes the highest logit, the lowest id on ties, and ends the chain
//   6. top_k
//   7. top_p: a share of the weight that top_k left
//   8. min_p: a fraction of the highest probability
//   9. one draw over the remaining tokens, in order of ids
//
// Ties at a cut of steps 6 to 8 keep the lowest ids; at least one token remains.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/sampling/candidates.h"
#include "engine/types.h"

namespace baton {

struct SamplingParams {
  float temperature = 1.0f;
  int top_k = 0;  // 0: no limit
  float top_p = 1.0f;
  float min_p = 0.0f;
  float repetition_penalty = 1.0f;
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  std::vector<std::pair<TokenId, float>> logit_bias;  // sorted by id; ids outside the vocabulary are ignored
  uint64_t seed = 0;
  uint32_t max_tokens = 0;  // limit of the whole output, prior output included
  uint32_t min_tokens = 0;
  std::vector<TokenId> stop_token_ids;  // sorted
  std::optional<int> logprobs;          // number of top logprobs, besides the chosen token's

  bool IsStop(TokenId token) const;
};

// Occurrences of each token so far. Owned by the sequence; Add is O(1). Not thread-safe.
class TokenHistory {
 public:
  void AddPrompt(std::span<const TokenId> tokens);
  void AddOutput(TokenId token);
  uint32_t output_size() const { return output_size_; }

 private:
  friend class Sampler;
  struct Counts {
    uint32_t prompt = 0;
    uint32_t output = 0;
  };
  absl::flat_hash_map<TokenId, Counts> counts_;
  uint32_t output_size_ = 0;
};

struct SampledToken {
  TokenId token = 0;
  float logprob = 0;                           // set if params.logprobs is set
  std::vector<std::pair<TokenId, float>> top;  // highest first; set if params.logprobs is set
};

// Owns only scratch memory. Not thread-safe: one Sampler per thread.
class Sampler {
 public:
  // Samples output token number history.output_size(). `logits` has vocab_size values. A value that is not finite
  // counts as the lowest, so a broken model cannot crash the worker.
  SampledToken Sample(std::span<const float> logits, const SamplingParams& params, const TokenHistory& history);

 private:
  // Runs steps 2 to 4 on logits_.
  void Adjust(const SamplingParams& params, const TokenHistory& history);
  void Penalize(const SamplingParams& params, const TokenHistory& history);
  // Runs steps 5 to 9 on logits_, for a temperature above 0. `uniform` is in [0, 1).
  TokenId Choose(const SamplingParams& params, double uniform);

  std::vector<float> logits_;
  std::vector<float> exponentials_;
  Candidates candidates_;
};

}  // namespace baton
