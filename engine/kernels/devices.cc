// SPDX-License-Identifier: Apache-2.0
// The registry of devices: one line for each kind of backend.
#include <algorithm>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/kernels/backend.h"

namespace baton {
namespace {

struct Device {
  std::string_view name;
  absl::StatusOr<std::unique_ptr<Backend>> (*create)(const BackendOptions& options);
};
constexpr Device kDevices[] = {{"cpu", CreateCpuBackend}};

}  // namespace

std::vector<std::string> KnownDevices() {
  std::vector<std::string> names;
  for (const Device& device : kDevices) names.emplace_back(device.name);
  return names;
}

absl::StatusOr<std::unique_ptr<Backend>> CreateBackend(const BackendOptions& options) {
  const Device* const device = std::find_if(std::begin(kDevices), std::end(kDevices),
                                            [&](const Device& known) { return known.name == options.device; });
  if (device != std::end(kDevices)) return device->create(options);
  return absl::InvalidArgumentError(
      absl::StrCat("device ", std::string(options.device), ": expected one of ", absl::StrJoin(KnownDevices(), ", ")));
}

}  // namespace baton
