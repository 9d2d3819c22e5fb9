// SPDX-License-Identifier: Apache-2.0
// The thread that computes. Everything behind the tick belongs to this thread; other threads use Post.
//
// Each turn runs the posted commands, then one tick. Then the thread sleeps until the next command, or until the time
// that the tick returned.
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "common/mutex.h"
#include "common/steady_time.h"

namespace baton {

class EngineThread {
 public:
  EngineThread() = default;
  ~EngineThread() { Stop(); }

  // Calls `tick` on the new thread until Stop returns. `tick` does one step's worth of work. `tick` returns when the
  // next tick is due: in the past if work is left, in the infinite future if only a command brings work.
  void Start(std::function<SteadyTime()> tick);
  // Runs the commands posted before, then ends the thread. Later commands are dropped. Idempotent.
  void Stop();

  // Runs `command` on the thread. Never blocks, and never refuses while the thread runs: the services bound the number
  // of open calls, and thereby of commands. Thread-safe.
  void Post(std::function<void()> command);

 private:
  void Loop(const std::function<SteadyTime()>& tick);

  Mutex mutex_;
  CondVar posted_;
  std::deque<std::function<void()>> commands_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace baton
