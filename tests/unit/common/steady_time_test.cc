// SPDX-License-Identifier: Apache-2.0
#include "common/steady_time.h"

#include <gtest/gtest.h>

#include <type_traits>

#include "absl/time/clock.h"

namespace baton {
namespace {

template <typename A, typename B>
concept Mixable = requires(A a, B b) { a - b; } || requires(A a, B b) { a < b; } || requires(A a, B b) { a == b; } ||
                  std::is_constructible_v<A, B> || std::is_assignable_v<A&, B>;
static_assert(!Mixable<SteadyTime, absl::Time> && !Mixable<absl::Time, SteadyTime>);
static_assert(Mixable<SteadyTime, SteadyTime> && Mixable<absl::Time, absl::Time>);
static_assert(!std::is_constructible_v<SteadyTime, absl::Duration>, "a duration is no moment");

TEST(SteadyTimeTest, DurationsMoveAMomentAndMomentsDifferByADuration) {
  const SteadyTime start;
  const SteadyTime later = start + absl::Seconds(3);
  EXPECT_EQ(later - start, absl::Seconds(3));
  EXPECT_EQ(start - later, -absl::Seconds(3));
  EXPECT_EQ(later - absl::Seconds(3), start);
  SteadyTime moved = start;
  moved += absl::Seconds(3);
  EXPECT_EQ(moved, later);
  EXPECT_LT(start, later);
  EXPECT_NE(start, later);
}

TEST(SteadyTimeTest, InfiniteMomentsBoundAllOthersAndAbsorbDurations) {
  const SteadyTime now = SteadyTime::Now();
  EXPECT_LT(SteadyTime::InfinitePast(), now);
  EXPECT_LT(now, SteadyTime::InfiniteFuture());
  EXPECT_EQ(SteadyTime::InfiniteFuture() - now, absl::InfiniteDuration());
  EXPECT_EQ(SteadyTime::InfinitePast() + absl::Hours(1), SteadyTime::InfinitePast());
  EXPECT_EQ(now + absl::InfiniteDuration(), SteadyTime::InfiniteFuture());
}

TEST(SteadyTimeTest, TheClockRuns) {
  const Stopwatch watch;
  const SteadyTime before = SteadyTime::Now();
  absl::SleepFor(absl::Milliseconds(5));
  EXPECT_GE(SteadyTime::Now() - before, absl::Milliseconds(5));
  EXPECT_GE(watch.elapsed(), absl::Milliseconds(5));
  EXPECT_GE(watch.seconds(), 0.005);
}

}  // namespace
}  // namespace baton
