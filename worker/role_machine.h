// SPDX-License-Identifier: Apache-2.0
// The role of a worker, and its changes. A pure machine: calls and the time go in, routes and steps come out.
//
//   role            routes
//   prefill         hand over
//   decode          receive
//   both            receive, local
//
// A change between decode and both takes effect at once: what runs is work of both roles. Any other change closes all
// routes first. Once no attempt is left, the worker takes the new role. After `timeout` the worker keeps its role
// instead, because a change of the role alone ends no attempt. A forced change ends the attempts that are left, and is
// given up if attempts still run kReleaseTimeout later.
//
// Between two changes lies the time `cooldown`, however many callers ask. A change that was given up counts, too. A
// forced change waits for no cooldown.
//
// Not thread-safe: RoleKeeper guards a RoleMachine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "baton/v1/worker.pb.h"
#include "common/steady_time.h"
#include "worker/route.h"

namespace baton {

// Returns "prefill", "decode" or "both". Returns the number of any other role.
std::string RoleName(v1::WorkerRole role);
Routes RoutesOf(v1::WorkerRole role);

struct RoleChange {
  v1::WorkerRole from = v1::WORKER_ROLE_UNSPECIFIED;  // unspecified: whichever role the worker has
  v1::WorkerRole to = v1::WORKER_ROLE_UNSPECIFIED;
  bool force = false;
  std::string reason = {};  // for the log
};

class RoleMachine {
 public:
  struct Rules {
    std::vector<v1::WorkerRole> possible;  // with the first role
    std::string why_no_other;              // why other roles are impossible; for people
    absl::Duration cooldown = absl::Seconds(30);
    absl::Duration timeout = absl::Seconds(30);
  };
  enum class Step {
    kNone,
    kChanged,      // the worker has taken its new role
    kGivenUp,      // the worker keeps its role
    kEndAttempts,  // the time of a forced change is over: end the attempts that are left
  };

  // How long attempts that a forced change has ended may take to leave.
  static constexpr absl::Duration kReleaseTimeout = absl::Seconds(5);

  RoleMachine(SteadyTime now, v1::WorkerRole role, Rules rules);

  // Begins a change. After OK, `switching` tells whether the change is still in progress. FAILED_PRECONDITION says why
  // the worker cannot change now; INVALID_ARGUMENT names an unknown role.
  absl::Status Begin(SteadyTime now, const RoleChange& change);
  // Call while `switching`. `is_empty`: no attempt is left.
  Step Advance(SteadyTime now, bool is_empty);
  // The process ends: the role does not change any more.
  void Stop();

  v1::WorkerRole role() const { return role_; }
  bool switching() const { return to_ != v1::WORKER_ROLE_UNSPECIFIED; }
  Routes open_routes() const { return switching() ? Routes::None() : RoutesOf(role_); }
  // Tells the caller of an attempt on a closed route why the route is closed.
  std::string WhyClosed() const;
  v1::RoleFacts Facts(SteadyTime now) const;

 private:
  absl::Status Check(SteadyTime now, const RoleChange& change) const;
  void Take(SteadyTime now, v1::WorkerRole role);
  Step GiveUp(SteadyTime now, const std::string& why);

  const Rules rules_;
  v1::WorkerRole role_;
  v1::WorkerRole to_ = v1::WORKER_ROLE_UNSPECIFIED;
  SteadyTime held_since_;
  SteadyTime began_;                                     // of the change in progress
  SteadyTime last_change_ = SteadyTime::InfinitePast();  // its end
  bool force_ = false;
  std::optional<SteadyTime> asked_to_end_;  // of a forced change
  bool stopped_ = false;
  uint32_t changes_ = 0;
  std::string last_failure_;  // of the latest change; empty while a change is in progress
};

}  // namespace baton
