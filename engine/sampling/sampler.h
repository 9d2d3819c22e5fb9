// Logits to token. A pure function of its arguments: the same logits, parameters, history and output index give the
// same token, whatever ran beside it (random numbers are counter-based, keyed by seed and output index).
//
// Order of the chain:
//   1. logprobs are taken from the logits as the model gave them
//   2. repetition penalty (prompt and output: a positive logit is divided, another multiplied by it), then frequency
//      penalty times the count and presence penalty are subtracted (output only)
//   3. logit bias is added
//   4. min_tokens: stop tokens are out until that many tokens are there
//   5. temperature (0: the highest logit, lowest id on ties, and the chain ends)
//   6. top_k, 7. top_p (a share of what top_k left), 8. min_p (a share of the highest probability); ties at a cut keep
//      the lowest ids, and one token always stays
//   9. one draw over what is left, in order of id
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
  int top_k = 0;  // 0: all
  float top_p = 1.0f;
  float min_p = 0.0f;
  float repetition_penalty = 1.0f;
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  std::vector<std::pair<TokenId, float>> logit_bias;  // sorted by id; ids beyond the vocabulary do nothing
  uint64_t seed = 0;
  uint32_t max_tokens = 0;  // of the whole output
  uint32_t min_tokens = 0;
  std::vector<TokenId> stop_token_ids;  // sorted
  std::optional<int> logprobs;          // top n beside the chosen token's

  bool IsStop(TokenId token) const;
};

// How often each token occurred so far. Kept by the sequence; Add is O(1).
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
  float logprob = 0;                           // filled when logprobs were asked for
  std::vector<std::pair<TokenId, float>> top;  // most likely first
};

// Holds scratch memory only. Not thread-safe; one per thread.
class Sampler {
 public:
  // Samples output token number history.output_size(). `logits` has vocab_size finite values; a value that is not
  // finite is treated as the lowest, so that a broken model cannot crash the worker.
  SampledToken Sample(std::span<const float> logits, const SamplingParams& params, const TokenHistory& history);

 private:
  // Steps 2 to 4, on logits_.
  void Adjust(const SamplingParams& params, const TokenHistory& history);
  void Penalize(const SamplingParams& params, const TokenHistory& history);
  // Steps 5 to 9 for a temperature above 0, on logits_. `uniform` is in [0, 1).
  TokenId Choose(const SamplingParams& params, double uniform);

  std::vector<float> logits_;
  std::vector<float> exponentials_;
  Candidates candidates_;
};

}  // namespace baton
