// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/ucx/poller.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <system_error>

namespace baton {

Poller::Poller() : fd_(epoll_create1(EPOLL_CLOEXEC)) {}

absl::Status Poller::Add(int fd, Trigger trigger) {
  epoll_event event{.events = EPOLLIN, .data = {}};
  if (trigger == Trigger::kEdge) event.events = EPOLLIN | EPOLLOUT | EPOLLET;
  if (epoll_ctl(fd_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return absl::InternalError("cannot add a descriptor to epoll: " + std::system_category().message(errno));
  }
  return absl::OkStatus();
}

void Poller::WaitUntil(SteadyTime deadline) {
  const absl::Duration left = std::clamp(deadline - SteadyTime::Now(), absl::ZeroDuration(), absl::Hours(1));
  const int64_t timeout_ms = absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1)));
  std::array<epoll_event, 16> events{};
  static_cast<void>(epoll_wait(fd_.get(), events.data(), events.size(), static_cast<int>(timeout_ms)));
}

}  // namespace baton
