// SPDX-License-Identifier: Apache-2.0
// Decides from the time since the last sign of life whether a peer is alive, silent or expired. Pure: the caller passes
// the time. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"
#include "common/steady_time.h"

namespace baton {

class Liveness {
 public:
  enum class Verdict : uint8_t { kAlive, kSilent, kExpired };

  Liveness(absl::Duration silent_after, absl::Duration timeout, SteadyTime now)
      : silent_after_(silent_after), timeout_(timeout), last_heard_(now) {}

  void Heard(SteadyTime now) { last_heard_ = now; }

  // Discounts `stall`, during which this process was stopped or starved: messages of that time are not read yet. The
  // last sign of life never moves past `now`.
  void Forgive(absl::Duration stall, SteadyTime now) { last_heard_ = std::min(last_heard_ + stall, now); }

  Verdict Check(SteadyTime now) const {
    const absl::Duration quiet = now - last_heard_;
    if (quiet >= timeout_) return Verdict::kExpired;
    return quiet >= silent_after_ ? Verdict::kSilent : Verdict::kAlive;
  }

 private:
  absl::Duration silent_after_;
  absl::Duration timeout_;
  SteadyTime last_heard_;
};

// Notices when the thread that should tick every `interval` did not run.
class StallDetector {
 public:
  StallDetector(absl::Duration interval, SteadyTime now) : interval_(interval), last_tick_(now) {}

  // Returns how much later than expected this tick comes, or zero if at most one interval later (a busy machine).
  absl::Duration Tick(SteadyTime now) {
    const absl::Duration late = now - last_tick_ - interval_;
    last_tick_ = now;
    return late > interval_ ? late : absl::ZeroDuration();
  }

 private:
  absl::Duration interval_;
  SteadyTime last_tick_;
};

}  // namespace baton
