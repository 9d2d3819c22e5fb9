// SPDX-License-Identifier: Apache-2.0
// The life of one request as a state machine without I/O, threads or a clock: events in, actions out.
//
//   state      | waits for                              | leaves when
//   -----------+----------------------------------------+------------------------------------------------------------
//   kPlacing   | a pair of workers                      | placed -> kRunning; no pair -> kWaiting or kDone
//   kRunning   | tokens of the open attempt             | the attempt fails -> kPlacing, kWaiting or kDone;
//              |                                        | the output is complete -> kClosing
//   kWaiting   | the backoff to pass                    | woken -> kPlacing
//   kClosing   | what the workers report at their end   | both calls ended, or a grace period -> kDone
//   kDone      | nothing                                |
//
// An attempt has two calls, each with a CallPhase. The decode call is opened first; when the decode worker has
// accepted, the prefill call follows, unless the decode worker computes the prompt itself. Progress says how far the
// decode worker is. When an attempt ends without the whole output, attempt n is cancelled and its events are ignored;
// then attempt n+1 starts with the output so far. Events therefore carry the number of their attempt, and events of an
// attempt that is not open do nothing. common/outcome.h says what follows from how an attempt ended: whom the next
// attempt avoids, whether the pair is broken, and whether another attempt can help at all.
//
// Migration is the exception: when a decode worker drains, attempt n+1 is opened at another decode worker while n goes
// on. The worker of n hands the sequence over. Both attempts may send tokens until n+1 has taken over. A request's pin
// may ask for a migration, too, and names the target.
//
// Tokens leave in the order of their output index, each once. A token that comes again must be the same: otherwise the
// request fails with INTERNAL, because no answer can be trusted then. The machine, not the workers, decides where the
// output ends, so that a worker's death after the last token loses nothing.
//
// The parts: request_machine.cc (events, the request's end), request_tokens.cc (tokens), request_attempts.cc (how an
// attempt ends and the next one starts), request_migration.cc (migration).
//
// Not thread-safe: the owner calls it from one strand, and runs TakeActions() after each event.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "baton/v1/inference.pb.h"
#include "baton/v1/worker.pb.h"
#include "common/outcome.h"
#include "common/steady_time.h"
#include "router/placer.h"
#include "router/request_spec.h"
#include "router/text_assembler.h"
#include "text/tokenizer/tokenizer.h"

namespace baton::router {

struct RetryPolicy {
  int max_attempts = 8;          // failed ones; preempted and refused for load are not counted
  absl::Duration overload_wait;  // for room, before the first token; after it until the deadline
  absl::Duration placement_wait =
      absl::Seconds(10);  // for a pair to become ready; once begun, to come back to life, too
};

// The reason of a wake-up. A later wake-up replaces all earlier wake-ups.
enum class WakeReason : uint8_t {
  kPlace,    // the backoff has passed: look for workers
  kMigrate,  // try the migration again
  kFinish,   // the workers had their time for last words
};
struct Wake {
  WakeReason reason = WakeReason::kPlace;
  uint32_t number = 0;
  bool operator==(const Wake&) const = default;
};

namespace action {
struct Place {  // -> OnPlaced
  std::vector<WorkerKey> avoid;
};
struct OpenDecode {
  uint32_t attempt;
  Placement placement;
};
struct SubmitPrefill {
  uint32_t attempt;
};
struct PlaceMigration {  // -> OnMigrationPlaced
  std::vector<WorkerKey> avoid;
};
// Asks the decode worker of `from` to hand the sequence over to `attempt`. Events of that call are prefill events of
// `attempt`.
struct Migrate {
  uint32_t from;
  uint32_t attempt;
  uint32_t prior_output_tokens;  // of `attempt`
};
struct CancelDecode {
  uint32_t attempt;
};
struct CancelPrefill {
  uint32_t attempt;
};
struct WakeAfter {  // -> OnWake(wake)
  absl::Duration delay;
  Wake wake;
};
struct AttemptEnded {
  uint32_t attempt;
  Outcome outcome;
  std::optional<uint64_t> broken_pair;  // the attempt's pair, if handoffs between the two do not work
};
struct Resumed {  // tokens reach the client again after an attempt ended in mid-answer
  uint32_t attempt;
  Cause after;  // why the previous attempt ended
  absl::Duration pause;
};
struct HandedOver {  // the KV of a prompt has moved between the workers of `pair`
  uint64_t pair;
  v1::HandedOver measured;
};
struct Disagreement {  // counted; the request fails
  uint32_t output_index;
  TokenId had;
  TokenId got;
};
struct Send {
  v1::Chunk chunk;
};
struct Finish {  // last
  v1::Finish finish;
};
struct Fail {  // last
  Cause cause;
  absl::Status status;
  absl::Duration retry_after;  // a hint with RESOURCE_EXHAUSTED
};
}  // namespace action

using Action =
    std::variant<action::Place, action::OpenDecode, action::SubmitPrefill, action::PlaceMigration, action::Migrate,
                 action::CancelDecode, action::CancelPrefill, action::WakeAfter, action::AttemptEnded,
                 action::HandedOver, action::Resumed, action::Disagreement, action::Send, action::Finish, action::Fail>;

class RequestMachine {
 public:
  // `spec` and `tokenizer` outlive the machine. `received` is when the request came in. All times come from one clock
  // of the caller's choice.
  RequestMachine(const RequestSpec& spec, const Tokenizer& tokenizer, const RetryPolicy& policy, SteadyTime received);

  void Start();
  void OnPlaced(SteadyTime now, PlacementResult result);
  void OnMigrationPlaced(SteadyTime now, PlacementResult result);
  void OnWake(SteadyTime now, const Wake& wake);
  // The client went away, or the router stops.
  void OnCancelled(SteadyTime now, const absl::Status& why);
  // The request's deadline passed.
  void OnDeadline(SteadyTime now);

  void OnDecodeEvent(SteadyTime now, uint32_t attempt, const v1::DecodeEvent& event);
  void OnPrefillEvent(SteadyTime now, uint32_t attempt, const v1::PrefillEvent& event);
  // The call ended with `status`. If no terminal event came before, the attempt ends, whatever the status.
  void OnDecodeEnded(SteadyTime now, uint32_t attempt, const absl::Status& status);
  void OnPrefillEnded(SteadyTime now, uint32_t attempt, const absl::Status& status);

  std::vector<Action> TakeActions() { return std::exchange(actions_, {}); }

  bool done() const { return state_ == State::kDone; }
  // Returns the tokens sent so far, which are the prior output of the next attempt.
  const std::vector<TokenId>& output() const { return output_; }
  uint32_t attempts() const { return attempt_; }

 private:
  enum class State { kPlacing, kWaiting, kRunning, kClosing, kDone };
  enum class Side { kPrefill, kDecode };

  // One of the two calls of an attempt. The prefill call of a migration is the Migrate call.
  enum class CallPhase : uint8_t {
    kNotNeeded,  // the decode worker computes the prompt itself
    kNotOpened,  // the decode worker has not accepted the attempt yet
    kOpen,
    kEnded,      // the last event, or the call's status, has come
    kCancelled,  // the machine cancelled the call and ignores its events
  };
  static bool IsOver(CallPhase phase) { return phase != CallPhase::kNotOpened && phase != CallPhase::kOpen; }
  // How far the decode worker has come, in this order. Progress stays when the call is over.
  enum class Progress : uint8_t {
    kNone,
    kAccepted,  // a prefill worker may reserve
    kStarted,   // the decode worker has the sequence
    kMigrated,  // the decode worker has handed the sequence over
  };
  enum class Origin : uint8_t { kPrompt, kMigration };

  struct Attempt {
    uint32_t number = 0;
    Placement placement;  // in a migration, `prefill` is the decode worker that hands over
    Origin origin = Origin::kPrompt;
    size_t prior_tokens = 0;
    uint32_t next_output_index = 0;  // once a migration has started: the previous attempt sends all tokens before
    CallPhase decode = CallPhase::kOpen;
    CallPhase prefill = CallPhase::kNotOpened;
    Progress progress = Progress::kNone;
    bool draining = false;                            // the decode worker drains
    std::optional<v1::WorkerFinished> finished = {};  // what the worker said of the output's end
    v1::AttemptInfo info;

    bool started() const { return progress >= Progress::kStarted; }
    // The prefill side will send nothing more. Without a decode call, no prefill call is opened either.
    bool prefill_over() const { return IsOver(prefill) || (prefill == CallPhase::kNotOpened && IsOver(decode)); }
  };

  bool IsOpen(uint32_t attempt) const;
  bool IsSuccessor(uint32_t attempt) const { return successor_ && successor_->number == attempt; }
  const WorkerKey& KeyOf(Side side) const;
  void WakeAfter(absl::Duration delay, WakeReason reason);
  static Side OtherThan(Side side) { return side == Side::kPrefill ? Side::kDecode : Side::kPrefill; }

  // Tokens.
  void OnToken(const v1::TokenEvent& event);
  void SendReady(SteadyTime now);
  void Resume();
  void Append(const v1::TokenEvent& event, v1::Chunk& chunk);
  void EndOutput(TextAssembler::Delta rest, v1::FinishReason reason, v1::Chunk& chunk);
  void StopAt(const std::string& stop_string);
  void Disagree(uint32_t index, TokenId had, TokenId got);

  // How an attempt ends.
  void OnDecodeStarted(const v1::DecodeStarted& started);
  void NotePrefill(double seconds, uint32_t cached_prompt_tokens);
  void OnHandedOver(Attempt& attempt, const v1::HandedOver& handed_over);
  void OnMigrated(SteadyTime now);
  void OnWorkerFinished(SteadyTime now, const v1::WorkerFinished& finished);
  void CheckStranded(SteadyTime now);
  // The rest of the output comes from the decode worker alone: the prefill side may fail.
  bool DecodeHasAll() const;
  void OnFailed(SteadyTime now, Side side, const v1::AttemptFailed& failed);
  void OnCallEnded(SteadyTime now, Side side, const absl::Status& status);
  static Outcome OutcomeOfCall(Side side, const absl::Status& status);
  // Ends the open attempt with an outcome that the worker of `side` reported, or that the router saw at that worker.
  // Then starts another attempt, if another attempt can help, or fails the request.
  void OnEndedBy(SteadyTime now, Side side, const Outcome& outcome);
  // Ends the open attempt and starts another one, unless max_attempts have failed.
  void EndAttempt(SteadyTime now, Side reporter, Outcome outcome);
  // Cancel calls that are not over; Close cancels both.
  void CancelDecode(Attempt& attempt);
  void CancelPrefill(Attempt& attempt);
  void Close(Attempt& attempt);

  // Migration.
  // The sequence belongs elsewhere: its decode worker drains, or the request's pin says so.
  bool ShouldMigrate() const;
  void BeginMigration();
  void RetryMigration();
  void OnSuccessorDecodeEvent(SteadyTime now, const v1::DecodeEvent& event);
  void OnSuccessorPrefillEvent(SteadyTime now, const v1::PrefillEvent& event);
  void OnSuccessorCallEnded(SteadyTime now, Side side, const absl::Status& status);
  // Promotes once the successor has the sequence and the client has all tokens of the attempt before.
  void PromoteSuccessorIfReady();
  void PromoteSuccessor();
  void DropSuccessor(Outcome outcome);
  // Drops the successor; the open attempt goes on. If the open attempt has handed its sequence over, both end.
  void LoseSuccessor(SteadyTime now, Side reporter, const Outcome& outcome);

  // How the next one starts.
  void NextAttempt();
  void Place();
  void WaitToPlace();
  // `estimate`: of when there is room.
  void RefuseOverloaded(absl::Duration estimate);

  // How the request ends.
  void BeginClosing(SteadyTime now);
  void AdvanceClosing(SteadyTime now);
  void Finish(SteadyTime now);
  // Finishes at once if the whole output was sent: the workers' last words are not worth failing for.
  bool FinishIfClosing(SteadyTime now);
  void Fail(Cause cause, absl::Status status, absl::Duration retry_after = absl::ZeroDuration());

  const RequestSpec& spec_;
  const Tokenizer& tokenizer_;
  const RetryPolicy policy_;
  const SteadyTime received_;
  const std::vector<TokenId> stop_token_ids_;  // sorted
  TextAssembler text_;

  State state_ = State::kPlacing;
  std::vector<Action> actions_;
  uint32_t attempt_ = 0;  // the latest
  Attempt open_;
  std::optional<Attempt> successor_;  // takes the sequence of the open attempt over
  bool placing_successor_ = false;
  std::vector<WorkerKey> avoid_successors_;
  int failed_migrations_ = 0;  // in a row
  bool has_migrated_ = false;
  std::map<uint32_t, v1::TokenEvent> early_;  // by index: tokens whose predecessor has not come; under max_tokens
  std::vector<TokenId> output_;

  // Further attempts.
  Outcome last_end_{Cause::kFinished, ""};  // how the previous attempt ended
  int failures_ = 0;
  int fruitless_ = 0;  // attempts and placements in a row without a new token; each lengthens the backoff
  std::optional<SteadyTime> stalled_since_;  // since then no worker has worked for the request
  std::vector<WorkerKey> avoid_;
  absl::Duration retry_after_ = absl::ZeroDuration();  // what an overloaded worker asked for
  Wake wake_;                                          // the latest

  // For the client, at the end.
  v1::Finish finish_;
  bool submitted_ = false;
  bool cached_known_ = false;
  bool decode_cached_known_ = false;
  std::optional<SteadyTime> first_token_;
  SteadyTime last_token_;
  absl::Duration last_gap_;            // between the tokens sent last and those before
  std::optional<Cause> paused_since_;  // no token has come since an attempt ended so
};

}  // namespace baton::router
