// SPDX-License-Identifier: Apache-2.0
// A TaskQueue holds tasks that any thread posts and one I/O thread runs, at once or after a delay.
//
// Due tasks run in the order of their times, tasks of equal times in the order of posting. Post is thread-safe; RunDue
// and NextDue belong to the I/O thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "absl/time/time.h"
#include "common/mutex.h"
#include "common/steady_time.h"

namespace baton {

class TaskQueue {
 public:
  using Task = std::function<void()>;

  // Post calls `wake` on the posting thread when the new task is the next due task. `wake` must be thread-safe.
  explicit TaskQueue(std::function<void()> wake) : wake_(std::move(wake)) {}
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  // Drops `task` if the queue is closed.
  void Post(absl::Duration delay, Task task);

  // Runs the tasks that are due now, without tasks that they post. Returns whether a task ran.
  bool RunDue();

  // Returns the time of the next task; SteadyTime::InfiniteFuture() without tasks.
  SteadyTime NextDue() const;

  // Destroys all tasks unrun, also those posted later.
  void Close();

 private:
  using Key = std::pair<SteadyTime, uint64_t>;

  const std::function<void()> wake_;
  mutable Mutex mutex_;
  std::map<Key, Task> tasks_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace baton
