// A bounded multi-producer queue whose consumer takes everything at once. Thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/mutex.h"

namespace baton {

template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}

  // False when full or closed: `item` is untouched then.
  bool TryPush(T&& item) {
    {
      MutexLock lock(mutex_);
      if (closed_ || items_.size() >= capacity_) return false;
      items_.push_back(std::move(item));
    }
    not_empty_.NotifyOne();
    return true;
  }

  // Everything there is, in order; waits until `deadline` for a first item. Empty: none came, or the queue is closed.
  std::deque<T> TakeAll(absl::Time deadline) {
    MutexLock lock(mutex_);
    while (items_.empty() && !closed_) {
      if (!not_empty_.WaitUntil(mutex_, deadline)) break;
    }
    return std::exchange(items_, {});
  }

  // Wakes the consumer; later pushes fail.
  void Close() {
    {
      MutexLock lock(mutex_);
      closed_ = true;
    }
    not_empty_.NotifyAll();
  }

 private:
  const size_t capacity_;
  Mutex mutex_;
  CondVar not_empty_;
  std::deque<T> items_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace baton
