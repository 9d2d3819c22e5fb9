// SPDX-License-Identifier: Apache-2.0
#include "common/memory_headroom.h"

#include <algorithm>
#include <fstream>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/cgroup.h"

namespace baton {
namespace {

constexpr uint64_t kNoLimit = uint64_t{1} << 60;  // cgroup v1 says nearly 2^63 for none

// The names of one version's files in a cgroup's folder.
struct Controller {
  const char* limit;
  const char* usage;
  const char* inactive_cache;  // fields of memory.stat, children included
  const char* active_cache;
};
constexpr Controller kV1 = {"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file",
                            "total_active_file"};
constexpr Controller kV2 = {"/memory.max", "/memory.current", "inactive_file", "active_file"};

std::optional<uint64_t> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  uint64_t value = 0;
  return file >> value ? std::optional(value) : std::nullopt;  // also for "max"
}

// The number behind `key` in a file of "key value" lines.
std::optional<uint64_t> ReadField(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  std::string name;
  uint64_t value = 0;
  while (file >> name >> value) {
    if (name == key) return value;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

std::optional<uint64_t> LeftIn(const std::string& folder, const Controller& controller) {
  const std::optional<uint64_t> limit = ReadNumber(folder + controller.limit);
  const std::optional<uint64_t> usage = ReadNumber(folder + controller.usage);
  if (!limit.has_value() || !usage.has_value() || *limit >= kNoLimit) return std::nullopt;
  const std::string stat = folder + "/memory.stat";
  const uint64_t cache =
      ReadField(stat, controller.inactive_cache).value_or(0) + ReadField(stat, controller.active_cache).value_or(0);
  const uint64_t used = *usage - std::min(*usage, cache);
  return *limit - std::min(*limit, used);
}

void Lower(std::optional<uint64_t>& bound, std::optional<uint64_t> other) {
  if (other.has_value()) bound = std::min(bound.value_or(*other), *other);
}

// Returns the least that is left in this process's group and those above.
std::optional<uint64_t> CgroupBytes(const std::string& root) {
  std::optional<uint64_t> left;
  for (const CgroupFolder& folder : CgroupFolders("memory", root)) {
    Lower(left, LeftIn(folder.path, folder.is_v2 ? kV2 : kV1));
  }
  return left;
}

std::string InGib(uint64_t bytes) {
  return absl::StrFormat("%d bytes (%.2f GiB)", bytes, static_cast<double>(bytes) / (1 << 30));
}

}  // namespace

absl::Status MemoryHeadroom::Check(uint64_t bytes) const {
  const uint64_t machine = machine_bytes.value_or(bytes);
  const uint64_t cgroup = cgroup_bytes.value_or(bytes);
  if (bytes <= std::min(machine, cgroup)) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(InGib(bytes),
                                                   " of memory are asked for; available on this machine: ",
                                                   machine_bytes.has_value() ? InGib(*machine_bytes) : "unknown",
                                                   "; left under the limit of this process's cgroup: ",
                                                   cgroup_bytes.has_value() ? InGib(*cgroup_bytes) : "no limit"));
}

MemoryHeadroom ReadMemoryHeadroom(const std::string& root) {
  std::optional<uint64_t> available = ReadField(root + "/proc/meminfo", "MemAvailable:");
  if (available.has_value()) *available <<= 10;  // from KiB
  return {.machine_bytes = available, .cgroup_bytes = CgroupBytes(root)};
}

}  // namespace baton
