// SPDX-License-Identifier: Apache-2.0
// An epoll set on which an I/O thread sleeps. Not thread-safe.
#pragma once

#include "absl/status/status.h"
#include "common/file_descriptor.h"
#include "common/steady_time.h"

namespace baton {

class Poller {
 public:
  Poller();

  // Watches `fd` until it is closed. kLevel wakes the thread as long as `fd` is readable. kEdge wakes the thread once
  // each time `fd` becomes readable or writable.
  enum class Trigger { kLevel, kEdge };
  absl::Status Add(int fd, Trigger trigger);

  // Waits until a descriptor is ready or `deadline` has passed.
  void WaitUntil(SteadyTime deadline);

 private:
  const FileDescriptor fd_;
};

}  // namespace baton
