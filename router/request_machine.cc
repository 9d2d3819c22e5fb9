#include "router/request_machine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/outcome_proto.h"
#include "common/strings.h"

namespace baton::router {
namespace {

// How long a complete answer waits for what the workers report at their end (bytes handed over, timings). The client
// has every token by then.
constexpr absl::Duration kClosingGrace = absl::Seconds(1);

constexpr absl::Duration kFirstBackoff = absl::Milliseconds(50);
constexpr absl::Duration kMaxBackoff = absl::Seconds(1);

bool FindsNoRoom(const Outcome& outcome) { return NextStepAfter(outcome.cause) == NextStep::kFindRoom; }

void FillTokenBytes(const Tokenizer& tokenizer, v1::TokenLogprobs& logprobs) {
  const auto fill = [&](v1::TokenLogprob& entry) {
    entry.set_token(std::string(tokenizer.TokenBytes(entry.token_id())));
  };
  fill(*logprobs.mutable_chosen());
  for (v1::TokenLogprob& entry : *logprobs.mutable_top()) fill(entry);
}

}  // namespace

RequestMachine::RequestMachine(const RequestSpec& spec, const Tokenizer& tokenizer, const RetryPolicy& policy,
                               absl::Time received)
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

void RequestMachine::OnCancelled(absl::Time now, const absl::Status& why) {
  if (done() || FinishIfClosing(now)) return;
  Fail(Cause::kCancelled, why);
}

void RequestMachine::OnDeadline(absl::Time now) {
  if (done() || FinishIfClosing(now)) return;
  Fail(Cause::kDeadlineExceeded,
       absl::DeadlineExceededError(absl::StrCat("deadline exceeded after ", absl::FormatDuration(now - received_),
                                                " with ", output_.size(), " output tokens sent")));
}

// ------------------------------------------------------------------------------------------------------------ events

void RequestMachine::OnDecodeEvent(absl::Time now, uint32_t attempt, const v1::DecodeEvent& event) {
  if (IsSuccessor(attempt)) return OnSuccessorDecodeEvent(now, event);
  if (!IsOpen(attempt) || open_.decode_closed) return;
  switch (event.event_case()) {
    case v1::DecodeEvent::kAccepted:
      if (std::exchange(open_.accepted, true)) return;
      if (!std::exchange(submitted_, true)) {
        finish_.mutable_timings()->set_queue_seconds(absl::ToDoubleSeconds(now - received_));
      }
      if (!open_.placement.local) actions_.push_back(action::SubmitPrefill{open_.number});
      return;
    case v1::DecodeEvent::kStarted:
      return OnDecodeStarted(event.started());
    case v1::DecodeEvent::kTokens:
      open_.decode_started = true;
      for (const v1::TokenEvent& token : event.tokens().tokens()) OnToken(token);
      return SendReady(now);
    case v1::DecodeEvent::kDraining:
      open_.draining = true;
      return BeginMigration();
    case v1::DecodeEvent::kMigrated:
      open_.decode_closed = true;
      return OnMigrated(now);
    case v1::DecodeEvent::kFinished:
      open_.decode_closed = true;
      return OnWorkerFinished(now, event.finished());
    case v1::DecodeEvent::kFailed:
      open_.decode_closed = true;
      return OnFailed(now, Side::kDecode, event.failed());
    case v1::DecodeEvent::EVENT_NOT_SET:
      return;  // of a newer version: nothing that we asked for
  }
}

void RequestMachine::OnPrefillEvent(absl::Time now, uint32_t attempt, const v1::PrefillEvent& event) {
  if (IsSuccessor(attempt)) return OnSuccessorPrefillEvent(now, event);
  if (!IsOpen(attempt) || open_.prefill_closed) return;
  v1::Timings& timings = *finish_.mutable_timings();
  switch (event.event_case()) {
    case v1::PrefillEvent::kStarted:
      stalled_since_.reset();  // what follows is work, however long it takes
      timings.set_queue_seconds(timings.queue_seconds() + event.started().queue_seconds());
      return;
    case v1::PrefillEvent::kFirstToken:
      OnToken(event.first_token());
      return SendReady(now);
    case v1::PrefillEvent::kHandedOver:
      open_.prefill_closed = true;
      OnHandedOver(open_, event.handed_over());
      AdvanceClosing(now);
      return CheckStranded(now);
    case v1::PrefillEvent::kFinished:
      open_.prefill_closed = true;
      NotePrefill(event.finished().prefill_seconds(), event.finished().cached_prompt_tokens());
      return OnWorkerFinished(now, event.finished());
    case v1::PrefillEvent::kFailed:
      open_.prefill_closed = true;
      return OnFailed(now, Side::kPrefill, event.failed());
    case v1::PrefillEvent::EVENT_NOT_SET:
      return;
  }
}

void RequestMachine::OnDecodeEnded(absl::Time now, uint32_t attempt, const absl::Status& status) {
  if (IsSuccessor(attempt)) return OnSuccessorCallEnded(now, Side::kDecode, status);
  if (!IsOpen(attempt) || std::exchange(open_.decode_closed, true)) return;
  OnCallEnded(now, Side::kDecode, status);
}

void RequestMachine::OnPrefillEnded(absl::Time now, uint32_t attempt, const absl::Status& status) {
  if (IsSuccessor(attempt)) return OnSuccessorCallEnded(now, Side::kPrefill, status);
  if (!IsOpen(attempt) || std::exchange(open_.prefill_closed, true)) return;
  OnCallEnded(now, Side::kPrefill, status);
}

void RequestMachine::OnWake(absl::Time now, uint32_t wake) {
  if (wake != wake_) return;
  if (state_ == State::kWaiting) {
    Place();
  } else if (state_ == State::kRunning) {
    BeginMigration();
  } else if (state_ == State::kClosing) {
    Close(open_);
    Finish(now);
  }
}

// ------------------------------------------------------------------------------------------------------------ tokens

// Keeps the token until all before it are there. Streams of both workers may carry the first one.
void RequestMachine::OnToken(const v1::TokenEvent& event) {
  if (state_ != State::kRunning) return;  // surplus: behind the end of the output
  const uint32_t index = event.output_index();
  if (index < output_.size()) {
    if (output_[index] != event.token_id()) Disagree(index, output_[index], event.token_id());
    return;
  }
  if (index >= spec_.sampling.max_tokens()) return;  // surplus; it also bounds early_
  const auto [it, added] = early_.emplace(index, event);
  if (!added && it->second.token_id() != event.token_id()) Disagree(index, it->second.token_id(), event.token_id());
}

void RequestMachine::SendReady(absl::Time now) {
  if (state_ != State::kRunning) return;
  v1::Chunk chunk;
  chunk.set_output_index(static_cast<uint32_t>(output_.size()));
  while (state_ == State::kRunning && !early_.empty() && early_.begin()->first == output_.size()) {
    const v1::TokenEvent event = std::move(early_.begin()->second);
    early_.erase(early_.begin());
    Append(event, chunk);
  }
  // The worker's word counts where the machine saw no end itself: its context is full.
  const bool has_tokens = output_.size() > open_.prior_tokens;
  if (state_ == State::kRunning && worker_finished_ && early_.empty() && has_tokens) {
    finish_.set_reason(worker_finished_->reason());
    if (worker_finished_->has_stop_token_id()) finish_.set_stop_token_id(worker_finished_->stop_token_id());
    EndOutput(text_.Flush(), worker_finished_->reason(), chunk);
  }
  if (!chunk.token_ids().empty()) {
    if (!first_token_) first_token_ = last_token_ = now;
    last_gap_ = now - std::exchange(last_token_, now);
    if (paused_since_) Resume();
    stalled_since_.reset();
    fruitless_ = 0;
    retry_after_ = absl::ZeroDuration();
    avoid_.clear();
  }
  if (!chunk.token_ids().empty() || !chunk.text().empty()) actions_.push_back(action::Send{std::move(chunk)});
  if (state_ == State::kClosing) return BeginClosing(now);
  PromoteSuccessorIfReady();
}

// Tokens come again.
void RequestMachine::Resume() {
  open_.info.set_pause_seconds(absl::ToDoubleSeconds(last_gap_));
  actions_.push_back(action::Resumed{open_.number, *std::exchange(paused_since_, std::nullopt), last_gap_});
}

void RequestMachine::Append(const v1::TokenEvent& event, v1::Chunk& chunk) {
  const TokenId token = event.token_id();
  output_.push_back(token);
  chunk.add_token_ids(token);
  if (spec_.sampling.has_logprobs()) {
    *chunk.add_logprobs() = event.logprobs();
    FillTokenBytes(tokenizer_, *chunk.mutable_logprobs(chunk.logprobs_size() - 1));
  }
  const bool is_stop = std::binary_search(stop_token_ids_.begin(), stop_token_ids_.end(), token);
  if (is_stop && output_.size() > spec_.sampling.min_tokens()) {
    // A stop token belongs to the output and is counted, but leaves no text.
    finish_.set_stop_token_id(token);
    return EndOutput(text_.Flush(), v1::FINISH_REASON_STOP, chunk);
  }
  TextAssembler::Delta delta = text_.Push(token);
  chunk.mutable_text()->append(delta.text);
  if (delta.stop) return StopAt(*delta.stop);
  if (output_.size() == spec_.sampling.max_tokens()) EndOutput(text_.Flush(), v1::FINISH_REASON_LENGTH, chunk);
}

void RequestMachine::EndOutput(TextAssembler::Delta rest, v1::FinishReason reason, v1::Chunk& chunk) {
  chunk.mutable_text()->append(rest.text);
  if (rest.stop) return StopAt(*rest.stop);
  finish_.set_reason(reason);
  state_ = State::kClosing;
}

// The worker does not know of stop strings: it would go on.
void RequestMachine::StopAt(const std::string& stop_string) {
  finish_.set_reason(v1::FINISH_REASON_STOP);
  finish_.set_stop_string(stop_string);
  state_ = State::kClosing;
  if (!std::exchange(open_.decode_closed, true)) actions_.push_back(action::CancelDecode{open_.number});
  // Once the sequence has changed owner, the prefill call ends by itself with the figures of the transfer.
  if (!open_.decode_started && !std::exchange(open_.prefill_closed, true)) {
    actions_.push_back(action::CancelPrefill{open_.number});
  }
}

void RequestMachine::Disagree(uint32_t index, TokenId had, TokenId got) {
  actions_.push_back(action::Disagreement{index, had, got});
  Fail(Cause::kInternal, absl::InternalError(absl::StrCat("output token ", index, " came as ", had, " and again as ",
                                                          got, ": workers of one numerics id disagree")));
}

// ---------------------------------------------------------------------------------------------- how an attempt ends

void RequestMachine::OnDecodeStarted(const v1::DecodeStarted& started) {
  open_.decode_started = true;
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
  if (!attempt.is_migration) NotePrefill(handed_over.prefill_seconds(), handed_over.cached_prompt_tokens());
  v1::Timings& timings = *finish_.mutable_timings();
  timings.set_transfer_seconds(timings.transfer_seconds() + handed_over.transfer_seconds());
  timings.set_transfer_exposed_seconds(timings.transfer_exposed_seconds() + handed_over.transfer_exposed_seconds());
  attempt.info.set_kv_bytes(handed_over.kv_bytes());
  attempt.info.set_transport(handed_over.transport());
}

void RequestMachine::OnWorkerFinished(absl::Time now, const v1::WorkerFinished& finished) {
  if (state_ == State::kClosing) return AdvanceClosing(now);
  worker_finished_ = finished;
  SendReady(now);  // the prefill call may still owe the first token
  CheckStranded(now);
}

bool RequestMachine::DecodeHasAll() const {
  return open_.decode_started && (open_.is_migration || output_.size() > open_.prior_tokens);
}

// Both calls ended well and yet the output is not complete: a worker broke the contract.
void RequestMachine::CheckStranded(absl::Time now) {
  if (state_ != State::kRunning || !open_.decode_closed || !open_.prefill_closed || successor_) return;
  EndAttempt(now, Side::kDecode,
             Outcome(Cause::kInternal, Fault::kNobody,
                     absl::StrCat("both calls ended, but output token ", output_.size(), " never came")));
}

void RequestMachine::OnFailed(absl::Time now, Side side, const v1::AttemptFailed& failed) {
  OnEndedBy(now, side, FromProto(failed));
}

void RequestMachine::OnCallEnded(absl::Time now, Side side, const absl::Status& status) {
  OnEndedBy(now, side, OutcomeOfCall(side, status));
}

// The only mapping of a call's status: what gRPC, or a worker that did not take the call, says.
Outcome RequestMachine::OutcomeOfCall(Side side, const absl::Status& status) {
  const std::string detail = status.ok() ? "the call ended without a terminal event" : std::string(status.ToString());
  switch (status.code()) {
    case absl::StatusCode::kDeadlineExceeded:
      return Outcome(Cause::kDeadlineExceeded, detail);
    case absl::StatusCode::kInvalidArgument:
      return Outcome(Cause::kInvalid, std::string(status.message()));
    case absl::StatusCode::kResourceExhausted: {
      Outcome outcome(Cause::kOverloaded, detail);
      outcome.retry_after = absl::ZeroDuration();  // a status has no hint
      return outcome;
    }
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kUnimplemented:
      return Outcome(Cause::kRefused, detail);
    default:
      return Outcome(side == Side::kPrefill ? Cause::kPrefillLost : Cause::kDecodeLost, detail);
  }
}

void RequestMachine::OnEndedBy(absl::Time now, Side side, const Outcome& outcome) {
  if (state_ == State::kClosing) return AdvanceClosing(now);
  if (side == Side::kPrefill && DecodeHasAll()) return;
  if (NextStepAfter(outcome.cause) != NextStep::kFail) return EndAttempt(now, side, outcome);
  if (outcome.cause == Cause::kDeadlineExceeded) return OnDeadline(now);
  Fail(outcome.cause, absl::InvalidArgumentError(outcome.detail));
}

void RequestMachine::EndAttempt(absl::Time now, Side reporter, Outcome outcome) {
  Close(open_);
  open_.info.set_ended_by(std::string(Name(outcome.cause)));
  *finish_.add_attempts() = open_.info;
  std::optional<uint64_t> broken_pair;
  if (BreaksPair(outcome)) broken_pair = open_.placement.pair;
  actions_.push_back(action::AttemptEnded{open_.number, outcome, broken_pair});
  DropSuccessor(Outcome(Cause::kCancelled, "the attempt that it was to follow has ended"));
  if (first_token_) paused_since_ = outcome.cause;

  early_.clear();
  worker_finished_.reset();
  ++fruitless_;
  if (CountsAsAttempt(outcome.cause)) ++failures_;
  if (FindsNoRoom(outcome)) retry_after_ = outcome.retry_after;
  if (AvoidsReporter(outcome)) avoid_.push_back(KeyOf(reporter));
  if (AvoidsPeer(outcome)) avoid_.push_back(KeyOf(OtherThan(reporter)));
  last_end_ = std::move(outcome);
  if (!stalled_since_) stalled_since_ = now;
  NextAttempt();
}

void RequestMachine::Close(Attempt& attempt) {
  if (!std::exchange(attempt.decode_closed, true)) actions_.push_back(action::CancelDecode{attempt.number});
  if (!std::exchange(attempt.prefill_closed, true) && attempt.accepted) {
    actions_.push_back(action::CancelPrefill{attempt.number});
  }
}

// -------------------------------------------------------------------------------------------- how the next one starts

void RequestMachine::NextAttempt() {
  if (failures_ >= policy_.max_attempts) {
    state_ = State::kDone;
    const std::string which =
        failures_ == 1 ? "1 attempt failed, by " : Concat(failures_, " attempts failed, the last one by ");
    actions_.push_back(action::Fail{
        absl::UnavailableError(Concat(which, Name(last_end_.cause), ": ", last_end_.detail)), absl::ZeroDuration()});
    return;
  }
  // The first second try, and a look for another worker with room, need not wait.
  if (fruitless_ <= 1 || FindsNoRoom(last_end_)) return Place();
  WaitToPlace();
}

void RequestMachine::Place() {
  state_ = State::kPlacing;
  actions_.push_back(action::Place{avoid_});
}

void RequestMachine::OnPlaced(absl::Time now, PlacementResult result) {
  if (state_ != State::kPlacing) return;
  const bool placed = result.kind == PlacementResult::Kind::kPlaced;
  if (!placed && !stalled_since_) stalled_since_ = now;
  const absl::Duration stalled = stalled_since_ ? now - *stalled_since_ : absl::ZeroDuration();
  const bool overloaded = result.kind == PlacementResult::Kind::kOnlyAvoided && FindsNoRoom(last_end_);
  switch (result.kind) {
    case PlacementResult::Kind::kPlaced:
      break;
    case PlacementResult::Kind::kNoneLive:
      // Who has begun may have lost all workers to a network that comes back.
      if (attempt_ == 0) return Fail(last_end_.cause, absl::UnavailableError(result.detail));
      [[fallthrough]];
    case PlacementResult::Kind::kOnlyAvoided:
    case PlacementResult::Kind::kNoneReady:
      if (overloaded && output_.empty() && stalled >= policy_.overload_wait) return RefuseOverloaded();
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
  open_.prefill_closed = open_.placement.local;
  open_.info.set_attempt(open_.number);
  if (!open_.placement.local) open_.info.set_prefill_worker(open_.placement.prefill.key.id);
  open_.info.set_decode_worker(open_.placement.decode.key.id);
  state_ = State::kRunning;
  actions_.push_back(action::OpenDecode{open_.number, open_.placement});
}

void RequestMachine::WaitToPlace() {
  state_ = State::kWaiting;
  const int doublings = std::min(std::max(fruitless_ - 2, 0), 10);
  const absl::Duration backoff = std::max(kFirstBackoff * (1 << doublings), retry_after_);
  actions_.push_back(action::WakeAfter{std::min(backoff, kMaxBackoff), ++wake_});
}

void RequestMachine::RefuseOverloaded() {
  const absl::Duration retry_after = std::max(retry_after_, kMaxBackoff);
  Fail(Cause::kOverloaded,
       absl::ResourceExhaustedError(absl::StrCat("every worker of model ", spec_.model, " is full (", last_end_.detail,
                                                 "); retry after ", absl::FormatDuration(retry_after))),
       retry_after);
}

// ---------------------------------------------------------------------------------------------- how the request ends

void RequestMachine::BeginClosing(absl::Time now) {
  PromoteSuccessorIfReady();
  DropSuccessor(Outcome(Cause::kCancelled, "the output is complete"));
  // It knows no stop strings either.
  const bool stopped_here = finish_.has_stop_string();
  if (stopped_here && !std::exchange(open_.decode_closed, true)) {
    actions_.push_back(action::CancelDecode{open_.number});
  }
  early_.clear();
  AdvanceClosing(now);
  if (state_ == State::kClosing) actions_.push_back(action::WakeAfter{kClosingGrace, ++wake_});
}

void RequestMachine::AdvanceClosing(absl::Time now) {
  if (state_ != State::kClosing) return;
  // The first token was the last: nothing was handed over, the decode worker has nothing to say.
  if (open_.prefill_closed && !open_.decode_started) Close(open_);
  if (open_.prefill_closed && open_.decode_closed) Finish(now);
}

bool RequestMachine::FinishIfClosing(absl::Time now) {
  if (state_ != State::kClosing) return false;
  Close(open_);
  Finish(now);
  return true;
}

void RequestMachine::Finish(absl::Time now) {
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
  actions_.push_back(action::Finish{std::move(finish_)});
}

void RequestMachine::Fail(Cause cause, absl::Status status, absl::Duration retry_after) {
  if (state_ == State::kRunning || state_ == State::kClosing) {
    Close(open_);
    actions_.push_back(action::AttemptEnded{open_.number, Outcome(cause, std::string(status.message())), std::nullopt});
    DropSuccessor(Outcome(Cause::kCancelled, "the request has failed"));
  }
  state_ = State::kDone;
  actions_.push_back(action::Fail{std::move(status), retry_after});
}

}  // namespace baton::router
