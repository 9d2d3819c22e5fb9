// SPDX-License-Identifier: Apache-2.0
#include "engine/sampling/candidates.h"

#include <algorithm>
#include <limits>

#include "engine/kernels/det_math.h"
#include "engine/sampling/logits.h"

namespace baton {
namespace {

// Candidates are searched this many temperatures below the highest logit, step by step until there are enough. The
// first step nearly always suffices and leaves a few hundred tokens of a vocabulary of 100,000.
constexpr float kReaches[] = {8.0f, 32.0f, std::numeric_limits<float>::infinity()};

uint64_t ToWeight(float exponential) { return static_cast<uint64_t>(exponential * 0x1p43f); }

}  // namespace

void Candidates::Reset(std::span<const float> logits, float max, float temperature) {
  logits_ = logits;
  max_ = max;
  temperature_ = temperature;
  is_whole_ = true;
  has_exponentials_ = false;
}

uint64_t Candidates::Weight(TokenId id) const {
  const auto index = static_cast<size_t>(id);
  return ToWeight(has_exponentials_ ? exponentials_[index] : DetExp((logits_[index] - max_) / temperature_));
}

uint64_t Candidates::TotalWeight(std::span<const TokenId> ids) const {
  uint64_t total = 0;
  for (const TokenId id : ids) total += Weight(id);
  return total;
}

uint64_t Candidates::WeighAll() {
  if (!has_exponentials_) Exponentials(logits_, max_, temperature_, exponentials_);
  has_exponentials_ = true;
  uint64_t total = 0;
  for (const float exponential : exponentials_) total += ToWeight(exponential);
  return total;
}

bool Candidates::RanksHigher(TokenId a, TokenId b) const {
  const float logit_a = logits_[static_cast<size_t>(a)];
  const float logit_b = logits_[static_cast<size_t>(b)];
  return logit_a != logit_b ? logit_a > logit_b : a < b;
}

void Candidates::CollectWithin(float reach) {
  const float floor = std::max(max_ - reach * temperature_, kLowestLogit);
  ids_.clear();
  for (size_t i = 0; i < logits_.size(); ++i) {
    if (logits_[i] >= floor) ids_.push_back(static_cast<TokenId>(i));
  }
  is_whole_ = false;
}

void Candidates::KeepHighest(size_t count) {
  if (count >= logits_.size()) return;
  for (const float reach : kReaches) {
    CollectWithin(reach);
    if (ids_.size() >= count) break;
  }
  if (ids_.size() <= count) return;
  const auto end = ids_.begin() + static_cast<ptrdiff_t>(count);
  std::nth_element(ids_.begin(), end, ids_.end(), [this](TokenId a, TokenId b) { return RanksHigher(a, b); });
  ids_.erase(end, ids_.end());
}

void Candidates::KeepShare(double share) {
  if (share >= 1) return;
  const uint64_t total = is_whole_ ? WeighAll() : TotalWeight(ids_);
  const double wanted = share * static_cast<double>(total);
  if (is_whole_) {
    for (const float reach : kReaches) {
      CollectWithin(reach);
      if (static_cast<double>(TotalWeight(ids_)) >= wanted) break;
    }
  }
  // Selection by weight. Invariant: the first `kept` ids rank highest and weigh less than `wanted`; the first `end` ids
  // weigh at least `wanted`.
  size_t kept = 0;
  uint64_t kept_weight = 0;
  size_t end = ids_.size();
  while (end - kept > 1) {
    const size_t middle = kept + (end - kept) / 2;
    const auto at = [this](size_t i) { return ids_.begin() + static_cast<ptrdiff_t>(i); };
    std::nth_element(at(kept), at(middle), at(end), [this](TokenId a, TokenId b) { return RanksHigher(a, b); });
    const uint64_t half_weight = TotalWeight({at(kept), at(middle)});
    if (static_cast<double>(kept_weight + half_weight) >= wanted) {
      end = middle;
    } else {
      kept = middle;
      kept_weight += half_weight;
    }
  }
  ids_.resize(end);
}

void Candidates::KeepAtLeast(double fraction) {
  if (fraction <= 0) return;
  if (is_whole_) CollectWithin(kReaches[2]);
  const uint64_t highest = ToWeight(1.0f);
  const auto least = static_cast<uint64_t>(std::min(fraction, 1.0) * static_cast<double>(highest));
  std::erase_if(ids_, [&](TokenId id) { return Weight(id) < least; });
}

TokenId Candidates::Draw(double uniform) {
  const uint64_t total = is_whole_ ? WeighAll() : TotalWeight(ids_);
  // Rounding may bring the product up to `total`: keep it below.
  const uint64_t target = std::min(static_cast<uint64_t>(uniform * static_cast<double>(total)), total - 1);
  uint64_t sum = 0;
  if (is_whole_) {
    for (size_t i = 0; i < exponentials_.size(); ++i) {
      sum += ToWeight(exponentials_[i]);
      if (sum > target) return static_cast<TokenId>(i);
    }
  }
  std::sort(ids_.begin(), ids_.end());
  for (const TokenId id : ids_) {
    sum += Weight(id);
    if (sum > target) return id;
  }
  return 0;  // unreachable: the highest token alone weighs 2^43
}

}  // namespace baton
