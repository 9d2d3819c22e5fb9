// SPDX-License-Identifier: Apache-2.0
// Index of published pages by name. A page's name (page_hash.h) covers the page and all pages before it, so published
// pages form a tree: the parent of a page is the page before it.
//
// A page without holders is idle. An idle page can be evicted if all of its descendants are idle; leaves are evicted
// first.
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
#include "absl/container/flat_hash_set.h"
#include "engine/kv/page_hash.h"
#include "engine/kv/page_journal.h"
#include "engine/types.h"

namespace baton {

class PrefixIndex {
 public:
  // Page ids must be below `pages_total`.
  explicit PrefixIndex(uint32_t pages_total) : PrefixIndex(pages_total, /*max_changes=*/pages_total) {}
  // NewsSince reaches back over `max_changes` changes.
  PrefixIndex(uint32_t pages_total, size_t max_changes) : entries_(pages_total), journal_(max_changes) {}

  std::optional<PageId> Find(const PageHash& name) const;
  // Returns the pages of the longest indexed run of `names`. The first page has no parent; each page is the parent of
  // the next.
  std::vector<PageId> FindRun(std::span<const PageHash> names) const;
  bool Contains(PageId page) const { return entries_[ToIndex(page)].named; }
  // Only for an indexed page.
  const PageHash& NameOf(PageId page) const { return entries_[ToIndex(page)].name; }
  std::optional<PageHash> ParentNameOf(PageId page) const;
  bool IsEvictable(PageId page) const { return entries_[ToIndex(page)].evictable(); }
  uint32_t evictable_pages() const { return evictable_; }

  // Adds `page`, which is in use, under `name`. Page and name must not be indexed yet. `parent`, if given, must be
  // indexed and in use.
  void Insert(PageId page, const PageHash& name, std::optional<PageId> parent);
  // Marks an indexed page as idle. Call when its last holder releases it.
  void SetIdle(PageId page);
  // Marks an idle page as used.
  void SetUsed(PageId page);
  // Returns the page that Evict would evict.
  std::optional<PageId> LeastRecent() const;
  // Evicts the least recently used idle page that has no children. Returns nullopt if there is none.
  std::optional<PageId> Evict();

  // Notes whether a KV tier (engine/kv/tiers) has the page `name`. The news then list the name, published or not.
  void SetInTier(const PageHash& name, bool in_tier);
  bool IsInTier(const PageHash& name) const { return in_tiers_.contains(name); }
  // Room in the journal for the names of `pages` pages of tiers.
  void ReserveForTiers(size_t pages) { journal_.set_max_changes(entries_.size() + pages); }

  // Returns what changed since `version` of an earlier answer; for 0, or an old version, returns the full list.
  PageNews NewsSince(uint64_t version) const;

 private:
  struct Entry {
    PageHash name = {};
    std::optional<PageId> parent;
    uint32_t children = 0;
    uint32_t kept_children = 0;  // children that cannot be evicted
    uint64_t last_use = 0;       // clock_ when the page became idle
    bool named = false;
    bool idle = false;
    bool evictable() const { return idle && kept_children == 0; }
  };
  Entry& At(PageId page) { return entries_[ToIndex(page)]; }

  std::vector<Entry> entries_;  // by page
  absl::flat_hash_map<PageHash, PageId> pages_;
  absl::flat_hash_set<PageHash> in_tiers_;
  PageJournal journal_;
  std::set<std::pair<uint64_t, uint32_t>> leaves_;  // (last_use, page) of idle pages without children
  uint64_t clock_ = 0;
  uint32_t evictable_ = 0;
};

}  // namespace baton
