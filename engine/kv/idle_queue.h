// SPDX-License-Identifier: Apache-2.0
// The pages that the tiers (engine/kv/tiers) have not looked at since the pages were published or became idle, in this
// order. Holds each page once, so that the queue is bounded by the pool.
//
// Not thread-safe: PagePool guards it.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "engine/types.h"

namespace baton {

class IdleQueue {
 public:
  // Page ids must be below `pages_total`.
  explicit IdleQueue(uint32_t pages_total) : number_(pages_total) {}

  // A page that is in the queue keeps its place.
  void Add(PageId page) {
    uint64_t& number = number_[ToIndex(page)];
    if (number != 0) return;
    number = ++last_number_;
    queue_.emplace(number, page);
  }
  // Returns whether the page was in the queue.
  bool Remove(PageId page) {
    const uint64_t number = std::exchange(number_[ToIndex(page)], 0);
    return number != 0 && queue_.erase({number, page}) > 0;
  }
  std::optional<PageId> Pop() {
    if (queue_.empty()) return std::nullopt;
    const PageId page = queue_.begin()->second;
    Remove(page);
    return page;
  }

 private:
  std::vector<uint64_t> number_;  // by page; 0: not in the queue
  std::set<std::pair<uint64_t, PageId>> queue_;
  uint64_t last_number_ = 0;
};

}  // namespace baton
