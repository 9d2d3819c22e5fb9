// SIGTERM and SIGINT as something that a main function waits for.
#pragma once

#include "absl/time/time.h"

namespace baton {

// Blocks both signals for the process: construct it in main before any thread starts. One per process, used by
// one thread. The signals stay blocked when it is destroyed: a late one must not cut an orderly exit short.
class ShutdownSignal {
 public:
  ShutdownSignal();
  ~ShutdownSignal();
  ShutdownSignal(const ShutdownSignal&) = delete;
  ShutdownSignal& operator=(const ShutdownSignal&) = delete;

  // True once a signal arrived, at once from then on; false after `timeout`.
  bool Wait(absl::Duration timeout);
  // After a first signal: true when another one came, which means "now". Does not wait.
  bool Again();

 private:
  bool TakeSignal();

  int fd_ = -1;
  bool seen_ = false;
};

}  // namespace baton
