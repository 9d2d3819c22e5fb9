// SPDX-License-Identifier: Apache-2.0
// Counts the open attempts of a worker and refuses an attempt beyond the limit, so that every queue of the worker is
// bounded.
//
// Thread-safe.
#pragma once

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "common/steady_time.h"

namespace baton {

class AttemptGate {
 public:
  explicit AttemptGate(int limit) : limit_(limit) {}

  // Returns a ticket for one attempt, held until everything of the attempt is released. RESOURCE_EXHAUSTED names the
  // limit, UNAVAILABLE says that the worker drains. The gate outlives its tickets.
  absl::StatusOr<std::shared_ptr<void>> Enter();
  // Returns a ticket for a call that ends an attempt: up to twice the limit, and even after Close.
  absl::StatusOr<std::shared_ptr<void>> EnterToLeave();
  // Lets no attempt enter from now on.
  void Close();
  // Returns false if attempts are still open at `deadline`.
  bool WaitEmpty(SteadyTime deadline);

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
