// SPDX-License-Identifier: Apache-2.0
#include "cli/console/interrupt.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace baton {
namespace {

void Raise(int event_fd) {
  const uint64_t one = 1;
  // A full eventfd refuses the write, and is readable all the same.
  [[maybe_unused]] const ssize_t written = write(event_fd, &one, sizeof(one));
}

}  // namespace

Interrupt::Interrupt() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Interrupt::~Interrupt() { close(fd_); }

void Interrupt::Trigger() {
  MutexLock lock(mutex_);
  triggered_ = true;
  Raise(fd_);
  if (cancel_) cancel_();
}

bool Interrupt::triggered() const {
  MutexLock lock(mutex_);
  return triggered_;
}

void Interrupt::Reset() {
  MutexLock lock(mutex_);
  triggered_ = false;
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t drained = read(fd_, &count, sizeof(count));
}

Interrupt::Scope::Scope(Interrupt& interrupt, std::function<void()> cancel) : interrupt_(interrupt) {
  MutexLock lock(interrupt_.mutex_);
  interrupt_.cancel_ = std::move(cancel);
  if (interrupt_.triggered_) interrupt_.cancel_();
}

Interrupt::Scope::~Scope() {
  MutexLock lock(interrupt_.mutex_);
  interrupt_.cancel_ = nullptr;
}

SignalWatcher::SignalWatcher(Interrupt& interrupt) : stop_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  thread_ = std::thread([&interrupt, signals, stop_fd = stop_fd_] {
    const int signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    while (true) {
      pollfd fds[] = {{signal_fd, POLLIN, 0}, {stop_fd, POLLIN, 0}};
      if (poll(fds, 2, -1) < 0) continue;
      if (fds[1].revents != 0) break;
      signalfd_siginfo info;
      if (read(signal_fd, &info, sizeof(info)) == sizeof(info)) interrupt.Trigger();
    }
    close(signal_fd);
  });
}

SignalWatcher::~SignalWatcher() {
  Raise(stop_fd_);
  thread_.join();
  close(stop_fd_);
}

}  // namespace baton
