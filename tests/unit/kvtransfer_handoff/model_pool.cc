// SPDX-License-Identifier: Apache-2.0
#include "model_pool.h"

#include <algorithm>

namespace baton::handoff {

int ModelPool::free_pages() const { return int(std::count(used_.begin(), used_.end(), false)); }

GrantedPages ModelPool::Allocate(int count, std::span<const PageHash> names) {
  if (names.size() != 1 || names[0] != kSharedName) misuse_ = "a reservation's page hashes were lost";
  --count;
  if (free_pages() < count) return {};
  std::vector<PageId> pages;
  for (int i = 0; i < kPages && int(pages.size()) < count; ++i) {
    if (used_[size_t(i)]) continue;
    used_[size_t(i)] = true;
    pages.push_back(PageId(i));
  }
  if (mutation_ == Mutation::kNoGrowthPage) {
    used_[ToIndex(pages.back())] = false;
    pages.back() = pages.front();
  }
  pages.insert(pages.begin(), kSharedPage);
  ++holders_;
  return {.pages = std::move(pages), .cached = mutation_ == Mutation::kWantsSharedPage ? 0 : 1};
}

void ModelPool::Release(std::span<const PageId> pages) {
  for (PageId page : pages) {
    if (!used(page)) misuse_ = "a page was released twice";
    if (page == kSharedPage) {
      --holders_;
      continue;
    }
    used_[ToIndex(page)] = false;
    if (quarantined_[ToIndex(page)]) misuse_ = "a page was released out of quarantine";
  }
}

void ModelPool::SetQuarantined(std::span<const PageId> pages, bool quarantined) {
  for (PageId page : pages) {
    if (!used(page)) misuse_ = "a free page was quarantined";
    if (page == kSharedPage) misuse_ = "a page that others read was quarantined";
    if (page == kSharedPage) continue;
    quarantined_[ToIndex(page)] = quarantined;
    if (mutation_ == Mutation::kFreeOnSilence && quarantined) used_[ToIndex(page)] = false;
  }
}

const char* ModelPool::misuse() const { return mutation_ == Mutation::kNone ? misuse_ : nullptr; }

int ModelPool::usable_pages() const {
  return kPages + 1 - int(std::count(quarantined_.begin(), quarantined_.end(), true));
}

bool ModelPool::any_quarantined() const { return std::count(quarantined_.begin(), quarantined_.end(), true) > 0; }

}  // namespace baton::handoff
