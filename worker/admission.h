// Counts the open attempts of a worker and refuses more than it may hold, so that everything behind it is bounded.
//
// Thread-safe.
#pragma once

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/mutex.h"

namespace baton {

class Admission {
 public:
  explicit Admission(int limit) : limit_(limit) {}

  // A ticket for one attempt, held until everything of it is released. RESOURCE_EXHAUSTED names the limit, UNAVAILABLE
  // says that the worker drains. The admission must outlive its tickets.
  absl::StatusOr<std::shared_ptr<void>> Enter();
  // A ticket beyond the limit, up to twice of it, and after Close: for a call that ends an attempt which has one.
  absl::StatusOr<std::shared_ptr<void>> EnterToLeave();
  // From now on nobody enters.
  void Close();
  // False if attempts are still open at `deadline`.
  bool WaitEmpty(absl::Time deadline);

 private:
  absl::StatusOr<std::shared_ptr<void>> EnterBelow(int limit) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Leave();

  const int limit_;
  Mutex mutex_;
  CondVar empty_;
  int open_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace baton
