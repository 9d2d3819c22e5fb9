// SPDX-License-Identifier: Apache-2.0
#include "common/shutdown.h"

#include <gtest/gtest.h>
#include <sys/types.h>
#include <unistd.h>

#include <csignal>
#include <thread>

namespace baton {
namespace {

TEST(ShutdownSignalTest, TimesOutWithoutASignal) {
  ShutdownSignal signal;
  EXPECT_FALSE(signal.Wait(absl::Milliseconds(5)));
  EXPECT_FALSE(signal.Again());
}

TEST(ShutdownSignalTest, SeesTerminationAndThenASecondSignal) {
  ShutdownSignal signal;
  kill(getpid(), SIGTERM);
  EXPECT_TRUE(signal.Wait(absl::Seconds(10)));
  EXPECT_TRUE(signal.Wait(absl::ZeroDuration()));
  EXPECT_FALSE(signal.Again());
  kill(getpid(), SIGINT);
  EXPECT_TRUE(signal.Again());
  EXPECT_FALSE(signal.Again());
}

TEST(ShutdownSignalTest, WakesAWaitThatHasNoEnd) {
  ShutdownSignal signal;
  std::thread sender([] { kill(getpid(), SIGINT); });
  EXPECT_TRUE(signal.Wait(absl::InfiniteDuration()));
  sender.join();
}

}  // namespace
}  // namespace baton
