// Monotonic time for timeouts and durations. Only differences of two values are meaningful. Thread-safe.
#pragma once

#include <chrono>

#include "absl/time/time.h"
#include "common/steady_time.h"

namespace baton {

inline absl::Time SteadyNow() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace baton
