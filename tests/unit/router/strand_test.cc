// SPDX-License-Identifier: Apache-2.0
#include "router/strand.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "common/steady_time.h"
#include "router/admission.h"
#include "tests/status_matchers.h"

namespace baton::router {
namespace {

TEST(StrandTest, ATaskPostedByATaskRunsAfterIt) {
  Strand strand;
  std::vector<int> order;
  strand.Post([&] {
    strand.Post([&] { order.push_back(2); });
    order.push_back(1);
  });
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(StrandTest, TasksOfManyThreadsRunOneAtATime) {
  Strand strand;
  int count = 0;  // guarded by nothing but the strand
  std::atomic<int> inside = 0;
  std::atomic<bool> overlapped = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        strand.Post([&] {
          if (++inside != 1) overlapped = true;
          ++count;
          --inside;
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  strand.Post([] {});
  EXPECT_EQ(count, 4000);
  EXPECT_FALSE(overlapped);
}

TEST(AdmissionTest, RefusesBeyondItsLimitAndTakesAgainAfterwards) {
  Admission admission(2);
  absl::StatusOr<Admission::Ticket> first = admission.Enter();
  absl::StatusOr<Admission::Ticket> second = admission.Enter();
  ASSERT_OK(first);
  ASSERT_OK(second);
  EXPECT_TRUE(baton::testing::Fails(admission.Enter(), absl::StatusCode::kResourceExhausted, "max-requests: 2"));
  *first = {};
  EXPECT_EQ(admission.running(), 1u);
  EXPECT_OK(admission.Enter());
}

TEST(AdmissionTest, DrainingRefusesNewRequestsAndWaitsForTheOld) {
  Admission admission(2);
  absl::StatusOr<Admission::Ticket> ticket = admission.Enter();
  ASSERT_OK(ticket);
  admission.StartDraining();
  EXPECT_TRUE(baton::testing::Fails(admission.Enter(), absl::StatusCode::kUnavailable, "draining"));
  EXPECT_FALSE(admission.WaitIdle(SteadyTime::Now()));
  std::thread leaver([&] { *ticket = {}; });
  EXPECT_TRUE(admission.WaitIdle(SteadyTime::Now() + absl::Seconds(30)));
  leaver.join();
}

TEST(AdmissionTest, StoppingEndsTheRequestsThatRun) {
  Admission admission(3);
  int ended = 0;
  absl::StatusOr<Admission::Ticket> runs = admission.Enter();
  absl::StatusOr<Admission::Ticket> over = admission.Enter();
  absl::StatusOr<Admission::Ticket> late = admission.Enter();
  ASSERT_OK(runs);
  ASSERT_OK(over);
  ASSERT_OK(late);
  runs->WhenStopped([&] { ++ended; });
  over->WhenStopped([&] { ended += 10; });
  *over = {};
  admission.Stop();
  EXPECT_EQ(ended, 1);
  late->WhenStopped([&] { ++ended; });
  EXPECT_EQ(ended, 2) << "it is told at once";
  admission.Stop();
  EXPECT_EQ(ended, 2);
}

}  // namespace
}  // namespace baton::router
