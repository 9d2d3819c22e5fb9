// SPDX-License-Identifier: Apache-2.0
// The pages that workers have published, from WatchPages. The knowledge is late, and names are cut to 8 bytes: good
// only for estimates of cached tokens.
//
// Most pages are known of few workers, and a prompt is asked for at all workers at once. Therefore each page has the
// list of its workers.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "baton/v1/worker.pb.h"
#include "engine/kv/page_hash.h"

namespace baton::router {

class KnownPages {
 public:
  // The number of a worker here. The numbers of removed workers are used again.
  using Slot = uint32_t;

  Slot Add();
  void Remove(Slot worker);

  // Applies a worker's changes. Keeps at most `most` names: the number of the worker's pages, in its pool and in
  // its tiers.
  void Apply(Slot worker, const v1::PageNews& news, size_t most);
  void Clear(Slot worker);

  size_t size(Slot worker) const { return workers_[worker].pages; }
  // Returns, for each slot, how many of `names` the worker has, counted from the first. `names` are a prompt's pages in
  // order.
  std::vector<uint32_t> CountPrefix(std::span<const PageKey> names) const;

 private:
  using Holders = absl::InlinedVector<Slot, 2>;
  struct Worker {
    size_t pages = 0;
    std::vector<PageKey> log;  // every page of the worker, and some that the worker had
  };

  void Insert(Slot worker, PageKey page);
  void Erase(Slot worker, PageKey page);
  const Holders& HoldersOf(PageKey page) const;

  absl::flat_hash_map<PageKey, Holders> holders_;  // never empty
  std::vector<Worker> workers_;                    // by slot
  std::vector<Slot> free_;
};

}  // namespace baton::router
