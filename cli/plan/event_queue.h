// SPDX-License-Identifier: Apache-2.0
// Events of a simulation, in the order of their times. Events of one time come in the order in which they were added,
// so that a simulation repeats exactly. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace baton::plan {

template <typename Event>
class EventQueue {
 public:
  void Add(double at, Event event) {
    heap_.push_back({at, next_++, std::move(event)});
    std::ranges::push_heap(heap_, IsLater());
  }
  bool empty() const { return heap_.empty(); }
  // Removes the earliest event. The queue is not empty.
  std::pair<double, Event> Take() {
    std::ranges::pop_heap(heap_, IsLater());
    std::pair<double, Event> first{heap_.back().at, std::move(heap_.back().event)};
    heap_.pop_back();
    return first;
  }

 private:
  struct Entry {
    double at;
    uint64_t number;
    Event event;
  };
  struct IsLater {
    bool operator()(const Entry& a, const Entry& b) const { return a.at != b.at ? a.at > b.at : a.number > b.number; }
  };

  std::vector<Entry> heap_;
  uint64_t next_ = 0;
};

}  // namespace baton::plan
