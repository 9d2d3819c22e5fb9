// SPDX-License-Identifier: Apache-2.0
// Owns an eventfd, which wakes a thread that polls the descriptor.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace baton {

class EventFd {
 public:
  EventFd() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~EventFd() {
    if (fd_ >= 0) close(fd_);
  }
  EventFd(const EventFd&) = delete;
  EventFd& operator=(const EventFd&) = delete;

  int fd() const { return fd_; }  // -1 if the system call failed

  // Thread-safe. Failures are harmless: a full counter is readable, and an empty counter needs no draining.
  void Signal() { static_cast<void>(!eventfd_write(fd_, 1)); }
  void Drain() {
    eventfd_t count = 0;
    static_cast<void>(!eventfd_read(fd_, &count));
  }

 private:
  const int fd_;
};

}  // namespace baton
