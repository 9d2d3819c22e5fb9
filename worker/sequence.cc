// SPDX-License-Identifier: Apache-2.0
#include "worker/sequence.h"

#include <algorithm>
#include <utility>

namespace baton {

Sequence::Sequence(Attempt attempt, PagePool& pool)
    : attempt_(std::move(attempt)), tokens_(attempt_.prompt), pool_(pool) {
  tokens_.reserve(attempt_.prompt.size() + attempt_.sampling.max_tokens);
  history_.AddPrompt(attempt_.prompt);
  for (TokenId token : attempt_.prior_output) Append(token);
}

void Sequence::Append(TokenId token) {
  tokens_.push_back(token);
  history_.AddOutput(token);
}

void Sequence::AddPages(std::vector<PageRef> pages) {
  for (PageRef& page : pages) {
    page_ids_.push_back(page.id());
    pages_.push_back(std::move(page));
  }
}

void Sequence::DropPages() {
  page_ids_.clear();
  pool_.Release(std::exchange(pages_, {}));
  published_ = 0;
  kv_tokens_ = cached_tokens_ = 0;
}

std::span<const PageHash> Sequence::page_names() {
  if (attempt_.page_hash_root.has_value()) {
    ExtendPageHashes(*attempt_.page_hash_root, tokens_, pool_.layout().page_tokens(), names_, pool_.layout().groups());
  }
  return names_;
}

std::optional<Sequence::NamedPage> Sequence::FirstMissingPage() {
  const std::span<const PageHash> names = sharable_names();
  const auto published = static_cast<size_t>(pool_.CountPublished(names));
  if (published == names.size()) return std::nullopt;
  return NamedPage{published, names[published]};
}

bool Sequence::HasPage(const NamedPage& page) {
  const std::span<const PageHash> names = page_names();
  return page.index < names.size() && names[page.index] == page.name;
}

std::span<const PageHash> Sequence::sharable_names() {
  const std::span<const PageHash> names = page_names();
  return names.first(std::min<size_t>(names.size(), pool_.layout().full_pages(static_cast<int>(tokens_.size()) - 1)));
}

void Sequence::TakePages(SharedPages shared) {
  AddPages(std::move(shared.pages));
  published_ = shared.cached;
  kv_tokens_ = cached_tokens_ = pool_.layout().tokens_in(shared.cached);
}

void Sequence::TakeLoaded(int pages) {
  kv_tokens_ += pool_.layout().tokens_in(pages);
  cached_tokens_ = kv_tokens_;
  Publish(/*replace=*/true);
}

int Sequence::missing_pages() const {
  return std::max(0, pool_.layout().pages_for(static_cast<int>(tokens_.size())) - static_cast<int>(pages_.size()));
}

void Sequence::TakeCached() {
  if (kv_tokens_ != cached_tokens_) return;
  std::vector<PageRef> shared = pool_.Share(sharable_names());
  for (; published_ < shared.size(); ++published_) {
    pages_[published_] = std::move(shared[published_]);
    page_ids_[published_] = pages_[published_].id();
  }
  kv_tokens_ = cached_tokens_ = pool_.layout().tokens_in(static_cast<int>(published_));
}

void Sequence::Publish(bool replace) {
  const auto full = static_cast<size_t>(pool_.layout().full_pages(kv_tokens_));
  if (published_ >= full) return;
  const std::span<const PageHash> names = page_names();
  for (; published_ < std::min(full, names.size()); ++published_) {
    if (!replace && pool_.IsPublished(names[published_])) return;
    PageRef& page = pages_[published_];
    page = pool_.Publish(std::move(page), names[published_], published_ == 0 ? nullptr : &pages_[published_ - 1]);
    page_ids_[published_] = page.id();
  }
}

Sequence::End Sequence::EndAfter(TokenId token) const {
  if (attempt_.sampling.IsStop(token)) return End::kStop;
  return output_tokens() >= attempt_.sampling.max_tokens ? End::kLength : End::kNo;
}

}  // namespace baton
