#include "worker/engine_thread.h"

#include <pthread.h>

#include <utility>

#include "common/steady_time.h"

namespace baton {

void EngineThread::Start(Ticker* ticker) {
  thread_ = std::thread([this, ticker] {
    pthread_setname_np(pthread_self(), "engine");
    Loop(ticker);
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

void EngineThread::Loop(Ticker* ticker) {
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
    busy = ticker->Tick();
  }
}

}  // namespace baton
