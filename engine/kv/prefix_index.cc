// SPDX-License-Identifier: Apache-2.0
#include "engine/kv/prefix_index.h"

#include <cassert>

namespace baton {

std::optional<PageId> PrefixIndex::Find(const PageHash& name) const {
  const auto found = pages_.find(name);
  return found == pages_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<PageId> PrefixIndex::FindRun(std::span<const PageHash> names) const {
  std::vector<PageId> run;
  std::optional<PageId> last;
  for (const PageHash& name : names) {
    const std::optional<PageId> page = Find(name);
    if (!page.has_value() || entries_[ToIndex(*page)].parent != last) break;
    run.push_back(*page);
    last = page;
  }
  return run;
}

std::optional<PageHash> PrefixIndex::ParentNameOf(PageId page) const {
  const std::optional<PageId> parent = entries_[ToIndex(page)].parent;
  return parent.has_value() ? std::optional(NameOf(*parent)) : std::nullopt;
}

void PrefixIndex::Insert(PageId page, const PageHash& name, std::optional<PageId> parent) {
  Entry& entry = At(page);
  assert(!entry.named && !pages_.contains(name));
  entry = {.name = name, .parent = parent, .named = true};
  if (parent.has_value()) {
    assert(At(*parent).named && !At(*parent).idle);
    ++At(*parent).children;
    ++At(*parent).kept_children;
  }
  pages_.emplace(name, page);
  if (!in_tiers_.contains(name)) journal_.Add(name);
}

void PrefixIndex::SetIdle(PageId page) {
  Entry* entry = &At(page);
  assert(entry->named && !entry->idle);
  entry->idle = true;
  entry->last_use = ++clock_;
  if (entry->children == 0) leaves_.emplace(entry->last_use, ToIndex(page));
  // The page becomes evictable, and so do idle ancestors whose last kept child was on this path.
  while (entry->evictable()) {
    ++evictable_;
    if (!entry->parent.has_value()) break;
    entry = &At(*entry->parent);
    --entry->kept_children;
  }
}

void PrefixIndex::SetUsed(PageId page) {
  Entry* entry = &At(page);
  assert(entry->idle);
  leaves_.erase({entry->last_use, ToIndex(page)});
  bool was_evictable = entry->evictable();
  entry->idle = false;
  while (was_evictable) {
    --evictable_;
    if (!entry->parent.has_value()) break;
    entry = &At(*entry->parent);
    was_evictable = entry->evictable();
    ++entry->kept_children;
  }
}

std::optional<PageId> PrefixIndex::LeastRecent() const {
  return leaves_.empty() ? std::nullopt : std::optional(PageId{leaves_.begin()->second});
}

std::optional<PageId> PrefixIndex::Evict() {
  const std::optional<PageId> least = LeastRecent();
  if (!least.has_value()) return std::nullopt;
  const PageId page = *least;
  leaves_.erase(leaves_.begin());
  Entry& entry = At(page);
  if (entry.parent.has_value()) {
    Entry& parent = At(*entry.parent);
    if (--parent.children == 0 && parent.idle) leaves_.emplace(parent.last_use, ToIndex(*entry.parent));
  }
  pages_.erase(entry.name);
  if (!in_tiers_.contains(entry.name)) journal_.Remove(entry.name);
  entry = {};
  --evictable_;
  return page;
}

void PrefixIndex::SetInTier(const PageHash& name, bool in_tier) {
  const bool changed = in_tier ? in_tiers_.insert(name).second : in_tiers_.erase(name) > 0;
  if (!changed || pages_.contains(name)) return;
  if (in_tier) {
    journal_.Add(name);
  } else {
    journal_.Remove(name);
  }
}

PageNews PrefixIndex::NewsSince(uint64_t version) const {
  if (std::optional<PageNews> news = journal_.Since(version)) return *std::move(news);
  PageNews all{.version = journal_.version(), .whole = true, .added = {}, .removed = {}};
  all.added.reserve(pages_.size() + in_tiers_.size());
  for (const auto& [name, page] : pages_) all.added.push_back(name);
  for (const PageHash& name : in_tiers_) {
    if (!pages_.contains(name)) all.added.push_back(name);
  }
  return all;
}

}  // namespace baton
