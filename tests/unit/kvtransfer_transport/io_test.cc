// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "kvtransfer/timing/liveness.h"
#include "kvtransfer/timing/task_queue.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

TEST(TaskQueue, RunsWhatIsDueInOrderAndNothingElse) {
  TaskQueue queue([] {});
  std::vector<int> order;
  queue.Post(absl::Hours(1), [&] { order.push_back(9); });
  queue.Post(absl::ZeroDuration(), [&] { order.push_back(1); });
  queue.Post(absl::ZeroDuration(), [&] {
    order.push_back(2);
    queue.Post(absl::ZeroDuration(), [&] { order.push_back(3); });
  });
  EXPECT_TRUE(queue.RunDue());
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  EXPECT_TRUE(queue.RunDue());
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  EXPECT_FALSE(queue.RunDue());
  EXPECT_GT(queue.NextDue(), SteadyTime::Now());
  EXPECT_NE(queue.NextDue(), SteadyTime::InfiniteFuture());
}

TEST(TaskQueue, WakesOnlyWhenSomethingIsDueEarlierThanBefore) {
  int wakes = 0;
  TaskQueue queue([&] { ++wakes; });
  queue.Post(absl::Hours(2), [] {});
  queue.Post(absl::Hours(3), [] {});
  EXPECT_EQ(wakes, 1);
  queue.Post(absl::Hours(1), [] {});
  EXPECT_EQ(wakes, 2);
}

TEST(TaskQueue, ClosedDestroysTasksUnrun) {
  TaskQueue queue([] {});
  const auto held = std::make_shared<int>(1);
  queue.Post(absl::ZeroDuration(), [held] { FAIL(); });
  queue.Close();
  queue.Post(absl::ZeroDuration(), [held] { FAIL(); });
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_FALSE(queue.RunDue());
  EXPECT_EQ(queue.NextDue(), SteadyTime::InfiniteFuture());
}

TEST(TaskQueue, TakesTasksFromManyThreads) {
  TaskQueue queue([] {});
  std::atomic<int> ran = 0;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) queue.Post(absl::ZeroDuration(), [&] { ++ran; });
    });
  }
  while (ran < 2000) queue.RunDue();
  for (std::thread& thread : threads) thread.join();
  while (queue.RunDue()) {
  }
  EXPECT_EQ(ran, 4000);
}

TEST(TaskQueue, EndlessDelaysDoNotOverflow) {
  TaskQueue queue([] {});
  queue.Post(absl::InfiniteDuration(), [] { FAIL(); });
  queue.Post(-absl::InfiniteDuration(), [] {});
  EXPECT_TRUE(queue.RunDue());
  EXPECT_FALSE(queue.RunDue());
}

TEST(Liveness, GoesFromAliveToSilentToExpiredAndBack) {
  const SteadyTime start = SteadyTime::Now();
  Liveness liveness(absl::Seconds(1), absl::Seconds(3), start);
  EXPECT_EQ(liveness.Check(start + absl::Milliseconds(999)), Liveness::Verdict::kAlive);
  EXPECT_EQ(liveness.Check(start + absl::Seconds(1)), Liveness::Verdict::kSilent);
  EXPECT_EQ(liveness.Check(start + absl::Seconds(3)), Liveness::Verdict::kExpired);
  liveness.Heard(start + absl::Seconds(2));
  EXPECT_EQ(liveness.Check(start + absl::Milliseconds(2999)), Liveness::Verdict::kAlive);
}

TEST(Liveness, TimeInWhichWeDidNotRunIsNotHeldAgainstThePeer) {
  const SteadyTime start = SteadyTime::Now();
  StallDetector stalls(absl::Milliseconds(100), start);
  Liveness liveness(absl::Seconds(1), absl::Seconds(3), start);
  EXPECT_EQ(stalls.Tick(start + absl::Milliseconds(100)), absl::ZeroDuration());
  EXPECT_EQ(stalls.Tick(start + absl::Milliseconds(290)), absl::ZeroDuration());
  const SteadyTime back = start + absl::Seconds(60);
  liveness.Forgive(stalls.Tick(back), back);
  EXPECT_EQ(liveness.Check(back), Liveness::Verdict::kAlive);
  EXPECT_EQ(liveness.Check(back + absl::Seconds(1)), Liveness::Verdict::kSilent);
}

TEST(Liveness, ForgivingDoesNotReachIntoTheFuture) {
  const SteadyTime start = SteadyTime::Now();
  Liveness liveness(absl::Seconds(1), absl::Seconds(3), start);
  const SteadyTime back = start + absl::Seconds(60);
  liveness.Heard(back);  // what waited was read before the tick
  liveness.Forgive(absl::Seconds(60), back);
  EXPECT_EQ(liveness.Check(back + absl::Milliseconds(999)), Liveness::Verdict::kAlive);
  EXPECT_EQ(liveness.Check(back + absl::Seconds(1)), Liveness::Verdict::kSilent);
  EXPECT_EQ(liveness.Check(back + absl::Seconds(3)), Liveness::Verdict::kExpired);
}

}  // namespace
}  // namespace baton
