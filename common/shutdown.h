// SPDX-License-Identifier: Apache-2.0
// Turns SIGTERM and SIGINT into an event that main waits for.
#pragma once

#include "absl/time/time.h"
#include "common/file_descriptor.h"

namespace baton {

// Blocks both signals for the process: construct the object in main before any thread starts. At most one object per
// process, used by one thread. The signals stay blocked after destruction, so that a late signal does not interrupt an
// orderly exit.
class ShutdownSignal {
 public:
  ShutdownSignal();

  // Returns true once a signal has arrived (later calls at once), false after `timeout`.
  bool Wait(absl::Duration timeout);
  // Returns true if another signal came after the first: the user wants to exit now. Does not wait.
  bool Again();

 private:
  bool TakeSignal();

  FileDescriptor fd_;
  bool seen_ = false;
};

}  // namespace baton
