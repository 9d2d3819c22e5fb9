#include "common/bounded_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "absl/time/clock.h"

namespace baton {
namespace {

TEST(BoundedQueueTest, GivesEverythingInOrder) {
  BoundedQueue<int> queue(3);
  for (const int i : {1, 2, 3}) EXPECT_TRUE(queue.TryPush(int{i}));
  EXPECT_EQ(queue.TakeAll(absl::InfiniteFuture()), (std::deque<int>{1, 2, 3}));
}

TEST(BoundedQueueTest, LeavesAnItemUntouchedThatItRefuses) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  EXPECT_TRUE(queue.TryPush(std::make_unique<int>(1)));
  auto item = std::make_unique<int>(2);
  EXPECT_FALSE(queue.TryPush(std::move(item)));
  ASSERT_NE(item, nullptr);
  queue.TakeAll(absl::InfiniteFuture());
  EXPECT_TRUE(queue.TryPush(std::move(item)));
}

TEST(BoundedQueueTest, StopsWaitingAtTheDeadline) {
  BoundedQueue<int> queue(1);
  EXPECT_TRUE(queue.TakeAll(absl::InfinitePast()).empty());
  EXPECT_TRUE(queue.TakeAll(absl::Now() + absl::Milliseconds(5)).empty());
}

TEST(BoundedQueueTest, ClosingWakesTheConsumerAndKeepsWhatIsInIt) {
  BoundedQueue<int> queue(2);
  std::thread consumer([&] { EXPECT_TRUE(queue.TakeAll(absl::InfiniteFuture()).empty()); });
  queue.Close();
  consumer.join();
  EXPECT_FALSE(queue.TryPush(1));

  BoundedQueue<int> filled(2);
  EXPECT_TRUE(filled.TryPush(1));
  filled.Close();
  EXPECT_EQ(filled.TakeAll(absl::InfiniteFuture()).size(), 1u);
}

TEST(BoundedQueueTest, KeepsEachProducersOrder) {
  constexpr int kProducers = 4;
  constexpr int kItems = 1000;
  BoundedQueue<std::pair<int, int>> queue(16);
  std::vector<std::thread> producers;
  producers.reserve(kProducers);
  for (int producer = 0; producer < kProducers; ++producer) {
    producers.emplace_back([&queue, producer] {
      for (int i = 0; i < kItems; ++i) {
        while (!queue.TryPush({producer, i})) std::this_thread::yield();
      }
    });
  }
  std::vector<int> next(kProducers, 0);
  for (int taken = 0; taken < kProducers * kItems;) {
    for (const auto& [producer, i] : queue.TakeAll(absl::InfiniteFuture())) {
      EXPECT_EQ(i, next[producer]++);
      ++taken;
    }
  }
  for (std::thread& producer : producers) producer.join();
}

}  // namespace
}  // namespace baton
