// SPDX-License-Identifier: Apache-2.0
// Carries out the changes of a worker's role that the RoleMachine decides. The keeper closes and opens routes at the
// gate. Hooks of the owner drain, end attempts and take the new role.
//
// Thread-safe, except SetHooks, which comes before all other calls. Hooks run one at a time, under the keeper's lock:
// hooks must not call the keeper and must not block. The gate outlives the keeper.
#pragma once

#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "baton/v1/worker.pb.h"
#include "common/mutex.h"
#include "common/steady_time.h"
#include "worker/admission/attempt_gate.h"
#include "worker/role_machine.h"

namespace baton {

class RoleKeeper {
 public:
  struct Hooks {
    std::function<void()> start_draining;           // what waits or runs is to leave, reservations are refused
    std::function<void()> stop_draining;            // the worker keeps its role
    std::function<void()> end_attempts;             // the time of a forced change is over
    std::function<void(v1::WorkerRole)> take_role;  // no attempt is left that `role` would not take
  };

  RoleKeeper(v1::WorkerRole role, RoleMachine::Rules rules, AttemptGate* gate);
  void SetHooks(Hooks hooks) { hooks_ = std::move(hooks); }

  // Begins a change: see RoleMachine::Begin.
  absl::Status Begin(const RoleChange& change);
  // Continues a change in progress. Call every now and then. Returns whether the state changed.
  bool Advance();
  // The process ends: the role does not change any more.
  void Stop();
  // Sets the role, the state of a worker that serves, and the facts.
  void Describe(v1::WorkerStatus& status) const;
  v1::WorkerRole role() const;

 private:
  void OpenRoutes() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  AttemptGate& gate_;
  Hooks hooks_;
  mutable Mutex mutex_;
  RoleMachine machine_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton
