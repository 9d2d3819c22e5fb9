// SPDX-License-Identifier: Apache-2.0
#include "cli/console/interrupt.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <utility>

namespace baton {

void Interrupt::Trigger() {
  MutexLock lock(mutex_);
  triggered_ = true;
  event_.Signal();
  if (cancel_) cancel_();
}

bool Interrupt::triggered() const {
  MutexLock lock(mutex_);
  return triggered_;
}

bool Interrupt::WaitForInput(int input_fd) const {
  while (!triggered()) {
    pollfd fds[] = {{input_fd, POLLIN, 0}, {fd(), POLLIN, 0}};
    if (poll(fds, 2, -1) > 0 && fds[1].revents == 0) return true;
  }
  return false;
}

void Interrupt::Reset() {
  MutexLock lock(mutex_);
  triggered_ = false;
  event_.Drain();
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

SignalWatcher::SignalWatcher(Interrupt& interrupt) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  thread_ = std::thread([this, &interrupt, signals] {
    const FileDescriptor arrived(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    while (true) {
      pollfd fds[] = {{arrived.get(), POLLIN, 0}, {stop_.fd(), POLLIN, 0}};
      if (poll(fds, 2, -1) < 0) continue;
      if (fds[1].revents != 0) break;
      signalfd_siginfo info;
      if (read(arrived.get(), &info, sizeof(info)) == sizeof(info)) interrupt.Trigger();
    }
  });
}

SignalWatcher::~SignalWatcher() {
  stop_.Signal();
  thread_.join();
}

}  // namespace baton
