// SPDX-License-Identifier: Apache-2.0
// The attempts of a request: the part of the RequestMachine that ends one and starts the next.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/outcome_proto.h"
#include "common/strings.h"
#include "router/backoff.h"
#include "router/request_machine.h"

namespace baton::router {
namespace {

constexpr Backoff kPlaceBackoff{absl::Milliseconds(50), absl::Seconds(1)};

// How often a request that waits for room asks for a place.
constexpr absl::Duration kRoomPoll = absl::Milliseconds(50);

absl::Status RefusalForLoad(const std::string& detail, absl::Duration retry_after) {
  return absl::ResourceExhaustedError(
      absl::StrCat(detail, "; retry after ", absl::FormatDuration(absl::Trunc(retry_after, absl::Milliseconds(1)))));
}

bool FindsNoRoom(const Outcome& outcome) { return NextStepAfter(outcome.cause) == NextStep::kFindRoom; }

}  // namespace

void RequestMachine::OnDecodeStarted(const v1::DecodeStarted& started) {
  open_.progress = std::max(open_.progress, Progress::kStarted);
  stalled_since_.reset();
  if (!open_.placement.local) {
    if (!std::exchange(decode_cached_known_, true)) {
      finish_.mutable_usage()->set_decode_cached_prompt_tokens(started.cached_prompt_tokens());
    }
    return;
  }
  v1::Timings& timings = *finish_.mutable_timings();
  timings.set_queue_seconds(timings.queue_seconds() + started.queue_seconds());
  NotePrefill(started.prefill_seconds(), started.cached_prompt_tokens());
}

void RequestMachine::NotePrefill(double seconds, uint32_t cached_prompt_tokens) {
  v1::Timings& timings = *finish_.mutable_timings();
  timings.set_prefill_seconds(timings.prefill_seconds() + seconds);
  if (!std::exchange(cached_known_, true)) finish_.mutable_usage()->set_cached_prompt_tokens(cached_prompt_tokens);
}

void RequestMachine::OnHandedOver(Attempt& attempt, const v1::HandedOver& handed_over) {
  if (attempt.origin == Origin::kPrompt) NotePrefill(handed_over.prefill_seconds(), handed_over.cached_prompt_tokens());
  v1::Timings& timings = *finish_.mutable_timings();
  timings.set_transfer_seconds(timings.transfer_seconds() + handed_over.transfer_seconds());
  timings.set_transfer_exposed_seconds(timings.transfer_exposed_seconds() + handed_over.transfer_exposed_seconds());
  attempt.info.set_kv_bytes(handed_over.kv_bytes());
  attempt.info.set_transport(handed_over.transport());
  if (attempt.placement.pair != 0) actions_.push_back(action::HandedOver{attempt.placement.pair, handed_over});
}

void RequestMachine::OnWorkerFinished(SteadyTime now, const v1::WorkerFinished& finished) {
  if (state_ == State::kClosing) return AdvanceClosing(now);
  open_.finished = finished;
  SendReady(now);  // the prefill call may still owe the first token
  CheckStranded(now);
}

bool RequestMachine::DecodeHasAll() const {
  return open_.started() && (open_.origin == Origin::kMigration || output_.size() > open_.prior_tokens);
}

// Ends the attempt if both calls ended well and the output is not complete: a worker broke the contract.
void RequestMachine::CheckStranded(SteadyTime now) {
  if (state_ != State::kRunning || !IsOver(open_.decode) || !open_.prefill_over() || successor_) return;
  EndAttempt(now, Side::kDecode,
             Outcome(Cause::kInternal, Fault::kNobody,
                     absl::StrCat("both calls ended, but output token ", output_.size(), " never came")));
}

void RequestMachine::OnFailed(SteadyTime now, Side side, const v1::AttemptFailed& failed) {
  OnEndedBy(now, side, FromProto(failed));
}

void RequestMachine::OnCallEnded(SteadyTime now, Side side, const absl::Status& status) {
  OnEndedBy(now, side, OutcomeOfCall(side, status));
}

// Maps the status with which gRPC, or a worker that did not take the call, ended a call.
Outcome RequestMachine::OutcomeOfCall(Side side, const absl::Status& status) {
  const std::string detail = status.ok() ? "the call ended without a terminal event" : std::string(status.ToString());
  switch (status.code()) {
    case absl::StatusCode::kDeadlineExceeded: return Outcome(Cause::kDeadlineExceeded, detail);
    case absl::StatusCode::kInvalidArgument: return Outcome(Cause::kInvalid, std::string(status.message()));
    case absl::StatusCode::kResourceExhausted: {
      Outcome outcome(Cause::kOverloaded, detail);
      outcome.retry_after = absl::ZeroDuration();  // a status has no hint
      return outcome;
    }
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kUnimplemented: return Outcome(Cause::kRefused, detail);
    default: return Outcome(side == Side::kPrefill ? Cause::kPrefillLost : Cause::kDecodeLost, detail);
  }
}

void RequestMachine::OnEndedBy(SteadyTime now, Side side, const Outcome& outcome) {
  if (state_ == State::kClosing) return AdvanceClosing(now);
  if (side == Side::kPrefill && DecodeHasAll()) return;
  // The prefill worker withdrew the handoff, and says why on its own call.
  if (side == Side::kDecode && outcome.cause == Cause::kCancelled && open_.prefill == CallPhase::kOpen) return;
  if (NextStepAfter(outcome.cause) != NextStep::kFail) return EndAttempt(now, side, outcome);
  if (outcome.cause == Cause::kDeadlineExceeded) return OnDeadline(now);
  Fail(outcome.cause, absl::InvalidArgumentError(outcome.detail));
}

void RequestMachine::EndAttempt(SteadyTime now, Side reporter, Outcome outcome) {
  Close(open_);
  open_.info.set_ended_by(std::string(Name(outcome.cause)));
  *finish_.add_attempts() = open_.info;
  std::optional<uint64_t> broken_pair;
  if (BreaksPair(outcome)) broken_pair = open_.placement.pair;
  actions_.push_back(action::AttemptEnded{open_.number, outcome, broken_pair});
  DropSuccessor(Outcome(Cause::kCancelled, "the attempt before has ended"));
  if (first_token_) paused_since_ = outcome.cause;

  early_.clear();
  failed_migrations_ = 0;
  avoid_successors_.clear();
  ++fruitless_;
  if (CountsAsAttempt(outcome.cause)) ++failures_;
  if (FindsNoRoom(outcome)) retry_after_ = outcome.retry_after;
  if (AvoidsReporter(outcome)) avoid_.push_back(KeyOf(reporter));
  if (AvoidsPeer(outcome)) avoid_.push_back(KeyOf(OtherThan(reporter)));
  last_end_ = std::move(outcome);
  if (!stalled_since_) stalled_since_ = now;
  NextAttempt();
}

void RequestMachine::CancelDecode(Attempt& attempt) {
  if (IsOver(attempt.decode)) return;
  attempt.decode = CallPhase::kCancelled;
  actions_.push_back(action::CancelDecode{attempt.number});
}

void RequestMachine::CancelPrefill(Attempt& attempt) {
  if (IsOver(attempt.prefill)) return;
  const bool is_open = std::exchange(attempt.prefill, CallPhase::kCancelled) == CallPhase::kOpen;
  if (is_open) actions_.push_back(action::CancelPrefill{attempt.number});
}

void RequestMachine::Close(Attempt& attempt) {
  CancelDecode(attempt);
  CancelPrefill(attempt);
}

// -------------------------------------------------------------------------------------------- how the next one starts

void RequestMachine::NextAttempt() {
  if (failures_ >= policy_.max_attempts) {
    state_ = State::kDone;
    const std::string which =
        failures_ == 1 ? "1 attempt failed, by " : Concat(failures_, " attempts failed, the last attempt by ");
    actions_.push_back(action::Fail{
        last_end_.cause, absl::UnavailableError(Concat(which, Name(last_end_.cause), ": ", last_end_.detail)),
        absl::ZeroDuration()});
    return;
  }
  // The first retry starts at once, and so does the search for another worker with room.
  if (fruitless_ <= 1 || FindsNoRoom(last_end_)) return Place();
  WaitToPlace();
}

void RequestMachine::Place() {
  state_ = State::kPlacing;
  actions_.push_back(action::Place{avoid_});
}

void RequestMachine::OnPlaced(SteadyTime now, PlacementResult result) {
  if (state_ != State::kPlacing) return;
  const bool placed = result.kind == PlacementResult::Kind::kPlaced;
  if (!placed && !stalled_since_) stalled_since_ = now;
  const absl::Duration stalled = stalled_since_ ? now - *stalled_since_ : absl::ZeroDuration();
  const bool overloaded = result.kind == PlacementResult::Kind::kOnlyAvoided && FindsNoRoom(last_end_);
  switch (result.kind) {
    case PlacementResult::Kind::kPlaced: break;
    case PlacementResult::Kind::kLate:
      return Fail(Cause::kTooLate, RefusalForLoad(result.detail, result.retry_after), result.retry_after);
    case PlacementResult::Kind::kNoRoom:
      if (result.may_wait) stalled_since_.reset();
      if (!result.may_wait && stalled >= policy_.overload_wait) {
        return Fail(Cause::kOverloaded, RefusalForLoad(result.detail, result.retry_after), result.retry_after);
      }
      state_ = State::kWaiting;
      return WakeAfter(kRoomPoll, WakeReason::kPlace);
    case PlacementResult::Kind::kNoneLive:
      // After a first attempt, a broken network may hide workers that are alive: wait for them.
      if (attempt_ == 0) return Fail(last_end_.cause, absl::UnavailableError(result.detail));
      [[fallthrough]];
    case PlacementResult::Kind::kOnlyAvoided:
    case PlacementResult::Kind::kNoneReady:
      if (overloaded && output_.empty() && stalled >= policy_.overload_wait) {
        return RefuseOverloaded(result.retry_after);
      }
      if (!overloaded && stalled >= policy_.placement_wait) {
        return Fail(last_end_.cause, absl::UnavailableError(result.detail));
      }
      ++fruitless_;
      avoid_.clear();
      return WaitToPlace();
  }
  open_ = Attempt{};
  open_.number = ++attempt_;
  open_.placement = std::move(result.placement);
  open_.prior_tokens = output_.size();
  if (open_.placement.local) open_.prefill = CallPhase::kNotNeeded;
  open_.info.set_attempt(open_.number);
  if (!open_.placement.local) open_.info.set_prefill_worker(open_.placement.prefill.key.id);
  open_.info.set_decode_worker(open_.placement.decode.key.id);
  state_ = State::kRunning;
  actions_.push_back(action::OpenDecode{open_.number, open_.placement});
}

void RequestMachine::WaitToPlace() {
  state_ = State::kWaiting;
  const absl::Duration backoff = std::max(kPlaceBackoff.After(fruitless_ - 1), retry_after_);
  WakeAfter(std::min(backoff, kPlaceBackoff.most), WakeReason::kPlace);
}

void RequestMachine::RefuseOverloaded(absl::Duration estimate) {
  const absl::Duration retry_after = std::max({retry_after_, estimate, kRoomPoll});
  const char* const who = spec_.pin ? "the pinned pair" : "every worker";
  const char* const what = last_end_.cause == Cause::kTooLate ? "would be too late" : "is full";
  Fail(
      last_end_.cause,
      RefusalForLoad(absl::StrCat(who, " of model ", spec_.model, " ", what, " (", last_end_.detail, ")"), retry_after),
      retry_after);
}

}  // namespace baton::router
