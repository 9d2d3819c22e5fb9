// SPDX-License-Identifier: Apache-2.0
#include "worker/role_machine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace baton {
namespace {

bool IsRole(v1::WorkerRole role) {
  return role == v1::WORKER_ROLE_PREFILL || role == v1::WORKER_ROLE_DECODE || role == v1::WORKER_ROLE_BOTH;
}

// Whole seconds, rounded up: nobody comes back too early.
std::string Seconds(absl::Duration duration) {
  return absl::StrCat(absl::ToInt64Seconds(absl::Ceil(duration, absl::Seconds(1))), " s");
}

}  // namespace

std::string RoleName(v1::WorkerRole role) {
  switch (role) {
    case v1::WORKER_ROLE_PREFILL: return "prefill";
    case v1::WORKER_ROLE_DECODE: return "decode";
    case v1::WORKER_ROLE_BOTH: return "both";
    default: return absl::StrCat(static_cast<int>(role));
  }
}

Routes RoutesOf(v1::WorkerRole role) {
  switch (role) {
    case v1::WORKER_ROLE_PREFILL: return Routes::None().With(Route::kHandOver);
    case v1::WORKER_ROLE_BOTH: return Routes::None().With(Route::kReceive).With(Route::kLocal);
    default: return Routes::None().With(Route::kReceive);
  }
}

RoleMachine::RoleMachine(SteadyTime now, v1::WorkerRole role, Rules rules)
    : rules_(std::move(rules)), role_(role), held_since_(now), began_(now) {}

absl::Status RoleMachine::Check(SteadyTime now, const RoleChange& change) const {
  if (!IsRole(change.to)) {
    return absl::InvalidArgumentError(
        absl::StrCat("to is ", static_cast<int>(change.to), ", expected the number of prefill, decode or both"));
  }
  if (stopped_) return absl::FailedPreconditionError("the worker drains, because its process ends");
  if (switching()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the worker already switches from ", RoleName(role_), " to ", RoleName(to_)));
  }
  if (change.to == role_) return absl::FailedPreconditionError(absl::StrCat("the worker has role ", RoleName(role_)));
  if (change.from != v1::WORKER_ROLE_UNSPECIFIED && change.from != role_) {
    return absl::FailedPreconditionError(
        absl::StrCat("the worker has role ", RoleName(role_), ", the caller expected ", RoleName(change.from)));
  }
  if (std::ranges::find(rules_.possible, change.to) == rules_.possible.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the worker cannot take role ", RoleName(change.to), ": ", rules_.why_no_other));
  }
  if (const absl::Duration since = now - last_change_; !change.force && since < rules_.cooldown) {
    return absl::FailedPreconditionError(absl::StrCat("the latest change of the worker's role was ",
                                                      absl::ToInt64Seconds(since), " s ago, and the next can begin in ",
                                                      Seconds(rules_.cooldown - since), " (role-cooldown)"));
  }
  return absl::OkStatus();
}

absl::Status RoleMachine::Begin(SteadyTime now, const RoleChange& change) {
  if (absl::Status possible = Check(now, change); !possible.ok()) return possible;
  if (role_ != v1::WORKER_ROLE_PREFILL && change.to != v1::WORKER_ROLE_PREFILL) {
    Take(now, change.to);
    return absl::OkStatus();
  }
  to_ = change.to;
  began_ = now;
  force_ = change.force;
  asked_to_end_.reset();
  last_failure_.clear();
  return absl::OkStatus();
}

RoleMachine::Step RoleMachine::Advance(SteadyTime now, bool is_empty) {
  if (!switching() || stopped_) return Step::kNone;
  if (is_empty) {
    Take(now, to_);
    return Step::kChanged;
  }
  if (asked_to_end_) {
    if (now - *asked_to_end_ < kReleaseTimeout) return Step::kNone;
    return GiveUp(now, absl::StrCat(Seconds(kReleaseTimeout), " after the forced change from ", RoleName(role_), " to ",
                                    RoleName(to_), " had ended the attempts"));
  }
  if (now - began_ < rules_.timeout) return Step::kNone;
  if (force_) {
    asked_to_end_ = now;
    return Step::kEndAttempts;
  }
  return GiveUp(now, absl::StrCat(Seconds(rules_.timeout), " after the change from ", RoleName(role_), " to ",
                                  RoleName(to_), " began (drain-timeout)"));
}

RoleMachine::Step RoleMachine::GiveUp(SteadyTime now, const std::string& why) {
  last_failure_ = absl::StrCat("attempts still ran ", why);
  to_ = v1::WORKER_ROLE_UNSPECIFIED;
  last_change_ = now;
  return Step::kGivenUp;
}

void RoleMachine::Take(SteadyTime now, v1::WorkerRole role) {
  role_ = role;
  to_ = v1::WORKER_ROLE_UNSPECIFIED;
  held_since_ = last_change_ = now;
  ++changes_;
  last_failure_.clear();
}

void RoleMachine::Stop() { stopped_ = true; }

std::string RoleMachine::WhyClosed() const {
  if (switching()) {
    return absl::StrCat("the worker switches from ", RoleName(role_), " to ", RoleName(to_), " and takes no new work");
  }
  return absl::StrCat("the worker has role ", RoleName(role_), " and takes no work of another role");
}

v1::RoleFacts RoleMachine::Facts(SteadyTime now) const {
  v1::RoleFacts facts;
  for (const v1::WorkerRole role : rules_.possible) facts.add_possible(role);
  facts.set_switching_to(stopped_ ? v1::WORKER_ROLE_UNSPECIFIED : to_);
  facts.set_held_seconds(absl::ToDoubleSeconds(now - held_since_));
  facts.set_changes(changes_);
  facts.set_last_failure(last_failure_);
  return facts;
}

}  // namespace baton
