// SPDX-License-Identifier: Apache-2.0
// Owns an eventfd, which wakes a thread that polls the descriptor.
#pragma once

#include <sys/eventfd.h>

#include "common/file_descriptor.h"

namespace baton {

class EventFd {
 public:
  EventFd() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  int fd() const { return fd_.get(); }  // -1 if the system call failed

  // Thread-safe. Failures are harmless: a full counter is readable, and an empty counter needs no draining.
  void Signal() { static_cast<void>(!eventfd_write(fd(), 1)); }
  void Drain() {
    eventfd_t count = 0;
    static_cast<void>(!eventfd_read(fd(), &count));
  }

 private:
  const FileDescriptor fd_;
};

}  // namespace baton
