// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/timing/task_queue.h"

#include <algorithm>
#include <vector>

namespace baton {

void TaskQueue::Post(absl::Duration delay, Task task) {
  bool is_next = false;
  {
    MutexLock lock(mutex_);
    if (closed_) return;
    const auto it =
        tasks_
            .emplace(Key{SteadyTime::Now() + std::max(delay, absl::ZeroDuration()), next_sequence_++}, std::move(task))
            .first;
    is_next = it == tasks_.begin();
  }
  if (is_next) wake_();
}

bool TaskQueue::RunDue() {
  std::vector<Task> due;
  {
    MutexLock lock(mutex_);
    const auto end = tasks_.lower_bound(Key{SteadyTime::Now(), next_sequence_});
    for (auto it = tasks_.begin(); it != end; ++it) due.push_back(std::move(it->second));
    tasks_.erase(tasks_.begin(), end);
  }
  for (Task& task : due) task();
  return !due.empty();
}

SteadyTime TaskQueue::NextDue() const {
  MutexLock lock(mutex_);
  return tasks_.empty() ? SteadyTime::InfiniteFuture() : tasks_.begin()->first.first;
}

void TaskQueue::Close() {
  std::map<Key, Task> dropped;
  MutexLock lock(mutex_);
  closed_ = true;
  dropped.swap(tasks_);
}

}  // namespace baton
