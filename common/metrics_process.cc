// SPDX-License-Identifier: Apache-2.0
#include "common/metrics_process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

namespace baton {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily Family(const char* name, const char* help, MetricType type, double value) {
  ClientMetric metric;
  (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  return {name, help, type, {std::move(metric)}};
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Stat {
  double start_ticks = 0;  // since the machine's start
  double virtual_bytes = 0;
  double resident_pages = 0;
};

// Fields 22 to 24 of /proc/self/stat. The second is the program's name, in parentheses, with whatever is in it.
std::optional<Stat> ReadStat() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;
  Stat stat;
  if (!(fields >> stat.start_ticks >> stat.virtual_bytes >> stat.resident_pages)) return std::nullopt;
  return stat;
}

// The line "btime N" of /proc/stat: when the machine started, in Unix time.
std::optional<double> MachineStart() {
  std::ifstream file("/proc/stat");
  std::string word;
  double seconds = 0;
  while (file >> word) {
    if (word == "btime" && file >> seconds) return seconds;
  }
  return std::nullopt;
}

std::optional<double> OpenFiles() {
  int count = 0;
  std::error_code error;
  std::filesystem::directory_iterator file("/proc/self/fd", error);
  for (; !error && file != std::filesystem::directory_iterator(); file.increment(error)) ++count;
  if (error) return std::nullopt;
  return count - 1;  // one of them is the folder's own
}

}  // namespace

std::vector<MetricFamily> ProcessMetrics::Collect() const {
  std::vector<MetricFamily> families;
  const auto gauge = [&families](const char* name, const char* help, double value) {
    families.push_back(Family(name, help, MetricType::Gauge, value));
  };
  families.push_back(BuildInfo());
  families.push_back(Family("process_cpu_seconds_total", "CPU time of this process, of user and system together",
                            MetricType::Counter, CpuSeconds()));
  if (const std::optional<Stat> stat = ReadStat()) {
    gauge("process_resident_memory_bytes", "Memory of this process that is in RAM",
          stat->resident_pages * static_cast<double>(sysconf(_SC_PAGESIZE)));
    gauge("process_virtual_memory_bytes", "Address space of this process", stat->virtual_bytes);
    if (const std::optional<double> machine_start = MachineStart()) {
      gauge("process_start_time_seconds", "When this process started, in Unix time",
            *machine_start + stat->start_ticks / static_cast<double>(sysconf(_SC_CLK_TCK)));
    }
  }
  if (const std::optional<double> open = OpenFiles()) {
    gauge("process_open_fds", "File descriptors that this process has open", *open);
  }
  if (rlimit limit{}; getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    gauge("process_max_fds", "File descriptors that this process may have open", static_cast<double>(limit.rlim_cur));
  }
  return families;
}

}  // namespace baton
