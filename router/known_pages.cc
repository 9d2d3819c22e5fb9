// SPDX-License-Identifier: Apache-2.0
#include "router/known_pages.h"

#include <algorithm>

namespace baton::router {
namespace {

// A log of this length, and twice that of the worker's pages, is shortened.
constexpr size_t kLeastLog = 1024;

}  // namespace

KnownPages::Slot KnownPages::Add() {
  if (free_.empty()) {
    workers_.emplace_back();
    return static_cast<Slot>(workers_.size() - 1);
  }
  const Slot worker = free_.back();
  free_.pop_back();
  return worker;
}

void KnownPages::Remove(Slot worker) {
  Clear(worker);
  free_.push_back(worker);
}

void KnownPages::Apply(Slot worker, const v1::PageNews& news, size_t most) {
  if (news.whole()) Clear(worker);
  for (const PageKey page : news.removed()) Erase(worker, page);
  for (const PageKey page : news.added()) {
    if (workers_[worker].pages >= most) return;
    Insert(worker, page);
  }
}

void KnownPages::Clear(Slot worker) {
  for (const PageKey page : workers_[worker].log) Erase(worker, page);
  workers_[worker] = {};
}

void KnownPages::Insert(Slot worker, PageKey page) {
  Holders& holders = holders_[page];
  if (std::ranges::find(holders, worker) != holders.end()) return;
  holders.push_back(worker);
  Worker& known = workers_[worker];
  ++known.pages;
  known.log.push_back(page);
  if (known.log.size() < kLeastLog || known.log.size() < 2 * known.pages) return;
  std::ranges::sort(known.log);
  const auto [first, last] = std::ranges::unique(known.log);
  known.log.erase(first, last);
  std::erase_if(known.log, [&](PageKey logged) {
    const Holders& of_logged = HoldersOf(logged);
    return std::ranges::find(of_logged, worker) == of_logged.end();
  });
}

void KnownPages::Erase(Slot worker, PageKey page) {
  const auto found = holders_.find(page);
  if (found == holders_.end()) return;
  Holders& holders = found->second;
  const auto holder = std::ranges::find(holders, worker);
  if (holder == holders.end()) return;
  *holder = holders.back();
  holders.pop_back();
  if (holders.empty()) holders_.erase(found);
  --workers_[worker].pages;
}

const KnownPages::Holders& KnownPages::HoldersOf(PageKey page) const {
  static const Holders kNone;
  const auto found = holders_.find(page);
  return found == holders_.end() ? kNone : found->second;
}

std::vector<uint32_t> KnownPages::CountPrefix(std::span<const PageKey> names) const {
  std::vector<uint32_t> counts(workers_.size());
  // A worker evicts no page before its successors: each page is known of all workers that know a later page. The number
  // of workers falls from page to page, and pages of as many workers are pages of the same workers.
  const auto end_of_more_than = [&](size_t workers) {
    return std::partition_point(names.begin(), names.end(),
                                [&](PageKey page) { return HoldersOf(page).size() > workers; });
  };
  auto end = end_of_more_than(0);
  while (end != names.begin()) {
    const Holders& holders = HoldersOf(*(end - 1));
    for (const Slot worker : holders) {
      if (counts[worker] == 0) counts[worker] = static_cast<uint32_t>(end - names.begin());
    }
    end = end_of_more_than(holders.size());
  }
  return counts;
}

}  // namespace baton::router
