// Which page holds which content. A page's name (page_hash.h) says what it and all pages before it hold, so that the
// pages here form a tree; a page stays as long as one behind it does.
//
// Pages nobody uses any more are idle. Those of them with idle pages only behind them can be evicted, last ones first,
// until none of them is left.
//
// Not thread-safe: PagePool guards it.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/kv/page_hash.h"
#include "engine/kv/page_journal.h"
#include "engine/types.h"

namespace baton {

class PrefixIndex {
 public:
  // For pages with ids below `pages_total`.
  explicit PrefixIndex(uint32_t pages_total) : entries_(pages_total), journal_(pages_total) {}

  std::optional<PageId> Find(const PageHash& name) const;
  // The pages of the longest run of `names` that are here, each behind the one before it and the first behind none.
  std::vector<PageId> FindRun(std::span<const PageHash> names) const;
  bool Contains(PageId page) const { return entries_[ToIndex(page)].named; }
  bool IsEvictable(PageId page) const { return entries_[ToIndex(page)].evictable(); }
  uint32_t evictable_pages() const { return evictable_; }

  // `page`, which is in use, holds what `name` says; neither is here yet. `parent`, the page before it, is.
  void Insert(PageId page, const PageHash& name, std::optional<PageId> parent);
  // The last user of a page that is here let go of it: it was used until now.
  void SetIdle(PageId page);
  // An idle page is used again.
  void SetUsed(PageId page);
  // Forgets that idle page, of those with none behind them, which was used longest ago. Nothing when there is none.
  std::optional<PageId> Evict();

  // What changed since `version`, that of an earlier answer; 0 for who knows nothing yet.
  PageNews NewsSince(uint64_t version) const;

 private:
  struct Entry {
    PageHash name = {};
    std::optional<PageId> parent;
    uint32_t children = 0;
    uint32_t kept_children = 0;  // those that cannot be evicted
    uint64_t last_use = 0;       // of an idle page
    bool named = false;
    bool idle = false;
    bool evictable() const { return idle && kept_children == 0; }
  };
  Entry& At(PageId page) { return entries_[ToIndex(page)]; }

  std::vector<Entry> entries_;  // by page
  absl::flat_hash_map<PageHash, PageId> pages_;
  PageJournal journal_;
  std::set<std::pair<uint64_t, uint32_t>> leaves_;  // (last use, page) of idle ones with none behind them
  uint64_t clock_ = 0;
  uint32_t evictable_ = 0;
};

}  // namespace baton
