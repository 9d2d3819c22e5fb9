// SPDX-License-Identifier: Apache-2.0
// A worker refuses memory that it cannot have, and leaves no memory behind when killed while it takes memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/steady_time.h"
#include "process.h"
#include "tests/files.h"
#include "tests/status_matchers.h"
#include "tests/temp_folder.h"

namespace baton::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(60);

// A memory cgroup with a limit, v1 or v2, below this process's cgroup. The destructor removes the cgroup.
class MemoryCgroup {
 public:
  explicit MemoryCgroup(uint64_t limit_bytes) {
    for (const bool v2 : {true, false}) {
      const fs::path parent = Parent(v2);
      if (parent.empty()) continue;
      folder_ = parent / ("baton-test-" + std::to_string(getpid()));
      std::error_code error;
      if (!fs::create_directory(folder_, error)) continue;
      std::ofstream limit(folder_ / (v2 ? "memory.max" : "memory.limit_in_bytes"));
      if (limit << limit_bytes << std::flush) return;
      fs::remove(folder_, error);
    }
    folder_.clear();
  }
  MemoryCgroup(const MemoryCgroup&) = delete;
  MemoryCgroup& operator=(const MemoryCgroup&) = delete;
  ~MemoryCgroup() {
    std::error_code ignored;
    if (exists()) fs::remove(folder_, ignored);
  }

  bool exists() const { return !folder_.empty(); }
  std::string procs() const { return (folder_ / "cgroup.procs").string(); }

 private:
  static fs::path Parent(bool v2) {
    std::ifstream groups("/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
      const bool is_it = v2 ? line.rfind("0::", 0) == 0 : line.find(":memory:") != std::string::npos;
      if (!is_it) continue;
      const fs::path mount = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
      const fs::path own = mount.string() + line.substr(line.rfind(':') + 1);
      const fs::path parent = fs::exists(own) ? own : mount;
      return fs::exists(parent / (v2 ? "cgroup.controllers" : "memory.limit_in_bytes")) ? parent : fs::path();
    }
    return {};
  }

  fs::path folder_;
};

class MemoryTest : public ::testing::Test {
 protected:
  // Returns a decode worker with `flags`, in the cgroup unless `cgroup_procs` is empty.
  Process Worker(const std::vector<std::string>& flags, const std::string& cgroup_procs = "") const {
    std::string command = cgroup_procs.empty() ? "" : "echo $$ > '" + cgroup_procs + "' && ";
    command += "exec '" + (BinaryFolder() / "baton-decode").string() + "' --model='" +
               (SourceFolder() / "models/demo-chat").string() +
               "' --listen=127.0.0.1:0 --handoff-listen=127.0.0.1:0 --metrics-listen= --threads=1";
    for (const std::string& flag : flags) command += " " + flag;
    return Process({.name = "decode",
                    .binary = "/bin/sh",
                    .arguments = {"-c", command},
                    .environment = {"BATON_SECRET=memory-test-secret"},
                    .log_file = (folder_.path() / "log").string()});
  }

  static void ExpectRefused(Process& worker) {
    ASSERT_OK(worker.Start());
    ASSERT_OK_AND_ASSIGN(const int status, worker.Wait(kPatience));
    ASSERT_TRUE(WIFEXITED(status)) << worker.Log();
    EXPECT_EQ(WEXITSTATUS(status), 1);
  }

  static std::set<std::string> SharedMemoryFiles() {
    std::set<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator("/dev/shm")) names.insert(entry.path().filename());
    return names;
  }

  TempFolder folder_;
};

// The worker does not touch the pool (--prefault=off): the machine survives if the worker does not refuse.
TEST_F(MemoryTest, MoreThanTheMachineHasIsRefused) {
  Process worker = Worker({"--kv-memory=1TiB", "--prefault=off"});
  ExpectRefused(worker);
  EXPECT_THAT(worker.Log(), AllOf(HasSubstr("baton-decode: kv-memory: 1099511627776 bytes (1024.00 GiB)"),
                                  HasSubstr("available on this machine: "), HasSubstr("cgroup: ")));
}

TEST_F(MemoryTest, MorePagesThanTheMachineHoldsAreRefused) {
  Process worker = Worker({"--pages=100000000", "--prefault=off"});
  ExpectRefused(worker);
  EXPECT_THAT(worker.Log(), HasSubstr("baton-decode: pages: "));
}

TEST_F(MemoryTest, MoreThanTheCgroupAllowsIsRefused) {
  const MemoryCgroup cgroup(uint64_t{512} << 20);
  if (!cgroup.exists()) GTEST_SKIP() << "no memory cgroup can be made here (not root, or a read-only /sys)";
  Process worker = Worker({"--kv-memory=2GiB"}, cgroup.procs());
  ExpectRefused(worker);
  EXPECT_THAT(worker.Log(), AllOf(HasSubstr("kv-memory: 2147483648 bytes (2.00 GiB)"), HasSubstr("(0.")));
}

TEST_F(MemoryTest, WhatFitsTheCgroupIsServed) {
  const MemoryCgroup cgroup(uint64_t{512} << 20);
  if (!cgroup.exists()) GTEST_SKIP() << "no memory cgroup can be made here (not root, or a read-only /sys)";
  Process worker = Worker({"--kv-memory=64MiB"}, cgroup.procs());
  ASSERT_OK(worker.Start());
  const SteadyTime end = SteadyTime::Now() + kPatience;
  while (worker.running() && worker.Log().find("worker.serving") == std::string::npos && SteadyTime::Now() < end) {
    absl::SleepFor(absl::Milliseconds(20));
  }
  EXPECT_THAT(worker.Log(), HasSubstr("worker.serving"));
  worker.Kill();
}

TEST_F(MemoryTest, AWorkerKilledAtAnyMomentOfItsStartLeavesNoFile) {
  const std::set<std::string> before = SharedMemoryFiles();
  const SteadyTime end = SteadyTime::Now() + kPatience;
  bool served = false;  // then the test has killed the worker at every moment of the start
  for (absl::Duration delay; !served && SteadyTime::Now() < end; delay += absl::Milliseconds(20)) {
    Process worker = Worker({"--kv-memory=64MiB"});
    ASSERT_OK(worker.Start());
    absl::SleepFor(delay);
    worker.Kill();
    served = worker.Log().find("worker.serving") != std::string::npos;
    for (const std::string& name : SharedMemoryFiles()) {
      EXPECT_TRUE(before.count(name) != 0 || name.rfind("ucx_shm", 0) != 0) << name << " after " << delay;
    }
  }
  EXPECT_TRUE(served);
}

}  // namespace
}  // namespace baton::testing
