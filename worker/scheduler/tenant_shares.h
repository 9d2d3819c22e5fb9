// SPDX-License-Identifier: Apache-2.0
// Counts the prompt tokens that each tenant has got, for the order of prompts (worker/schedule.h).
//
// A tenant is known while it has attempts. A tenant that comes starts with the count of the least tenant, so that
// tenants can save up no share for later.
//
// Used on the engine thread only.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace baton {

class TenantShares {
 public:
  void Enter(const std::string& tenant) {
    const auto [entry, is_new] = tenants_.try_emplace(tenant);
    if (is_new) entry->second.tokens = Least();
    ++entry->second.attempts;
  }
  void Leave(const std::string& tenant) {
    const auto entry = tenants_.find(tenant);
    if (--entry->second.attempts == 0) tenants_.erase(entry);
  }
  void Add(const std::string& tenant, int tokens) { tenants_.at(tenant).tokens += tokens; }

  // Returns whether an attempt with a tenant is here.
  bool has_tenants() const { return tenants_.size() > 1 || (tenants_.size() == 1 && !tenants_.begin()->first.empty()); }

  // The counts, and the index of a tenant among them.
  std::vector<double> Tokens() const {
    std::vector<double> tokens;
    tokens.reserve(tenants_.size());
    for (const auto& [_, share] : tenants_) tokens.push_back(share.tokens);
    return tokens;
  }
  size_t IndexOf(const std::string& tenant) const {
    return static_cast<size_t>(std::distance(tenants_.begin(), tenants_.find(tenant)));
  }

 private:
  struct Share {
    double tokens = 0;
    int attempts = 0;
  };
  double Least() const {
    double least = 0;
    bool first = true;
    for (const auto& [_, share] : tenants_) {
      if (share.attempts == 0) continue;  // the one that comes
      least = first ? share.tokens : std::min(least, share.tokens);
      first = false;
    }
    return least;
  }

  std::map<std::string, Share> tenants_;
};

}  // namespace baton
