// Where a receiver takes the pages that it grants. One owner per page: between Allocate and Release the receiver, or
// whoever it handed the page to in Receiver::Received.
#pragma once

#include <span>
#include <vector>

#include "engine/types.h"

namespace baton::handoff {

class PageSource {
 public:
  virtual ~PageSource() = default;
  virtual int free_pages() const = 0;
  // `count` pages, or none if there are fewer.
  virtual std::vector<PageId> Allocate(int count) = 0;
  // No write can land in them any more.
  virtual void Release(std::span<const PageId> pages) = 0;
  // Their writer is silent and may still write: they stay allocated, and nobody waits for them.
  virtual void SetQuarantined(std::span<const PageId> pages, bool quarantined) = 0;
};

}  // namespace baton::handoff
