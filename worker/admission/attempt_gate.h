// SPDX-License-Identifier: Apache-2.0
// Counts the open attempts of a worker, and refuses an attempt beyond the limit or on a closed route. Every queue of
// the worker is thereby bounded, and a worker whose role changes gets no attempt that its role does not take.
//
// Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "common/steady_time.h"
#include "worker/route.h"

namespace baton {

class AttemptGate {
 public:
  explicit AttemptGate(int limit) : limit_(limit) {}

  // Returns a ticket for one attempt, held until everything of the attempt is released. RESOURCE_EXHAUSTED names the
  // limit; UNAVAILABLE says that the worker drains, or why the route is closed. The gate outlives its tickets.
  absl::StatusOr<std::shared_ptr<void>> Enter(Route route);
  // Returns a ticket for a call that ends an attempt: up to twice the limit, and even after Close.
  absl::StatusOr<std::shared_ptr<void>> EnterToLeave();
  // Sets the open routes; all are open at first. `why_closed` is for the callers on the other routes.
  void SetRoutes(Routes open, std::string why_closed);
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
  Routes routes_ ABSL_GUARDED_BY(mutex_) = Routes::All();
  std::string why_route_closed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton
