// SPDX-License-Identifier: Apache-2.0
#include "router/request_machine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace baton::router {
namespace {

// How long a complete answer waits for the workers' last reports (bytes handed over, timings). The client has every
// token by then.
constexpr absl::Duration kClosingGrace = absl::Seconds(1);

}  // namespace

RequestMachine::RequestMachine(const RequestSpec& spec, const Tokenizer& tokenizer, const RetryPolicy& policy,
                               SteadyTime received)
    : spec_(spec),
      tokenizer_(tokenizer),
      policy_(policy),
      received_(received),
      stop_token_ids_(spec.sampling.stop_token_ids().begin(), spec.sampling.stop_token_ids().end()),
      text_(tokenizer, {spec.stop, spec.sampling.min_tokens(), spec.skip_special_tokens}) {}

void RequestMachine::Start() { Place(); }

bool RequestMachine::IsOpen(uint32_t attempt) const {
  return attempt == open_.number && (state_ == State::kRunning || state_ == State::kClosing);
}

const WorkerKey& RequestMachine::KeyOf(Side side) const {
  return side == Side::kDecode ? open_.placement.decode.key : open_.placement.prefill.key;
}

void RequestMachine::OnCancelled(SteadyTime now, const absl::Status& why) {
  if (done() || FinishIfClosing(now)) return;
  Fail(Cause::kCancelled, why);
}

void RequestMachine::OnDeadline(SteadyTime now) {
  if (done() || FinishIfClosing(now)) return;
  Fail(Cause::kDeadlineExceeded,
       absl::DeadlineExceededError(absl::StrCat("deadline exceeded after ", absl::FormatDuration(now - received_),
                                                " with ", output_.size(), " output tokens sent")));
}

// ------------------------------------------------------------------------------------------------------------ events

void RequestMachine::OnDecodeEvent(SteadyTime now, uint32_t attempt, const v1::DecodeEvent& event) {
  if (IsSuccessor(attempt)) return OnSuccessorDecodeEvent(now, event);
  if (!IsOpen(attempt) || IsOver(open_.decode)) return;
  switch (event.event_case()) {
    case v1::DecodeEvent::kAccepted:
      if (open_.progress >= Progress::kAccepted) return;
      open_.progress = Progress::kAccepted;
      if (!std::exchange(submitted_, true)) {
        finish_.mutable_timings()->set_queue_seconds(absl::ToDoubleSeconds(now - received_));
      }
      if (open_.placement.local) return;
      open_.prefill = CallPhase::kOpen;
      actions_.push_back(action::SubmitPrefill{open_.number});
      return;
    case v1::DecodeEvent::kStarted: return OnDecodeStarted(event.started());
    case v1::DecodeEvent::kTokens:
      open_.progress = std::max(open_.progress, Progress::kStarted);
      for (const v1::TokenEvent& token : event.tokens().tokens()) OnToken(token);
      return SendReady(now);
    case v1::DecodeEvent::kDraining: open_.draining = true; return BeginMigration();
    case v1::DecodeEvent::kMigrated: open_.decode = CallPhase::kEnded; return OnMigrated(now);
    case v1::DecodeEvent::kFinished: open_.decode = CallPhase::kEnded; return OnWorkerFinished(now, event.finished());
    case v1::DecodeEvent::kFailed:
      open_.decode = CallPhase::kEnded;
      return OnFailed(now, Side::kDecode, event.failed());
    case v1::DecodeEvent::EVENT_NOT_SET: return;  // an event of a newer version, which this router did not ask for
  }
}

void RequestMachine::OnPrefillEvent(SteadyTime now, uint32_t attempt, const v1::PrefillEvent& event) {
  if (IsSuccessor(attempt)) return OnSuccessorPrefillEvent(now, event);
  if (!IsOpen(attempt) || open_.prefill != CallPhase::kOpen) return;
  v1::Timings& timings = *finish_.mutable_timings();
  switch (event.event_case()) {
    case v1::PrefillEvent::kStarted:
      stalled_since_.reset();  // from here on the worker computes, however long
      timings.set_queue_seconds(timings.queue_seconds() + event.started().queue_seconds());
      return;
    case v1::PrefillEvent::kFirstToken: OnToken(event.first_token()); return SendReady(now);
    case v1::PrefillEvent::kHandedOver:
      open_.prefill = CallPhase::kEnded;
      OnHandedOver(open_, event.handed_over());
      AdvanceClosing(now);
      return CheckStranded(now);
    case v1::PrefillEvent::kFinished:
      open_.prefill = CallPhase::kEnded;
      NotePrefill(event.finished().prefill_seconds(), event.finished().cached_prompt_tokens());
      return OnWorkerFinished(now, event.finished());
    case v1::PrefillEvent::kFailed:
      open_.prefill = CallPhase::kEnded;
      return OnFailed(now, Side::kPrefill, event.failed());
    case v1::PrefillEvent::EVENT_NOT_SET: return;
  }
}

void RequestMachine::OnDecodeEnded(SteadyTime now, uint32_t attempt, const absl::Status& status) {
  if (IsSuccessor(attempt)) return OnSuccessorCallEnded(now, Side::kDecode, status);
  if (!IsOpen(attempt) || IsOver(open_.decode)) return;
  open_.decode = CallPhase::kEnded;
  OnCallEnded(now, Side::kDecode, status);
}

void RequestMachine::OnPrefillEnded(SteadyTime now, uint32_t attempt, const absl::Status& status) {
  if (IsSuccessor(attempt)) return OnSuccessorCallEnded(now, Side::kPrefill, status);
  if (!IsOpen(attempt) || open_.prefill != CallPhase::kOpen) return;
  open_.prefill = CallPhase::kEnded;
  OnCallEnded(now, Side::kPrefill, status);
}

void RequestMachine::WakeAfter(absl::Duration delay, WakeReason reason) {
  wake_ = {reason, wake_.number + 1};
  actions_.push_back(action::WakeAfter{delay, wake_});
}

void RequestMachine::OnWake(SteadyTime now, const Wake& wake) {
  if (wake != wake_) return;
  switch (wake.reason) {
    case WakeReason::kPlace:
      if (state_ == State::kWaiting) Place();
      return;
    case WakeReason::kMigrate: return BeginMigration();
    case WakeReason::kFinish: FinishIfClosing(now); return;
  }
}

// ---------------------------------------------------------------------------------------------- how the request ends

void RequestMachine::BeginClosing(SteadyTime now) {
  PromoteSuccessorIfReady();
  DropSuccessor(Outcome(Cause::kCancelled, "the output is complete"));
  if (finish_.has_stop_string()) CancelDecode(open_);  // workers know no stop strings and would go on
  early_.clear();
  AdvanceClosing(now);
  if (state_ == State::kClosing) WakeAfter(kClosingGrace, WakeReason::kFinish);
}

void RequestMachine::AdvanceClosing(SteadyTime now) {
  if (state_ != State::kClosing) return;
  // If the first token was the last, nothing was handed over and the decode worker has nothing to say.
  if (open_.prefill_over() && !open_.started()) Close(open_);
  if (open_.prefill_over() && IsOver(open_.decode)) Finish(now);
}

bool RequestMachine::FinishIfClosing(SteadyTime now) {
  if (state_ != State::kClosing) return false;
  Close(open_);
  Finish(now);
  return true;
}

void RequestMachine::Finish(SteadyTime now) {
  state_ = State::kDone;
  open_.info.set_ended_by(std::string(Name(Cause::kFinished)));
  *finish_.add_attempts() = open_.info;
  actions_.push_back(action::AttemptEnded{open_.number, Outcome(Cause::kFinished, ""), std::nullopt});

  const auto prompt_tokens = static_cast<uint32_t>(spec_.prompt.size());
  v1::Usage& usage = *finish_.mutable_usage();
  usage.set_prompt_tokens(prompt_tokens);
  usage.set_cached_prompt_tokens(std::min(usage.cached_prompt_tokens(), prompt_tokens));
  usage.set_decode_cached_prompt_tokens(std::min(usage.decode_cached_prompt_tokens(), prompt_tokens));
  usage.set_completion_tokens(static_cast<uint32_t>(output_.size()));
  v1::Timings& timings = *finish_.mutable_timings();
  timings.set_total_seconds(absl::ToDoubleSeconds(now - received_));
  if (first_token_) timings.set_ttft_seconds(absl::ToDoubleSeconds(*first_token_ - received_));
  if (output_.size() > 1) {
    timings.set_tpot_seconds(absl::ToDoubleSeconds(last_token_ - *first_token_) / double(output_.size() - 1));
  }
  finish_.set_seed(spec_.sampling.seed());
  if (const Objectives& objectives = spec_.objectives; objectives.any()) {
    const auto is_met = [](double seconds, absl::Duration objective) {
      return objective <= absl::ZeroDuration() || seconds <= absl::ToDoubleSeconds(objective);
    };
    v1::SloReport& slo = *finish_.mutable_slo();
    slo.set_ttft_slo_seconds(absl::ToDoubleSeconds(objectives.ttft));
    slo.set_tpot_slo_seconds(absl::ToDoubleSeconds(objectives.tpot));
    slo.set_ttft_met(is_met(timings.ttft_seconds(), objectives.ttft));
    slo.set_tpot_met(is_met(timings.tpot_seconds(), objectives.tpot));
  }
  actions_.push_back(action::Finish{std::move(finish_)});
}

void RequestMachine::Fail(Cause cause, absl::Status status, absl::Duration retry_after) {
  if (state_ == State::kRunning || state_ == State::kClosing) {
    Close(open_);
    actions_.push_back(action::AttemptEnded{open_.number, Outcome(cause, std::string(status.message())), std::nullopt});
    DropSuccessor(Outcome(Cause::kCancelled, "the request has failed"));
  }
  state_ = State::kDone;
  actions_.push_back(action::Fail{cause, std::move(status), retry_after});
}

}  // namespace baton::router
