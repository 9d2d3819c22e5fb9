// SPDX-License-Identifier: Apache-2.0
#include "worker/role_keeper.h"

#include <utility>

#include "common/log.h"

namespace baton {

RoleKeeper::RoleKeeper(v1::WorkerRole role, RoleMachine::Rules rules, AttemptGate* gate)
    : gate_(*gate), machine_(SteadyTime::Now(), role, std::move(rules)) {
  MutexLock lock(mutex_);
  OpenRoutes();
}

void RoleKeeper::OpenRoutes() { gate_.SetRoutes(machine_.open_routes(), machine_.WhyClosed()); }

absl::Status RoleKeeper::Begin(const RoleChange& change) {
  MutexLock lock(mutex_);
  const v1::WorkerRole from = machine_.role();
  absl::Status begun = machine_.Begin(SteadyTime::Now(), change);
  Log(begun.ok() ? LogLevel::kInfo : LogLevel::kWarning,
      begun.ok() ? "worker.role_change" : "worker.role_change_refused",
      {{"from", RoleName(from)},
       {"to", RoleName(change.to)},
       {"force", change.force},
       {"reason", change.reason},
       {"detail", std::string(begun.message())}});
  if (!begun.ok()) return begun;
  OpenRoutes();
  if (machine_.switching()) {
    hooks_.start_draining();
  } else {
    hooks_.take_role(machine_.role());
  }
  return absl::OkStatus();
}

bool RoleKeeper::Advance() {
  MutexLock lock(mutex_);
  if (!machine_.switching()) return false;
  switch (machine_.Advance(SteadyTime::Now(), gate_.WaitEmpty(SteadyTime::InfinitePast()))) {
    case RoleMachine::Step::kNone: return false;
    case RoleMachine::Step::kEndAttempts: hooks_.end_attempts(); return false;
    case RoleMachine::Step::kGivenUp:
      hooks_.stop_draining();
      Log(LogLevel::kWarning, "worker.role_kept",
          {{"role", RoleName(machine_.role())}, {"detail", machine_.Facts(SteadyTime::Now()).last_failure()}});
      break;
    case RoleMachine::Step::kChanged:
      hooks_.take_role(machine_.role());
      hooks_.stop_draining();
      Log(LogLevel::kInfo, "worker.role_changed", {{"role", RoleName(machine_.role())}});
      break;
  }
  OpenRoutes();  // last: the first attempt finds everything ready
  return true;
}

void RoleKeeper::Stop() {
  MutexLock lock(mutex_);
  machine_.Stop();
}

void RoleKeeper::Describe(v1::WorkerStatus& status) const {
  MutexLock lock(mutex_);
  status.set_role(machine_.role());
  *status.mutable_role_facts() = machine_.Facts(SteadyTime::Now());
  status.set_state(machine_.switching() ? v1::WORKER_STATE_SWITCHING : v1::WORKER_STATE_SERVING);
}

v1::WorkerRole RoleKeeper::role() const {
  MutexLock lock(mutex_);
  return machine_.role();
}

}  // namespace baton
