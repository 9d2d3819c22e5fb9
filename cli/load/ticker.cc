// SPDX-License-Identifier: Apache-2.0
#include "cli/load/ticker.h"

#include <utility>

namespace baton {

Ticker::Ticker(absl::Duration interval, std::function<void()> function)
    : interval_(interval), function_(std::move(function)), thread_([this] { Run(); }) {}

Ticker::~Ticker() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
  }
  wake_.NotifyAll();
  thread_.join();
}

void Ticker::Run() {
  SteadyTime next = SteadyTime::Now();
  while (true) {
    function_();
    next = std::max(next + interval_, SteadyTime::Now());
    MutexLock lock(mutex_);
    while (!stopped_ && SteadyTime::Now() < next) wake_.WaitUntil(mutex_, next);
    if (stopped_) return;
  }
}

}  // namespace baton
