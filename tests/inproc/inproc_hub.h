// SPDX-License-Identifier: Apache-2.0
// The names of the InprocNodes that listen in this process. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/mutex.h"

namespace baton {

class InprocNode;

class InprocHub {
 public:
  static InprocHub& Get();

  // Registers the name in `address`, "inproc:<name>", or a free name if the address has no name. Returns the full
  // address. ALREADY_EXISTS: a living node has the name.
  absl::StatusOr<std::string> Register(const std::string& address, const std::shared_ptr<InprocNode>& node);
  void Unregister(const std::string& address);

  // Returns null if no node listens at `address`.
  std::shared_ptr<InprocNode> Find(const std::string& address);

 private:
  Mutex mutex_;
  std::map<std::string, std::weak_ptr<InprocNode>> nodes_ ABSL_GUARDED_BY(mutex_);
  int next_free_name_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace baton
