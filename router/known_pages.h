// SPDX-License-Identifier: Apache-2.0
// The pages that a worker has published, from WatchPages. The knowledge is late, and names are cut to 8 bytes: good
// only for estimates of cached tokens.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <span>

#include "absl/container/flat_hash_set.h"
#include "baton/v1/worker.pb.h"
#include "engine/kv/page_hash.h"

namespace baton::router {

class KnownPages {
 public:
  // Applies a worker's changes. Keeps at most `most` names: the number of the worker's pages, in its pool and in
  // its tiers.
  void Apply(const v1::PageNews& news, size_t most);
  void Clear() { pages_.clear(); }

  size_t size() const { return pages_.size(); }
  // Returns how many of `names` are known, counted from the first. `names` are a prompt's pages in order.
  size_t CountPrefix(std::span<const PageKey> names) const;

 private:
  absl::flat_hash_set<PageKey> pages_;
};

}  // namespace baton::router
