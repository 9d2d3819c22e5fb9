// SPDX-License-Identifier: Apache-2.0
#include "common/shutdown.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "common/steady_time.h"

namespace baton {

ShutdownSignal::ShutdownSignal() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  fd_ = FileDescriptor(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  // If signalfd failed, the signals keep their default action.
  if (fd_.valid()) pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

bool ShutdownSignal::TakeSignal() {
  signalfd_siginfo info;
  return fd_.valid() && read(fd_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info));
}

bool ShutdownSignal::Wait(absl::Duration timeout) {
  const SteadyTime deadline = SteadyTime::Now() + timeout;
  while (!seen_) {
    if (TakeSignal()) {
      seen_ = true;
      break;
    }
    const absl::Duration left = deadline - SteadyTime::Now();
    if (left <= absl::ZeroDuration()) return false;
    pollfd wanted = {.fd = fd_.get(), .events = POLLIN, .revents = 0};
    const int64_t milliseconds = absl::ToInt64Milliseconds(std::min(left, absl::Minutes(1)));
    poll(&wanted, 1, static_cast<int>(milliseconds) + 1);
  }
  return true;
}

bool ShutdownSignal::Again() { return seen_ && TakeSignal(); }

}  // namespace baton
