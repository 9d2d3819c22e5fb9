// SPDX-License-Identifier: Apache-2.0
#include "common/metrics_process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "common/file_descriptor.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using prometheus::MetricType;
using ::testing::Ge;
using ::testing::Le;

const prometheus::MetricFamily* Find(const std::vector<prometheus::MetricFamily>& families, const std::string& name) {
  for (const auto& family : families) {
    if (family.name == name) return &family;
  }
  return nullptr;
}

// The value of a family without labels; -1 when there is none of this name.
double Value(const std::string& name) {
  const auto families = ProcessMetrics().Collect();
  const auto* const family = Find(families, name);
  if (family == nullptr || family->metric.size() != 1 || !family->metric[0].label.empty()) return -1;
  const auto& metric = family->metric[0];
  return family->type == MetricType::Counter ? metric.counter.value : metric.gauge.value;
}

TEST(ProcessMetricsTest, CpuTimeGrowsWithWork) {
  const double before = Value("process_cpu_seconds_total");
  ASSERT_GE(before, 0);
  volatile double sum = 0;
  while (Value("process_cpu_seconds_total") < before + 0.02) sum = sum + 1;
  EXPECT_LE(Value("process_cpu_seconds_total"), before + 60);
}

TEST(ProcessMetricsTest, CpuTimeIsACounter) {
  const auto families = ProcessMetrics().Collect();
  EXPECT_EQ(Find(families, "process_cpu_seconds_total")->type, MetricType::Counter);
}

TEST(ProcessMetricsTest, MemoryGrowsWithWhatIsAllocatedAndTouched) {
  constexpr size_t kBytes = 64 << 20;
  const double virtual_before = Value("process_virtual_memory_bytes");
  const double resident_before = Value("process_resident_memory_bytes");
  ASSERT_GT(resident_before, 0);
  ASSERT_GE(virtual_before, resident_before);
  const std::vector<char> touched(kBytes, 'x');
  EXPECT_GE(Value("process_virtual_memory_bytes"), virtual_before + kBytes / 2.0) << touched[0];
  EXPECT_GE(Value("process_resident_memory_bytes"), resident_before + kBytes / 2.0) << touched[0];
}

TEST(ProcessMetricsTest, EveryOpenFileCounts) {
  const double before = Value("process_open_fds");
  ASSERT_GE(before, 3);
  {
    const FileDescriptor one(open("/dev/null", O_RDONLY | O_CLOEXEC));
    const FileDescriptor two(open("/dev/null", O_RDONLY | O_CLOEXEC));
    EXPECT_EQ(Value("process_open_fds"), before + 2);
  }
  EXPECT_EQ(Value("process_open_fds"), before);
}

TEST(ProcessMetricsTest, TheLimitOfOpenFilesIsTheSoftOne) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(Value("process_max_fds"), static_cast<double>(limit.rlim_cur));
}

TEST(ProcessMetricsTest, TheProcessStartedBeforeNow) {
  const double start = Value("process_start_time_seconds");
  const double now = static_cast<double>(absl::ToUnixSeconds(absl::Now()));
  EXPECT_THAT(start, Le(now + 2));          // the kernel rounds
  EXPECT_THAT(start, Ge(now - 24 * 3600));  // whatever runs this test
  EXPECT_EQ(Value("process_start_time_seconds"), start);
}

TEST(ProcessMetricsTest, SaysWhichBuildRuns) {
  const auto families = ProcessMetrics().Collect();
  const auto* const family = Find(families, "baton_build_info");
  ASSERT_NE(family, nullptr);
  ASSERT_EQ(family->metric.size(), 1u);
  EXPECT_EQ(family->metric[0].gauge.value, 1);
  std::map<std::string, std::string> labels;
  for (const auto& label : family->metric[0].label) labels[label.name] = label.value;
  EXPECT_THAT(labels["version"], ::testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_THAT(labels["revision"], ::testing::MatchesRegex("unknown|[0-9a-f]{12,}"));
  EXPECT_THAT(labels["compiler"], ::testing::MatchesRegex("(Clang|GNU) [0-9.]+"));
  EXPECT_EQ(labels.size(), 3u);
}

}  // namespace
}  // namespace baton
