// Monotonic time for deadlines, independent of the wall clock's steps.
#pragma once

#include <chrono>

#include "absl/time/time.h"

namespace baton {

using SteadyClock = std::chrono::steady_clock;
using SteadyTime = SteadyClock::time_point;

inline SteadyTime operator+(SteadyTime time, absl::Duration duration) {
  return time + std::chrono::duration_cast<SteadyClock::duration>(absl::ToChronoNanoseconds(duration));
}

inline absl::Duration Between(SteadyTime from, SteadyTime to) { return absl::FromChrono(to - from); }

}  // namespace baton
