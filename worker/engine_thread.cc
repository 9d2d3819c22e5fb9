// SPDX-License-Identifier: Apache-2.0
#include "worker/engine_thread.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

namespace baton {

void EngineThread::Start(std::function<SteadyTime()> tick) {
  thread_ = std::thread([this, tick = std::move(tick)] {
    pthread_setname_np(pthread_self(), "engine");
    Loop(tick);
  });
}

void EngineThread::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  posted_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

void EngineThread::Post(std::function<void()> command) {
  {
    MutexLock lock(mutex_);
    if (stopping_) return;
    commands_.push_back(std::move(command));
  }
  posted_.NotifyOne();
}

void EngineThread::Loop(const std::function<SteadyTime()>& tick) {
  SteadyTime wake = SteadyTime::InfiniteFuture();
  for (;;) {
    std::deque<std::function<void()>> commands;
    {
      MutexLock lock(mutex_);
      for (SteadyTime now = SteadyTime::Now(); now < wake && commands_.empty() && !stopping_; now = SteadyTime::Now()) {
        posted_.WaitUntil(mutex_, std::min(wake, now + absl::Seconds(60)));
      }
      if (stopping_ && commands_.empty()) return;
      commands.swap(commands_);
    }
    for (std::function<void()>& command : commands) command();
    wake = tick();
  }
}

}  // namespace baton
