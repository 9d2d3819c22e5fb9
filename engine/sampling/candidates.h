// SPDX-License-Identifier: Apache-2.0
// The tokens that sampling may still choose. The Keep functions narrow the set; Draw chooses from it.
//
// A token's weight is its probability divided by the highest probability, rounded down to a multiple of 2^-43. Sums of
// weights are exact, so their order does not matter, and a linear-time selection replaces a sort.
//
// Not thread-safe. Keeps its memory between Resets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/types.h"

namespace baton {

class Candidates {
 public:
  // Starts with all of `logits`, which must outlive the use. At most 2^20 values, each finite or -infinity (excluded).
  // `max` is the highest value and finite; temperature > 0.
  void Reset(std::span<const float> logits, float max, float temperature);

  // Each function keeps at least one token. Among equal logits, the lowest ids stay.
  void KeepHighest(size_t count);     // top_k; count > 0
  void KeepShare(double share);       // top_p: the fewest tokens with `share` of the candidates' weight
  void KeepAtLeast(double fraction);  // min_p: tokens with at least `fraction` of the highest weight

  // Returns the token at the fraction `uniform`, in [0, 1), of the cumulative weight in order of ids.
  TokenId Draw(double uniform);

 private:
  uint64_t Weight(TokenId id) const;
  uint64_t TotalWeight(std::span<const TokenId> ids) const;
  // Fills exponentials_; returns the weight of the whole vocabulary.
  uint64_t WeighAll();
  // Sets ids_ to the tokens with a logit within `reach` temperatures of the highest logit.
  void CollectWithin(float reach);
  bool RanksHigher(TokenId a, TokenId b) const;

  std::span<const float> logits_;
  float max_ = 0;
  float temperature_ = 1;
  bool is_whole_ = true;  // no cut so far; ids_ is unused
  std::vector<TokenId> ids_;
  bool has_exponentials_ = false;
  std::vector<float> exponentials_;  // by token id
};

}  // namespace baton
