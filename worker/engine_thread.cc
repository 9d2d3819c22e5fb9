// SPDX-License-Identifier: Apache-2.0
#include "worker/engine_thread.h"

#include <pthread.h>

#include <utility>

#include "common/steady_time.h"

namespace baton {

void EngineThread::Start(std::function<bool()> tick) {
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

void EngineThread::Loop(const std::function<bool()>& tick) {
  bool busy = false;
  for (;;) {
    std::deque<std::function<void()>> commands;
    {
      MutexLock lock(mutex_);
      while (!busy && commands_.empty() && !stopping_) posted_.WaitUntil(mutex_, SteadyTime::Now() + absl::Seconds(60));
      if (stopping_ && commands_.empty()) return;
      commands.swap(commands_);
    }
    for (std::function<void()>& command : commands) command();
    busy = tick();
  }
}

}  // namespace baton
