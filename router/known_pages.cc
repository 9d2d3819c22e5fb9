// SPDX-License-Identifier: Apache-2.0
#include "router/known_pages.h"

#include <algorithm>

namespace baton::router {

void KnownPages::Apply(const v1::PageNews& news, size_t most) {
  if (news.whole()) pages_.clear();
  for (const PageKey page : news.removed()) pages_.erase(page);
  pages_.reserve(std::min(most, pages_.size() + news.added_size()));
  for (const PageKey page : news.added()) {
    if (pages_.size() >= most) return;
    pages_.insert(page);
  }
}

size_t KnownPages::CountPrefix(std::span<const PageKey> names) const {
  if (names.empty() || !pages_.contains(names.front())) return 0;  // most workers know nothing of most prompts
  // A worker evicts no page before its successors: known pages come before unknown pages.
  const auto end =
      std::partition_point(names.begin(), names.end(), [&](PageKey page) { return pages_.contains(page); });
  return end - names.begin();
}

}  // namespace baton::router
