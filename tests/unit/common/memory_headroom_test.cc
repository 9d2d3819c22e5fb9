// SPDX-License-Identifier: Apache-2.0
#include "common/memory_headroom.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"
#include "tests/temp_folder.h"

namespace baton {
namespace {

using ::testing::Eq;
using ::testing::Optional;

// A made-up /proc and /sys.
class MemoryHeadroomTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = folder_.path().string() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void WriteV2(const std::string& group, const std::string& max, uint64_t current, uint64_t cache) {
    Write("/sys/fs/cgroup" + group + "/memory.max", max + "\n");
    Write("/sys/fs/cgroup" + group + "/memory.current", std::to_string(current) + "\n");
    Write("/sys/fs/cgroup" + group + "/memory.stat",
          "anon 5\ninactive_file " + std::to_string(cache) + "\nactive_file 0\n");
  }
  MemoryHeadroom Read() const { return ReadMemoryHeadroom(folder_.path().string()); }

  testing::TempFolder folder_;
};

TEST_F(MemoryHeadroomTest, TheMachineHasWhatIsAvailableNotWhatIsFree) {
  Write("/proc/meminfo", "MemTotal:       100 kB\nMemFree:          1 kB\nMemAvailable:    50 kB\n");
  EXPECT_THAT(Read().machine_bytes, Optional(50 << 10));
  EXPECT_THAT(Read().cgroup_bytes, Eq(std::nullopt));
}

TEST_F(MemoryHeadroomTest, NothingKnownBoundsNothing) {
  EXPECT_THAT(Read().machine_bytes, Eq(std::nullopt));
  EXPECT_OK(Read().Check(~uint64_t{0}));
}

TEST_F(MemoryHeadroomTest, FileCacheOfTheGroupCountsAsLeft) {
  Write("/proc/self/cgroup", "0::/\n");
  WriteV2("", "1000", 700, 300);
  EXPECT_THAT(Read().cgroup_bytes, Optional(600));
}

TEST_F(MemoryHeadroomTest, TheTightestLimitOnTheWayToTheRootCounts) {
  Write("/proc/self/cgroup", "0::/pod/container\n");
  WriteV2("", "max", 9000, 0);
  WriteV2("/pod", "1000", 600, 0);
  WriteV2("/pod/container", "2000", 600, 0);
  EXPECT_THAT(Read().cgroup_bytes, Optional(400));
}

TEST_F(MemoryHeadroomTest, AContainerThatSeesItsGroupAsTheRootIsBoundByIt) {
  Write("/proc/self/cgroup", "3:cpu:/\n0::/not/visible/here\n");
  WriteV2("", "5000", 1000, 0);
  EXPECT_THAT(Read().cgroup_bytes, Optional(4000));
}

TEST_F(MemoryHeadroomTest, VersionOneIsRead) {
  Write("/proc/self/cgroup", "5:devices:/\n4:cpuset,memory:/jobs\n0::/\n");
  const std::string group = "/sys/fs/cgroup/memory/jobs";
  Write(group + "/memory.limit_in_bytes", "1000\n");
  Write(group + "/memory.usage_in_bytes", "900\n");
  Write(group + "/memory.stat", "inactive_file 1\ntotal_inactive_file 150\ntotal_active_file 50\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "900\n");
  EXPECT_THAT(Read().cgroup_bytes, Optional(300));
}

TEST_F(MemoryHeadroomTest, AGroupBeyondItsLimitHasNothingLeft) {
  Write("/proc/self/cgroup", "0::/\n");
  WriteV2("", "1000", 1200, 0);
  EXPECT_THAT(Read().cgroup_bytes, Optional(0));
}

TEST_F(MemoryHeadroomTest, MoreThanIsLeftIsRefusedWithAllThreeNumbers) {
  Write("/proc/meminfo", "MemAvailable:    4194304 kB\n");
  Write("/proc/self/cgroup", "0::/\n");
  WriteV2("", "2147483648", 0, 0);
  EXPECT_OK(Read().Check(2147483648));
  const absl::Status refused = Read().Check(2147483649);
  EXPECT_TRUE(testing::Fails(refused, absl::StatusCode::kResourceExhausted, "2147483649 bytes (2.00 GiB)"));
  EXPECT_TRUE(testing::Fails(refused, absl::StatusCode::kResourceExhausted, "4294967296 bytes (4.00 GiB)"));
  EXPECT_TRUE(testing::Fails(refused, absl::StatusCode::kResourceExhausted, "2147483648 bytes (2.00 GiB)"));
}

TEST(MemoryHeadroom, ThisMachineSaysWhatItHas) {
  EXPECT_THAT(ReadMemoryHeadroom().machine_bytes, Optional(::testing::Gt(1 << 20)));
}

}  // namespace
}  // namespace baton
