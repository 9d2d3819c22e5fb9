// SPDX-License-Identifier: Apache-2.0
// Random schedules over the endpoints, many handoffs at once: every handoff ends, every sequence that arrives is whole,
// and when all is over nothing is held.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/status_matchers.h"
#include "two_workers.h"

namespace baton::handoff_test {
namespace {

constexpr int kThreads = 4;
constexpr int kHandoffsPerThread = 300;

class EndpointsStressTest : public ::testing::Test {
 protected:
  EndpointsStressTest()
      : decode_({.pages = 14, .capacity = {.max_sequences = 4, .max_waiting_reservations = 3, .max_bypass = 2}}) {}

  // One request's life, cut short or not at a point of the dice's choice. Returns false if a wait was in vain.
  bool Run(PrefillSide& prefill, std::mt19937& dice, uint64_t request) {
    const AttemptKey key = Key(request);
    const int tokens = 1 + int(dice() % 16);  // one to four pages
    const int fate = int(dice() % 8);
    EXPECT_OK(decode_.receiver().OpenAttempt(key, absl::Now()));
    prefill.Reserve(key, decode_.target(), tokens);
    if (fate == 0) return Cancel(prefill, key, dice);
    if (fate == 1) decode_.Close(key);
    const std::string answer = prefill.diary().WaitForAny({absl::StrCat("granted ", request), Failed(key)});
    if (answer.empty()) return false;
    if (answer[0] == 'g') {
      if (fate == 2) return Cancel(prefill, key, dice);
      prefill.Put(key, tokens);
      if (fate == 3) return Cancel(prefill, key, dice);
      if (fate == 4) decode_.Close(key);
      if (fate == 5) {
        prefill.Abort(key, /*finished=*/true);
      } else {
        prefill.sender().Commit(key, {1});
      }
      if (fate == 6) return Cancel(prefill, key, dice);
    }
    const bool ended =
        !prefill.diary().WaitForAny({absl::StrCat("done ", request), Released(key), Failed(key)}).empty();
    decode_.Close(key);
    return ended;
  }

  // The router's cancel, at both workers in either order.
  bool Cancel(PrefillSide& prefill, const AttemptKey& key, std::mt19937& dice) {
    const bool decode_first = dice() % 2 == 0;
    if (decode_first) decode_.Close(key);
    prefill.Abort(key);
    if (!decode_first) decode_.Close(key);
    return !prefill.diary().WaitFor(Released(key)).empty();
  }

  static std::string Failed(const AttemptKey& key) { return absl::StrCat("failed ", key.request.low); }
  static std::string Released(const AttemptKey& key) { return absl::StrCat("released ", key.request.low); }

  void ExpectNothingHeld() {
    EXPECT_TRUE(Eventually([&] { return decode_.IsEmpty(); }));
    EXPECT_EQ(decode_.pool().counts().quarantined, 0u);
    EXPECT_EQ(decode_.diary().Count("corrupt"), 0);
    EXPECT_GT(decode_.diary().Count("received"), 0);
  }

  DecodeSide decode_;
};

TEST_F(EndpointsStressTest, ManyHandoffsOfOneWriter) {
  PrefillSide prefill({.pages = 64});
  std::atomic<int> stuck = 0;
  std::atomic<bool> over = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 dice(uint32_t(t) + 1);
      for (int i = 0; i < kHandoffsPerThread; ++i) {
        if (!Run(prefill, dice, uint64_t(t) * kHandoffsPerThread + i + 1)) ++stuck;
      }
    });
  }
  std::thread holder([&] {  // the network is slow now and then
    while (!over) {
      prefill.transport().HoldPuts();
      absl::SleepFor(absl::Milliseconds(3));
      prefill.transport().ReleasePuts();
      absl::SleepFor(absl::Milliseconds(3));
    }
  });
  for (std::thread& thread : threads) thread.join();
  over = true;
  holder.join();
  EXPECT_EQ(stuck, 0);
  ExpectNothingHeld();
  EXPECT_TRUE(Eventually([&] { return prefill.IsEmpty(); }));
}

TEST_F(EndpointsStressTest, WritersThatDieAndComeBack) {
  std::atomic<int> stuck = 0;
  std::atomic<uint64_t> epoch = 1;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 dice(uint32_t(t) + 1);
      std::unique_ptr<PrefillSide> prefill;
      for (int i = 0; i < kHandoffsPerThread; ++i) {
        const uint64_t request = uint64_t(t) * kHandoffsPerThread + i + 1;
        if (prefill == nullptr) {
          const HandoffIdentity identity{
              .worker_id = absl::StrCat("prefill-", t), .epoch = ++epoch, .numerics_id = "numerics"};
          prefill = std::make_unique<PrefillSide>(PrefillSide::Settings{.identity = identity});
        }
        if (dice() % 4 != 0) {
          if (!Run(*prefill, dice, request)) ++stuck;
          continue;
        }
        // Dies with a handoff at whatever point it has come to.
        EXPECT_OK(decode_.receiver().OpenAttempt(Key(request), absl::Now()));
        prefill->Reserve(Key(request), decode_.target(), 8);
        if (dice() % 2 == 0) {
          prefill->diary().WaitForAny({absl::StrCat("granted ", request), Failed(Key(request))});
          prefill->Put(Key(request), 8);
          if (dice() % 2 == 0) prefill->sender().Commit(Key(request), {1});
        }
        prefill.reset();
        decode_.Close(Key(request));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(stuck, 0);
  ExpectNothingHeld();
}

}  // namespace
}  // namespace baton::handoff_test
