// SPDX-License-Identifier: Apache-2.0
// The jobs of a scheduler, by key and in order of age.
//
// Used on the engine thread only.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/ids.h"
#include "worker/schedule.h"

namespace baton {

template <typename Job>
class JobTable {
 public:
  // Returns false and leaves `job` untouched if the table has a job with this key.
  bool Add(const Age& age, std::unique_ptr<Job>& job) {
    if (!ages_.emplace(age.key, age).second) return false;
    jobs_.emplace(age, std::move(job));
    return true;
  }

  Job* Find(const AttemptKey& key) const {
    const auto age = ages_.find(key);
    return age == ages_.end() ? nullptr : jobs_.at(age->second).get();
  }

  void Erase(const AttemptKey& key) {
    const auto age = ages_.find(key);
    if (age == ages_.end()) return;
    jobs_.erase(age->second);
    ages_.erase(age);
  }

  // Pairs of (Age, unique_ptr<Job>), oldest first. Nothing may be added or erased during an iteration.
  auto begin() const { return jobs_.begin(); }
  auto end() const { return jobs_.end(); }

  std::vector<AttemptKey> Keys() const {
    std::vector<AttemptKey> keys;
    keys.reserve(jobs_.size());
    for (const auto& [age, job] : jobs_) keys.push_back(age.key);
    return keys;
  }

 private:
  std::map<Age, std::unique_ptr<Job>> jobs_;
  absl::flat_hash_map<AttemptKey, Age> ages_;  // where in jobs_
};

}  // namespace baton
