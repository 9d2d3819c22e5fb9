// SPDX-License-Identifier: Apache-2.0
#include "explorer.h"

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"

namespace baton::handoff {
namespace {

class Explorer {
 public:
  Explorer(const World& start, size_t max_states) : start_(start), max_states_(max_states) {}

  Exploration Run() {
    Visit(start_, 0, Step{});
    while (!frontier_.empty() && result_.violation.empty()) {
      const auto [world, index] = std::move(frontier_.front());
      frontier_.pop_front();
      Expand(world, index);
    }
    result_.states = origins_.size();
    result_.steps = 0;
    for (size_t count : result_.taken) result_.steps += count;
    if (result_.violation.empty() && FairStepsCycle()) result_.violation = "I2: fair steps can cycle";
    return std::move(result_);
  }

 private:
  struct Origin {
    uint32_t parent = 0;
    Step step;
  };

  void Expand(const World& world, uint32_t index) {
    bool rests = true;
    for (const Step& step : world.Steps()) {
      World next = world;
      next.Take(step);
      ++result_.taken[size_t(step.kind)];
      const uint32_t to = Visit(next, index, step);
      if (!result_.violation.empty()) return;
      if (step.fair) {
        rests = false;
        fair_edges_.emplace_back(index, to);
      }
    }
    if (!rests) return;
    ++result_.states_at_rest;
    if (const std::string violation = world.ViolationAtRest(); !violation.empty()) Report(violation, index);
  }

  uint32_t Visit(const World& world, uint32_t parent, const Step& step) {
    const std::string violation = world.Violation();
    const auto [it, is_new] = indexes_.try_emplace(absl::Hash<World>{}(world), uint32_t(origins_.size()));
    if (!is_new && violation.empty()) return it->second;
    origins_.push_back({parent, step});
    const uint32_t index = uint32_t(origins_.size() - 1);
    if (!violation.empty()) {
      Report(violation, index);
    } else if (origins_.size() > max_states_) {
      result_.violation = "too many states";
    } else {
      frontier_.emplace_back(world, index);
    }
    return index;
  }

  void Report(const std::string& violation, uint32_t index) {
    std::vector<std::string> lines;
    for (uint32_t i = index; i != 0; i = origins_[i].parent) lines.push_back(origins_[i].step.ToString());
    result_.violation = violation;
    for (size_t i = lines.size(); i-- > 0;) absl::StrAppend(&result_.violation, "\n  ", lines[i]);
  }

  // Kahn's algorithm: what cannot be sorted topologically has a cycle.
  bool FairStepsCycle() const {
    std::vector<uint32_t> begin(origins_.size() + 1);
    std::vector<uint32_t> incoming(origins_.size());
    for (const auto& [from, to] : fair_edges_) {
      ++begin[from + 1];
      ++incoming[to];
    }
    for (size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
    // States are expanded in the order of their indexes, so that edges are sorted by origin already.
    std::vector<uint32_t> ready;
    for (uint32_t i = 0; i < incoming.size(); ++i) {
      if (incoming[i] == 0) ready.push_back(i);
    }
    size_t sorted = 0;
    while (!ready.empty()) {
      const uint32_t state = ready.back();
      ready.pop_back();
      ++sorted;
      for (uint32_t e = begin[state]; e < begin[state + 1]; ++e) {
        if (--incoming[fair_edges_[e].second] == 0) ready.push_back(fair_edges_[e].second);
      }
    }
    return sorted != origins_.size();
  }

  const World start_;
  const size_t max_states_;
  absl::flat_hash_map<uint64_t, uint32_t> indexes_;
  std::vector<Origin> origins_;
  std::vector<std::pair<uint32_t, uint32_t>> fair_edges_;
  std::deque<std::pair<World, uint32_t>> frontier_;
  Exploration result_;
};

}  // namespace

Exploration Explore(const World& start, size_t max_states) { return Explorer(start, max_states).Run(); }

}  // namespace baton::handoff
