// SPDX-License-Identifier: Apache-2.0
#include "common/cpus.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>

#include "common/cgroup.h"

namespace baton {
namespace {

// Returns the CPUs that the group's quota amounts to; none: no quota.
std::optional<double> QuotaOf(const CgroupFolder& folder) {
  double quota = 0;
  double period = 0;
  if (folder.is_v2) {
    std::ifstream(folder.path + "/cpu.max") >> quota >> period;  // "max 100000" does not parse
  } else {
    std::ifstream(folder.path + "/cpu.cfs_quota_us") >> quota;  // -1: no quota
    std::ifstream(folder.path + "/cpu.cfs_period_us") >> period;
  }
  return quota > 0 && period > 0 ? std::optional(quota / period) : std::nullopt;
}

}  // namespace

int UsableCpus(const std::string& root) {
  cpu_set_t set;
  CPU_ZERO(&set);
  int cpus = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
  for (const CgroupFolder& folder : CgroupFolders("cpu", root)) {
    if (const std::optional<double> quota = QuotaOf(folder)) cpus = std::min(cpus, static_cast<int>(std::ceil(*quota)));
  }
  return std::max(1, cpus);
}

}  // namespace baton
