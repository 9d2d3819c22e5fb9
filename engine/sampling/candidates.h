// The tokens that may still be drawn. Cuts narrow them, then one is drawn.
//
// A token's weight is its probability as a multiple of the highest, rounded down to a whole number of 2^-43: sums are
// exact, so that their order does not matter, and a selection (linear time) can take the place of a sort.
//
// Not thread-safe; keeps its memory from one Reset to the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/types.h"

namespace baton {

class Candidates {
 public:
  // All of `logits`, which must outlive the use: at most 2^20, finite, or -infinity for tokens that take no part. `max`
  // is the highest and finite; temperature > 0.
  void Reset(std::span<const float> logits, float max, float temperature);

  // Each keeps at least one token, and of tokens with the same logit those with the lowest ids.
  void KeepHighest(size_t count);     // top_k; count > 0
  void KeepShare(double share);       // top_p: the fewest whose weights add up to `share` of those there are
  void KeepAtLeast(double fraction);  // min_p: those of at least `fraction` of the highest weight

  // The token at `uniform`, in [0, 1), of the total weight, tokens in order of their ids.
  TokenId Draw(double uniform);

 private:
  uint64_t Weight(TokenId id) const;
  uint64_t TotalWeight(std::span<const TokenId> ids) const;
  // Fills exponentials_ and returns the weight of the whole vocabulary.
  uint64_t WeighAll();
  // ids_ is every token with a logit within `reach` temperatures of the highest.
  void CollectWithin(float reach);
  bool Before(TokenId a, TokenId b) const;

  std::span<const float> logits_;
  float max_ = 0;
  float temperature_ = 1;
  bool is_whole_ = true;  // nothing was cut: ids_ is not filled
  std::vector<TokenId> ids_;
  bool has_exponentials_ = false;
  std::vector<float> exponentials_;  // of the whole vocabulary
};

}  // namespace baton
