// An eventfd: wakes a thread that polls it.
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

  int fd() const { return fd_; }  // -1 if the system had none to give

  // Thread-safe. Neither can fail in a way that matters: a full counter is readable, an empty one has nothing to drain.
  void Signal() { static_cast<void>(!eventfd_write(fd_, 1)); }
  void Drain() {
    eventfd_t count = 0;
    static_cast<void>(!eventfd_read(fd_, &count));
  }

 private:
  const int fd_;
};

}  // namespace baton
