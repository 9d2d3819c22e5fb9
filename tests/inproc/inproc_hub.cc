// SPDX-License-Identifier: Apache-2.0
#include "tests/inproc/inproc_hub.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/inproc/inproc_node.h"

namespace baton {
namespace {

constexpr char kScheme[] = "inproc:";

}  // namespace

InprocHub& InprocHub::Get() {
  static auto* const hub = new InprocHub;  // never destroyed: transports may outlive static destruction
  return *hub;
}

absl::StatusOr<std::string> InprocHub::Register(const std::string& address, const std::shared_ptr<InprocNode>& node) {
  if (!absl::StartsWith(address, kScheme)) {
    return absl::InvalidArgumentError(absl::StrCat("listen address \"", address, "\": expected \"inproc:<name>\""));
  }
  MutexLock lock(mutex_);
  std::string full = address;
  while (full == kScheme || (address == kScheme && nodes_.count(full) != 0)) {
    full = absl::StrCat(kScheme, "#", next_free_name_++);
  }
  std::weak_ptr<InprocNode>& slot = nodes_[full];
  if (slot.lock() != nullptr) return absl::AlreadyExistsError(absl::StrCat("another node listens at ", full));
  slot = node;
  return full;
}

void InprocHub::Unregister(const std::string& address) {
  MutexLock lock(mutex_);
  nodes_.erase(address);
}

std::shared_ptr<InprocNode> InprocHub::Find(const std::string& address) {
  MutexLock lock(mutex_);
  const auto it = nodes_.find(address);
  return it == nodes_.end() ? nullptr : it->second.lock();
}

}  // namespace baton
