// SPDX-License-Identifier: Apache-2.0
// The thread that computes. Everything behind the tick belongs to this thread; other threads use Post.
//
// Each turn runs the posted commands, then one tick. After a tick without work, the thread sleeps until the next
// command.
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "common/mutex.h"

namespace baton {

class EngineThread {
 public:
  EngineThread() = default;
  ~EngineThread() { Stop(); }

  // Calls `tick` on the new thread until Stop returns. `tick` does one step's worth of work and returns false if
  // nothing is left to do until another command comes.
  void Start(std::function<bool()> tick);
  // Runs the commands posted before, then ends the thread. Later commands are dropped. Idempotent.
  void Stop();

  // Runs `command` on the thread. Never blocks, and never refuses while the thread runs: the services bound the number
  // of open calls, and thereby of commands. Thread-safe.
  void Post(std::function<void()> command);

 private:
  void Loop(const std::function<bool()>& tick);

  Mutex mutex_;
  CondVar posted_;
  std::deque<std::function<void()>> commands_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace baton
