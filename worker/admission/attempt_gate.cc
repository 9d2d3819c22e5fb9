// SPDX-License-Identifier: Apache-2.0
#include "worker/admission/attempt_gate.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace baton {

absl::StatusOr<std::shared_ptr<void>> AttemptGate::Enter(Route route) {
  MutexLock lock(mutex_);
  if (closed_) return absl::UnavailableError("the worker drains and takes no new work");
  if (!routes_.Contains(route)) return absl::UnavailableError(why_route_closed_);
  return EnterBelow(limit_);
}

absl::StatusOr<std::shared_ptr<void>> AttemptGate::EnterToLeave() {
  MutexLock lock(mutex_);
  return EnterBelow(2 * limit_);
}

absl::StatusOr<std::shared_ptr<void>> AttemptGate::EnterBelow(int limit) {
  if (open_ >= limit) {
    return absl::ResourceExhaustedError(absl::StrCat("the worker holds ", open_, " requests, its limit"));
  }
  ++open_;
  return std::shared_ptr<void>(this, [](void* self) { static_cast<AttemptGate*>(self)->Leave(); });
}

void AttemptGate::Leave() {
  // Notifies under the lock: a waiting thread may destroy this object once the lock is released.
  MutexLock lock(mutex_);
  if (--open_ == 0) empty_.NotifyAll();
}

void AttemptGate::SetRoutes(Routes open, std::string why_closed) {
  MutexLock lock(mutex_);
  routes_ = open;
  why_route_closed_ = std::move(why_closed);
}

void AttemptGate::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
}

bool AttemptGate::WaitEmpty(SteadyTime deadline) {
  MutexLock lock(mutex_);
  while (open_ > 0) {
    if (!empty_.WaitUntil(mutex_, deadline) && open_ > 0) return false;
  }
  return true;
}

}  // namespace baton
