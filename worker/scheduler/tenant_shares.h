// SPDX-License-Identifier: Apache-2.0
// Counts the prompt tokens that each tenant has got, for the order of prompts (worker/schedule.h).
//
// A tenant is known while it has prompts to compute. A tenant that comes starts with the count of the least tenant, so
// that tenants can save up no share for later.
//
// Used on the engine thread only. Owns the shares; a Share stays until as many prompts have left as came.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace baton {

class TenantShares {
 public:
  struct Share {
    std::map<std::string, Share>::iterator entry;
    double tokens = 0;
    int prompts = 0;
    size_t index = 0;  // among Tokens()
  };

  // A prompt comes.
  Share* Enter(const std::string& tenant) {
    const double least = Least();
    const auto [entry, is_new] = tenants_.try_emplace(tenant);
    Share& share = entry->second;
    if (is_new) share = {.entry = entry, .tokens = least};
    ++share.prompts;
    return &share;
  }
  // A prompt is computed, or has ended.
  void Leave(Share& share) {
    if (--share.prompts == 0) tenants_.erase(share.entry);
  }

  // Returns the counts, and numbers the shares.
  std::vector<double> Tokens() {
    std::vector<double> tokens;
    tokens.reserve(tenants_.size());
    for (auto& [_, share] : tenants_) {
      share.index = tokens.size();
      tokens.push_back(share.tokens);
    }
    return tokens;
  }

  // Returns whether a prompt with a tenant is here.
  bool has_tenants() const { return tenants_.size() > 1 || (tenants_.size() == 1 && !tenants_.begin()->first.empty()); }

 private:
  double Least() const {
    std::optional<double> least;
    for (const auto& [_, share] : tenants_) least = std::min(least.value_or(share.tokens), share.tokens);
    return least.value_or(0);
  }

  std::map<std::string, Share> tenants_;
};

}  // namespace baton
