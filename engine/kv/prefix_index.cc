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
  journal_.Add(name);
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

std::optional<PageId> PrefixIndex::Evict() {
  if (leaves_.empty()) return std::nullopt;
  const PageId page{leaves_.begin()->second};
  leaves_.erase(leaves_.begin());
  Entry& entry = At(page);
  if (entry.parent.has_value()) {
    Entry& parent = At(*entry.parent);
    if (--parent.children == 0 && parent.idle) leaves_.emplace(parent.last_use, ToIndex(*entry.parent));
  }
  pages_.erase(entry.name);
  journal_.Remove(entry.name);
  entry = {};
  --evictable_;
  return page;
}

PageNews PrefixIndex::NewsSince(uint64_t version) const {
  if (std::optional<PageNews> news = journal_.Since(version)) return *std::move(news);
  PageNews all{.version = journal_.version(), .whole = true, .added = {}, .removed = {}};
  all.added.reserve(pages_.size());
  for (const auto& [name, page] : pages_) all.added.push_back(name);
  return all;
}

}  // namespace baton
