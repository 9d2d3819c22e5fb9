// SPDX-License-Identifier: Apache-2.0
#include "engine/kv/page_journal.h"

#include "absl/container/flat_hash_set.h"

namespace baton {

void PageJournal::Append(const Change& change) {
  ++version_;
  changes_.push_back(change);
  if (changes_.size() > max_changes_) changes_.pop_front();
}

std::optional<PageNews> PageJournal::Since(uint64_t version) const {
  if (version == 0 || version > version_ || version_ - version > changes_.size()) return std::nullopt;
  PageNews news{.version = version_, .whole = false, .added = {}, .removed = {}};
  // Walks backwards: only the last change of a name counts.
  absl::flat_hash_set<PageHash> seen;
  const auto begin = changes_.rbegin();
  for (auto change = begin; change != begin + static_cast<std::ptrdiff_t>(version_ - version); ++change) {
    if (seen.insert(change->name).second) (change->added ? news.added : news.removed).push_back(change->name);
  }
  return news;
}

}  // namespace baton
