// SPDX-License-Identifier: Apache-2.0
// A Strand runs tasks one at a time, in the order of posting, on the posting threads. An object whose every event goes
// through its strand needs no lock, and no lock is held while a task runs.
//
// Thread-safe. A task may post: the new task runs after the current task.
#pragma once

#include <deque>
#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "common/mutex.h"

namespace baton::router {

class Strand {
 public:
  using Task = std::function<void()>;

  // Runs `task` before Post returns. If another thread runs a task, that thread runs `task` later.
  void Post(Task task) {
    {
      MutexLock lock(mutex_);
      tasks_.push_back(std::move(task));
      if (std::exchange(running_, true)) return;
    }
    while (RunNext()) {
    }
  }

 private:
  bool RunNext() {
    Task task;
    {
      MutexLock lock(mutex_);
      if (tasks_.empty()) {
        running_ = false;
        return false;
      }
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
    return true;
  }

  Mutex mutex_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace baton::router
