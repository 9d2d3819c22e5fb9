// Which KV pages a worker keeps, as far as it has told (WatchPages). What it tells is late, and names are cut to 8
// bytes: good for guessing where a prompt is computed soonest, for nothing else.
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
  // Keeps `most` names at most, those of the worker's pages.
  void Apply(const v1::PageNews& news, size_t most);
  void Clear() { pages_.clear(); }

  size_t size() const { return pages_.size(); }
  // How many of the first `names`, a prompt's pages in their order, are here.
  size_t CountPrefix(std::span<const PageKey> names) const;

 private:
  absl::flat_hash_set<PageKey> pages_;
};

}  // namespace baton::router
