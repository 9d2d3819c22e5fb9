// What was published and evicted lately, for those who keep a copy of the names of a pool's pages: routers, which place
// requests where their prompts' beginnings are.
//
// Keeps as many changes as there are pages: who is further behind is better off with all names that there are now.
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
  uint64_t version = 0;         // to ask with the next time
  bool whole = false;           // forget what you knew: `added` is all there is
  std::vector<PageHash> added;  // no name is in both
  std::vector<PageHash> removed;
};

class PageJournal {
 public:
  explicit PageJournal(size_t max_changes) : max_changes_(max_changes) {}

  void Add(const PageHash& name) { Note({name, true}); }
  void Remove(const PageHash& name) { Note({name, false}); }

  // Of the present state; 0 is before the first.
  uint64_t version() const { return version_; }
  // Nothing when it does not reach back that far.
  std::optional<PageNews> Since(uint64_t version) const;

 private:
  struct Change {
    PageHash name;
    bool added;
  };
  void Note(const Change& change);

  const size_t max_changes_;
  std::deque<Change> changes_;  // the latest; version_ is that after the last of them
  uint64_t version_ = 1;
};

}  // namespace baton
