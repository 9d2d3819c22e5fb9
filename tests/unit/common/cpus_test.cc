// SPDX-License-Identifier: Apache-2.0
#include "common/cpus.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace baton {
namespace {

TEST(UsableCpus, CountsThoseThatTheThreadMayRunOn) {
  std::thread([] {
    // Given a thread that is bound to the CPU it runs on
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(UsableCpus(), 1);
  }).join();
  EXPECT_GE(UsableCpus(), 1);
}

}  // namespace
}  // namespace baton
