// SPDX-License-Identifier: Apache-2.0
// A moment on the monotonic clock of this machine, for timeouts and durations. Steps of the wall clock do not move it.
//
// A SteadyTime is no absl::Time and does not convert to one: a date is wall time, and a timeout is steady time. Only
// differences of two SteadyTimes of one machine are meaningful. Arithmetic saturates at the infinite moments.
// Thread-safe.
#pragma once

#include <chrono>
#include <compare>

#include "absl/time/time.h"

namespace baton {

class SteadyTime {
 public:
  // The clock's zero: some moment before the process began.
  constexpr SteadyTime() = default;

  static SteadyTime Now() { return SteadyTime(absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch())); }
  static constexpr SteadyTime InfinitePast() { return SteadyTime(-absl::InfiniteDuration()); }
  static constexpr SteadyTime InfiniteFuture() { return SteadyTime(absl::InfiniteDuration()); }

  friend SteadyTime operator+(SteadyTime time, absl::Duration d) { return SteadyTime(time.since_zero_ + d); }
  friend SteadyTime operator-(SteadyTime time, absl::Duration d) { return SteadyTime(time.since_zero_ - d); }
  friend absl::Duration operator-(SteadyTime a, SteadyTime b) { return a.since_zero_ - b.since_zero_; }
  SteadyTime& operator+=(absl::Duration d) { return *this = *this + d; }

  friend constexpr bool operator==(SteadyTime, SteadyTime) = default;
  friend constexpr std::strong_ordering operator<=>(SteadyTime, SteadyTime) = default;

 private:
  explicit constexpr SteadyTime(absl::Duration since_zero) : since_zero_(since_zero) {}

  absl::Duration since_zero_;
};

// Measures from its construction.
class Stopwatch {
 public:
  absl::Duration elapsed() const { return SteadyTime::Now() - start_; }
  double seconds() const { return absl::ToDoubleSeconds(elapsed()); }

 private:
  const SteadyTime start_ = SteadyTime::Now();
};

}  // namespace baton
