// Where a receiver takes the pages that it grants. Between Allocate and Release each grant holds its pages, or whoever
// it handed them to in Receiver::Received: alone, but for cached ones.
#pragma once

#include <span>
#include <vector>

#include "engine/kv/page_hash.h"
#include "engine/types.h"

namespace baton::handoff {

struct GrantedPages {
  std::vector<PageId> pages;
  int cached = 0;  // so many of them, the first ones, hold what they should already: others may read them, too

  bool operator==(const GrantedPages&) const = default;
};

class PageSource {
 public:
  virtual ~PageSource() = default;
  // `count` pages for the content that `names` says, as far as it goes; none unless `leave` others stay to be had.
  virtual GrantedPages Allocate(int count, std::span<const PageHash> names, int leave) = 0;
  // No write can land in them any more.
  virtual void Release(std::span<const PageId> pages) = 0;
  // Their writer is silent and may still write: they stay allocated, and nobody waits for them.
  virtual void SetQuarantined(std::span<const PageId> pages, bool quarantined) = 0;
};

}  // namespace baton::handoff
