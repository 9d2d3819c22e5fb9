// Where an I/O thread sleeps: an epoll set. Not thread-safe.
#pragma once

#include "absl/status/status.h"
#include "kvtransfer/timing/steady_time.h"

namespace baton {

class Poller {
 public:
  Poller();
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // Until it is closed. Level: awake as long as it is readable. Edge: awake once each time it becomes readable or
  // writable.
  enum class Trigger { kLevel, kEdge };
  absl::Status Add(int fd, Trigger trigger);

  // Returns when a descriptor is ready or at `deadline`, whichever is first.
  void WaitUntil(SteadyTime deadline);

 private:
  const int fd_;
};

}  // namespace baton
