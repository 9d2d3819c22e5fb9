// SPDX-License-Identifier: Apache-2.0
// Live migration: the part of the RequestMachine that moves a running sequence away from a decode worker that drains,
// or to the worker that the request's pin names.
//
// The open attempt n goes on while its successor is opened at another decode worker. Instead of a prefill worker, n's
// decode worker hands the KV over and decodes on meanwhile. The successor takes n's place once the successor has
// started and all tokens of n have come. Until then, a failure of the successor costs nothing, and a failure of n ends
// both.
#include <algorithm>
#include <utility>

#include "common/outcome_proto.h"
#include "router/backoff.h"
#include "router/request_machine.h"

namespace baton::router {
namespace {

// While no other worker has room, the draining worker decodes on for some time.
constexpr Backoff kMigrationBackoff{absl::Milliseconds(250), absl::Seconds(4)};

}  // namespace

// A pinned sequence goes to the pin's target alone, and once.
bool RequestMachine::ShouldMigrate() const {
  if (!spec_.pin) return open_.draining;
  if (spec_.pin->migrate_to.empty() || has_migrated_) return false;
  return open_.draining || (open_.started() && output_.size() >= spec_.pin->migrate_after_tokens);
}

void RequestMachine::BeginMigration() {
  if (state_ != State::kRunning || !ShouldMigrate() || open_.finished || successor_) return;
  if (std::exchange(placing_successor_, true)) return;
  std::vector<WorkerKey> avoid = avoid_successors_;
  avoid.push_back(KeyOf(Side::kDecode));
  actions_.push_back(action::PlaceMigration{std::move(avoid)});
}

void RequestMachine::RetryMigration() {
  WakeAfter(kMigrationBackoff.After(++failed_migrations_), WakeReason::kMigrate);
}

void RequestMachine::OnMigrationPlaced(SteadyTime /*now*/, PlacementResult result) {
  if (!std::exchange(placing_successor_, false) || state_ != State::kRunning) return;
  if (result.kind != PlacementResult::Kind::kPlaced) {
    avoid_successors_.clear();
    return RetryMigration();
  }
  successor_ = Attempt{};
  Attempt& next = *successor_;
  next.number = ++attempt_;
  next.origin = Origin::kMigration;
  next.placement = std::move(result.placement);
  next.placement.prefill = open_.placement.decode;
  next.prior_tokens = output_.size();
  next.info.set_attempt(next.number);
  next.info.set_prefill_worker(KeyOf(Side::kDecode).id);
  next.info.set_decode_worker(next.placement.decode.key.id);
  actions_.push_back(action::OpenDecode{next.number, next.placement});
}

void RequestMachine::OnSuccessorDecodeEvent(SteadyTime now, const v1::DecodeEvent& event) {
  Attempt& next = *successor_;
  if (IsOver(next.decode)) return;
  switch (event.event_case()) {
    case v1::DecodeEvent::kAccepted:
      if (next.progress >= Progress::kAccepted) return;
      next.progress = Progress::kAccepted;
      next.prefill = CallPhase::kOpen;
      actions_.push_back(action::Migrate{open_.number, next.number, static_cast<uint32_t>(next.prior_tokens)});
      return;
    case v1::DecodeEvent::kStarted:
      next.progress = std::max(next.progress, Progress::kStarted);
      next.next_output_index = event.started().next_output_index();
      return PromoteSuccessorIfReady();
    case v1::DecodeEvent::kTokens:
      for (const v1::TokenEvent& token : event.tokens().tokens()) OnToken(token);
      return SendReady(now);
    case v1::DecodeEvent::kDraining: next.draining = true; return;
    case v1::DecodeEvent::kFinished:
      next.decode = CallPhase::kEnded;
      next.finished = event.finished();
      return SendReady(now);
    case v1::DecodeEvent::kFailed:
      next.decode = CallPhase::kEnded;
      return LoseSuccessor(now, Side::kDecode, FromProto(event.failed()));
    case v1::DecodeEvent::kMigrated:  // nobody asks a successor to migrate
    case v1::DecodeEvent::EVENT_NOT_SET: return;
  }
}

void RequestMachine::OnSuccessorPrefillEvent(SteadyTime now, const v1::PrefillEvent& event) {
  Attempt& next = *successor_;
  if (next.prefill != CallPhase::kOpen) return;
  if (event.has_handed_over()) {
    next.prefill = CallPhase::kEnded;
    OnHandedOver(next, event.handed_over());
  } else if (event.has_failed()) {
    next.prefill = CallPhase::kEnded;
    if (next.started()) return;  // the successor needs nothing more
    LoseSuccessor(now, Side::kPrefill, FromProto(event.failed()));
  }
}

void RequestMachine::OnSuccessorCallEnded(SteadyTime now, Side side, const absl::Status& status) {
  Attempt& next = *successor_;
  CallPhase& phase = side == Side::kDecode ? next.decode : next.prefill;
  if (phase != CallPhase::kOpen) return;
  phase = CallPhase::kEnded;
  if (side == Side::kPrefill && next.started()) return;
  LoseSuccessor(now, side, OutcomeOfCall(side, status));
}

void RequestMachine::PromoteSuccessorIfReady() {
  if (!successor_ || !successor_->started() || output_.size() < successor_->next_output_index) return;
  PromoteSuccessor();
  paused_since_ = Cause::kMigrated;
  if (output_.size() > open_.next_output_index) Resume();  // the last message may already hold tokens of the successor
  BeginMigration();
}

void RequestMachine::PromoteSuccessor() {
  Close(open_);
  open_.info.set_ended_by(std::string(Name(Cause::kMigrated)));
  *finish_.add_attempts() = open_.info;
  actions_.push_back(action::AttemptEnded{open_.number, Outcome(Cause::kMigrated, ""), std::nullopt});
  open_ = *std::exchange(successor_, std::nullopt);
  has_migrated_ = true;
  avoid_successors_.clear();
  failed_migrations_ = 0;
}

// Handles the end of the open attempt's handover: the successor goes on, if there is still one.
void RequestMachine::OnMigrated(SteadyTime now) {
  open_.progress = Progress::kMigrated;
  PromoteSuccessorIfReady();
  if (state_ != State::kRunning || successor_ || open_.progress != Progress::kMigrated) return;
  EndAttempt(now, Side::kDecode, Outcome(Cause::kRevoked, "the sequence went to an attempt that has ended"));
}

void RequestMachine::DropSuccessor(Outcome outcome) {
  placing_successor_ = false;
  if (!successor_) return;
  Close(*successor_);
  actions_.push_back(action::AttemptEnded{successor_->number, std::move(outcome), std::nullopt});
  successor_.reset();
}

void RequestMachine::LoseSuccessor(SteadyTime now, Side reporter, const Outcome& outcome) {
  if (outcome.cause == Cause::kDeadlineExceeded) return OnDeadline(now);
  if (open_.progress == Progress::kMigrated) {  // no other attempt has the sequence any more
    PromoteSuccessor();
    return EndAttempt(now, reporter, outcome);
  }
  avoid_successors_.clear();
  // The worker that hands over stays the same: if handoffs from there fail, another worker has to be the target.
  const bool target_is_at_fault = reporter == Side::kDecode ? AvoidsReporter(outcome) : AvoidsPeer(outcome);
  if (target_is_at_fault || BreaksPair(outcome) || NextStepAfter(outcome.cause) == NextStep::kFail) {
    avoid_successors_.push_back(successor_->placement.decode.key);
  }
  DropSuccessor(outcome);
  RetryMigration();
}

}  // namespace baton::router
