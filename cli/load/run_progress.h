// SPDX-License-Identifier: Apache-2.0
// Counts of a run that is under way, for a display. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/mutex.h"
#include "common/steady_time.h"

namespace baton {

class RunProgress {
 public:
  struct Snapshot {
    int64_t planned = 0;
    int64_t sent = 0;
    int64_t done = 0;  // without an error
    int64_t failed = 0;
    int64_t tokens = 0;                  // of all answers so far
    std::optional<absl::Duration> ttft;  // median of the latest first tokens
    absl::Duration elapsed;
  };

  // Begins a run of `planned` requests. Warm-up requests count.
  void Begin(int64_t planned);
  void Sent();
  void FirstToken(absl::Duration ttft);
  void Tokens(int count);
  void Ended(bool succeeded);

  Snapshot Take() const;

 private:
  static constexpr size_t kLatest = 512;

  mutable Mutex mutex_;
  Snapshot counts_ ABSL_GUARDED_BY(mutex_);
  SteadyTime began_ ABSL_GUARDED_BY(mutex_);
  std::vector<absl::Duration> ttfts_ ABSL_GUARDED_BY(mutex_);  // a ring of the latest kLatest
  size_t next_ttft_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace baton
