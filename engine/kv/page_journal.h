// SPDX-License-Identifier: Apache-2.0
// Keeps the latest changes to the names of a pool's published pages and of the pages in tiers. Routers follow a
// worker's names to place requests where the prefix of their prompt is cached.
//
// Keeps `max_changes` changes, the number of the pool's and the tiers' pages. A follower that is further behind gets
// the full list of names, which is not longer.
//
// Not thread-safe: PagePool guards it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "engine/kv/page_hash.h"

namespace baton {

struct PageNews {
  uint64_t version = 0;         // argument of the next NewsSince
  bool whole = false;           // `added` is the full list and replaces earlier news
  std::vector<PageHash> added;  // `added` and `removed` are disjoint
  std::vector<PageHash> removed;
};

class PageJournal {
 public:
  explicit PageJournal(size_t max_changes) : max_changes_(max_changes) {}

  void set_max_changes(size_t max_changes) { max_changes_ = max_changes; }

  void Add(const PageHash& name) { Append({name, true}); }
  void Remove(const PageHash& name) { Append({name, false}); }

  // Version of the present state. 0 precedes every state.
  uint64_t version() const { return version_; }
  // Returns the changes since `version`, or nullopt if the journal does not reach back that far.
  std::optional<PageNews> Since(uint64_t version) const;

 private:
  struct Change {
    PageHash name;
    bool added;
  };
  void Append(const Change& change);

  size_t max_changes_;
  std::deque<Change> changes_;  // the latest changes; version_ counts all changes up to the last
  uint64_t version_ = 1;
};

}  // namespace baton
