// Work for an I/O thread: tasks posted by any thread, to run at once or after a delay.
//
// Tasks that are due run in the order of their times, those of equal times in the order of posting. Post is
// thread-safe; RunDue and NextDue belong to the I/O thread.
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

  // `wake` is called, by the posting thread, when a task becomes the next one due. It must be thread-safe.
  explicit TaskQueue(std::function<void()> wake) : wake_(std::move(wake)) {}
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  // Dropped once the queue is closed.
  void Post(absl::Duration delay, Task task);

  // Runs what is due, and nothing that these tasks post. True if anything ran.
  bool RunDue();

  // When the next task is due; InfiniteFuture if there is none.
  SteadyTime NextDue() const;

  // Destroys all tasks unrun, and any posted later.
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
