// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/cpu/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "engine/kernels/cpu/work_shares.h"
#include "tests/status_matchers.h"

namespace baton::cpu {
namespace {

using testing::Fails;

TEST(ShareOfTest, SharesAreNeighboursCoverEverythingOnceAndDifferByOneAtMost) {
  for (const int count : {0, 1, 5, 64, 1000003}) {
    for (const int threads : {1, 2, 3, 7, 64}) {
      int next = 0;
      for (int t = 0; t < threads; ++t) {
        const Share share = ShareOf(count, t, threads);
        EXPECT_EQ(share.begin, next);
        EXPECT_GE(share.end - share.begin, count / threads);
        EXPECT_LE(share.end - share.begin, count / threads + 1);
        next = share.end;
      }
      EXPECT_EQ(next, count);
    }
  }
}

TEST(WorkSharesTest, EachChunkIsTakenOnceWhoeverIsDoneEarly) {
  for (const int threads : {1, 2, 5}) {
    ASSERT_OK_AND_ASSIGN(const auto pool, ThreadPool::Create(threads, {}));
    WorkShares shares(threads);
    for (const int chunks : {0, 1, 3, 40, 1000}) {
      std::vector<std::atomic<int>> taken(chunks);
      shares.Reset(chunks);
      pool->Run([&](int thread) { shares.ForEach(thread, [&](int chunk) { ++taken[chunk]; }); });
      for (const std::atomic<int>& count : taken) EXPECT_EQ(count, 1);
    }
    // A thread that finds itself alone does everything, its own share first.
    shares.Reset(10);
    std::vector<int> order;
    shares.ForEach(threads - 1, [&](int chunk) { order.push_back(chunk); });
    EXPECT_EQ(order.size(), 10U);
    EXPECT_EQ(order.front(), ShareOf(10, threads - 1, threads).begin);
    EXPECT_EQ(std::set<int>(order.begin(), order.end()).size(), 10U);
  }
}

TEST(ThreadPoolTest, EachThreadRunsTheWorkOnceAndItsWritesAreSeenAfterRun) {
  for (const int threads : {1, 2, 4, 9}) {
    ASSERT_OK_AND_ASSIGN(const auto pool, ThreadPool::Create(threads, {}));
    EXPECT_EQ(pool->threads(), threads);
    std::vector<int> runs(threads);
    for (int i = 1; i <= 500; ++i) {
      pool->Run([&](int thread) { ++runs[thread]; });
      ASSERT_EQ(runs, std::vector<int>(threads, i));
    }
  }
}

TEST(ThreadPoolTest, TheCallerIsThreadZeroAndTheOthersAreThreadsOfTheirOwn) {
  ASSERT_OK_AND_ASSIGN(const auto pool, ThreadPool::Create(3, {}));
  std::vector<std::thread::id> ids(3);
  pool->Run([&](int thread) { ids[thread] = std::this_thread::get_id(); });
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_EQ(std::set<std::thread::id>(ids.begin(), ids.end()).size(), 3u);
}

TEST(ThreadPoolTest, ThreadsThatFellAsleepWakeForTheNextRun) {
  ASSERT_OK_AND_ASSIGN(const auto pool, ThreadPool::Create(2, {}));
  // Longer than any spin: the other thread of the second run must have blocked by then, and the caller blocks in turn.
  std::atomic<int> runs = 0;
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    pool->Run([&](int thread) {
      if (thread == 1) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      ++runs;
    });
  }
  EXPECT_EQ(runs, 6);
}

TEST(ThreadPoolTest, DestructionWithoutARunJoins) {
  ASSERT_OK_AND_ASSIGN(auto pool, ThreadPool::Create(4, {}));
  pool.reset();
}

TEST(ThreadPoolTest, PinsEveryThreadToItsCpu) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  std::vector<int> allowed;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &before)) allowed.push_back(cpu);
  }
  const std::vector<int> cpus = {allowed.back(), allowed.front()};
  ASSERT_OK_AND_ASSIGN(const auto pool, ThreadPool::Create(2, cpus));
  std::vector<int> ran_on(2, -1);
  pool->Run([&](int thread) { ran_on[thread] = sched_getcpu(); });
  EXPECT_EQ(ran_on, cpus);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

TEST(ThreadPoolTest, RefusesBadCountsAndCpus) {
  EXPECT_TRUE(Fails(ThreadPool::Create(0, {}), absl::StatusCode::kInvalidArgument, "0 compute threads"));
  EXPECT_TRUE(Fails(ThreadPool::Create(100000, {}), absl::StatusCode::kInvalidArgument, "100000"));
  EXPECT_TRUE(Fails(ThreadPool::Create(2, {0, 1, 2}), absl::StatusCode::kInvalidArgument, "3 CPUs for 2"));
  EXPECT_TRUE(Fails(ThreadPool::Create(1, {1 << 20}), absl::StatusCode::kInvalidArgument, "CPU 1048576"));
}

}  // namespace
}  // namespace baton::cpu
