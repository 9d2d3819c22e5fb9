// SPDX-License-Identifier: Apache-2.0
#include "common/cpus.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "tests/temp_folder.h"

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

// A machine's files, with this process in the cgroup /a/b.
class CpuQuotaTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = folder_.path() / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  int Cpus() { return UsableCpus(folder_.path().string()); }

  testing::TempFolder folder_;
  const int all_ = UsableCpus("/nowhere");
};

TEST_F(CpuQuotaTest, ALowQuotaOfAnyGroupCounts) {
  Write("proc/self/cgroup", "0::/a/b\n");
  Write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(Cpus(), all_) << "no quota";
  Write("sys/fs/cgroup/a/cpu.max", "50000 100000\n");
  EXPECT_EQ(Cpus(), 1) << "half a CPU, rounded up";
  Write("sys/fs/cgroup/a/cpu.max", "100000000 100000\n");
  EXPECT_EQ(Cpus(), all_) << "a quota of 1000 CPUs does not bring more";
}

TEST_F(CpuQuotaTest, AFractionIsRoundedUp) {
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/cpu.max", "110000 100000\n");
  EXPECT_EQ(Cpus(), std::min(2, all_));
}

TEST_F(CpuQuotaTest, VersionOneHasTwoFiles) {
  Write("proc/self/cgroup", "5:memory:/a\n4:cpu,cpuacct:/a\n");
  Write("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  Write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(Cpus(), all_);
  Write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "100000\n");
  EXPECT_EQ(Cpus(), 1);
}

}  // namespace
}  // namespace baton
