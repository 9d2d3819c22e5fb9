#include "kvtransfer/timing/task_queue.h"

#include <algorithm>
#include <vector>

namespace baton {
namespace {

// A longer delay could overflow the clock.
constexpr absl::Duration kMaxDelay = absl::Hours(24 * 365);

}  // namespace

void TaskQueue::Post(absl::Duration delay, Task task) {
  const absl::Duration bounded = std::clamp(delay, absl::ZeroDuration(), kMaxDelay);
  bool is_next = false;
  {
    MutexLock lock(mutex_);
    if (closed_) return;
    const auto it = tasks_.emplace(Key{SteadyClock::now() + bounded, next_sequence_++}, std::move(task)).first;
    is_next = it == tasks_.begin();
  }
  if (is_next) wake_();
}

bool TaskQueue::RunDue() {
  std::vector<Task> due;
  {
    MutexLock lock(mutex_);
    const auto end = tasks_.lower_bound(Key{SteadyClock::now(), next_sequence_});
    for (auto it = tasks_.begin(); it != end; ++it) due.push_back(std::move(it->second));
    tasks_.erase(tasks_.begin(), end);
  }
  for (Task& task : due) task();
  return !due.empty();
}

SteadyTime TaskQueue::NextDue() const {
  MutexLock lock(mutex_);
  return tasks_.empty() ? SteadyTime::max() : tasks_.begin()->first.first;
}

void TaskQueue::Close() {
  std::map<Key, Task> dropped;
  MutexLock lock(mutex_);
  closed_ = true;
  dropped.swap(tasks_);
}

}  // namespace baton
