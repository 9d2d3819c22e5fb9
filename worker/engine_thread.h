// The thread that computes. It owns everything behind an Engine: other threads reach it only through Post.
//
// Each turn runs the commands that were posted, then one Tick of the engine; when the tick had nothing to do, it sleeps
// until the next command.
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "common/mutex.h"

namespace baton {

class Engine {
 public:
  virtual ~Engine() = default;
  // One step's worth of work. False when there is nothing to do until another command comes.
  virtual bool Tick() = 0;
};

class EngineThread {
 public:
  EngineThread() = default;
  ~EngineThread() { Stop(); }

  // `engine` is used on the new thread from now until Stop returns.
  void Start(Engine* engine);
  // Runs what was posted before, then ends the thread. Later posts are dropped. Idempotent.
  void Stop();

  // Runs `command` on the thread. Never blocks, never refuses while running: the number of commands is bounded by the
  // number of open calls, which the services bound. Thread-safe.
  void Post(std::function<void()> command);

 private:
  void Loop(Engine* engine);

  Mutex mutex_;
  CondVar posted_;
  std::deque<std::function<void()>> commands_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace baton
