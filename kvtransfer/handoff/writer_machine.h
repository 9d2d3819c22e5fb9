// SPDX-License-Identifier: Apache-2.0
// A WriterMachine is the protocol of one handoff: a worker hands the KV pages of a sequence to a decode worker.
//
// A pure state machine and a value: no clock, no thread, no I/O. The caller feeds events and carries out the returned
// actions in their order. All transitions are in transitions.def:
//
//   reserving, queued   Reserve was sent; the writer waits for Granted
//   granted             the writer puts pages
//   flushing            no put follows; the fence or the report leaves when all puts have landed
//   flushed             all puts have landed ahead of Commit, while the sequence went on
//   committing          Commit was the fence; the writer waits for Committed
//
// Two rules carry invariant I1. A fence (Commit, Aborted) leaves only when nothing was put or the flush is complete. A
// failed flush proves nothing about the receiver's memory: the writer then disconnects and sends no fence. Source pages
// are released (Fail, Release, Finish) only when no put reads them any more.
//
// The caller may forget an ended handoff. AnswerToUnknown then answers a Granted that crossed the withdrawal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/ids.h"
#include "common/outcome.h"
#include "engine/kv/layout.h"
#include "engine/types.h"
#include "kvtransfer/handoff/messages.h"

namespace baton::handoff {

struct WriterConfig {
  const KvLayout* layout = nullptr;  // outlives the machine
  uint32_t peer_pages_total = 0;     // bound of the page ids in a grant

  bool operator==(const WriterConfig&) const = default;
};

class WriterMachine {
 public:
  // Events. Start is first and comes once.
  struct Start {};
  struct PutLayer {  // `layer` is complete in its group's pages among `sources`: the prompt's pages from `first_page`
                     // on
    int layer = 0;
    int first_page = 0;
    std::vector<PageId> sources;
  };
  struct FlushPuts {};     // all pages were put; the sequence still decodes
  struct CommitSequence {  // all pages were put, perhaps also flushed
    std::vector<TokenId> output;
  };
  struct Abort {
    Cause cause = Cause::kCancelled;
  };
  struct FlushDone {};
  struct FlushFailed {  // no put reads local memory any more, but some puts have not landed
    absl::Status status;
  };
  struct PeerGivenUp {  // a pending flush will still be done or fail
    absl::Status why;
  };
  struct PeerRevoked {
    absl::Status why;
  };
  using Event = std::variant<Start, Message, PutLayer, FlushPuts, CommitSequence, Abort, FlushDone, FlushFailed,
                             PeerGivenUp, PeerRevoked>;

  // Actions.
  struct Send {
    Message message;
  };
  struct Put {  // from local page sources[i] to the peer's page destinations[i]
    int layer = 0;
    std::vector<PageId> sources;
    std::vector<PageId> destinations;
  };
  struct Flush {};
  struct Disconnect {};  // the peer then revokes this worker
  struct ReportQueued {};
  struct ReportGranted {};
  struct ReportFlushed {};
  // One of these three is the last action of a handoff: no put reads local pages any more.
  struct Finish {};  // the receiver owns the sequence
  struct Fail {
    Outcome why;
  };
  struct Release {};  // the answer to Abort
  using Action =
      std::variant<Send, Put, Flush, Disconnect, ReportQueued, ReportGranted, ReportFlushed, Finish, Fail, Release>;

  enum class State : uint8_t { kNew, kReserving, kQueued, kGranted, kFlushing, kFlushed, kCommitting, kEnded };

  // `reservation.tokens` is positive.
  WriterMachine(const WriterConfig& config, Reserve reservation)
      : config_(config), reservation_(std::move(reservation)) {}

  std::vector<Action> On(const Event& event);

  // Returns the answer, if any, to a message about a handoff that has ended or never began.
  static std::optional<Message> AnswerToUnknown(const Message& message);

  const AttemptKey& key() const { return reservation_.key; }
  State state() const { return state_; }
  bool ended() const { return state_ == State::kEnded; }

  bool operator==(const WriterMachine&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const WriterMachine& w) {
    return H::combine(std::move(h), w.reservation_.key, w.state_, w.pages_, w.wanted_, w.tags_, w.output_, w.next_,
                      w.abort_cause_, w.lost_, w.aborted_);
  }

 private:
  using Actions = std::vector<Action>;
  enum class AfterFlush : uint8_t { kReport, kCommit, kAborted };

  bool Waiting() const { return state_ == State::kReserving || state_ == State::kQueued; }
  absl::Status CheckGrant(const Granted& granted) const;
  // Flushes the puts; the fence is then an Aborted with `cause`. Does nothing unless granted or flushing.
  void FlushAndAbort(Cause cause, Actions* out);
  void StartFlush(AfterFlush next, Actions* out);
  void StartFlush(Cause cause, Actions* out);
  void SendCommit(Actions* out);
  void End(Action last, Actions* out);
  // Returns why the writer ended the handoff without an Abort of its worker.
  Outcome WhyAborted() const;
  // Ends with Release after an Abort, else with Fail.
  void EndUnfinished(Outcome why, Actions* out);

  void Handle(const Start&, Actions* out);
  void Handle(const Message& message, Actions* out);
  void Handle(const PutLayer& put, Actions* out);
  void Handle(const FlushPuts&, Actions* out);
  void Handle(const CommitSequence& commit, Actions* out);
  void Handle(const Abort& abort, Actions* out);
  void Handle(const FlushDone&, Actions* out);
  void Handle(const FlushFailed& failed, Actions* out);
  void Handle(const PeerGivenUp& given_up, Actions* out);
  void Handle(const PeerRevoked& revoked, Actions* out);

  void Receive(const Queued&, Actions* out);
  void Receive(const Granted& granted, Actions* out);
  void Receive(const Refused& refused, Actions* out);
  void Receive(const Committed& committed, Actions* out);
  void Receive(const Revoke&, Actions* out);

  WriterConfig config_;
  Reserve reservation_;
  State state_ = State::kNew;
  std::vector<PageId> pages_;  // granted
  std::vector<int> wanted_;
  uint64_t tags_ = 0;  // sum of BlockTag over the put blocks
  std::vector<TokenId> output_;
  AfterFlush next_ = AfterFlush::kCommit;  // while flushing
  Cause abort_cause_ = Cause::kCancelled;  // of kAborted
  std::string lost_;                       // why the peer was given up, if abort_cause_ is kPeerLost
  bool aborted_ = false;                   // by Abort: the last action is Release
};

}  // namespace baton::handoff
