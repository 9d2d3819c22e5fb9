// SPDX-License-Identifier: Apache-2.0
// Two questions of a scheduler to the tiers: which pages of a prompt do tiers have? Load these pages into the pool!
//
// Thread-safe. No call waits for a read or a write.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/kv/page_hash.h"
#include "engine/kv/page_pool.h"

namespace baton {

enum class TierKind : uint8_t { kMemory, kFile };  // the faster first
inline constexpr size_t kTierKinds = 2;
constexpr std::string_view Name(TierKind kind) { return kind == TierKind::kMemory ? "memory" : "file"; }

// A load of the pages `names` into `pages`, in order. The loader fills no page after the first that it cannot load.
//
// The load owns the pages: if the scheduler no longer wants them, they return to the pool once the loader has dropped
// the load. No page is reused while the loader can still write to it (invariant I1).
struct TierLoad {
  std::vector<PageHash> names;
  std::vector<PageRef> pages;         // as many as names
  std::vector<TierKind> kinds;        // where each page was found
  std::atomic<bool> given_up{false};  // set by the scheduler: load no further page
  int loaded = 0;                     // set before `done` runs: the first pages, which hold their content
};

// Measured means; 0: not known.
struct TierSpeed {
  double wait_seconds = 0;  // from Load until the loader begins and from its end until the report, for an idle loader
  std::array<double, kTierKinds> page_seconds{};
  double queued_seconds = 0;   // the loads that wait or run now, by the means, or as long as the running load took
  double overdue_seconds = 0;  // by which the running load exceeds its estimate: its read may hang
};

class TierLoader {
 public:
  virtual ~TierLoader() = default;

  // Returns where the pages of the longest run of `names` are.
  virtual std::vector<TierKind> Find(std::span<const PageHash> names) const = 0;
  // Runs `done` on a thread of the loader. Loads run one after the other.
  virtual void Load(std::shared_ptr<TierLoad> load, std::function<void()> done) = 0;
  // Drops the loads that are given up and have not begun, so that their pages return while another load hangs. Runs
  // `done` of each on the caller's thread.
  virtual void DropGivenUp() = 0;
  virtual TierSpeed speed() const = 0;
};

}  // namespace baton
