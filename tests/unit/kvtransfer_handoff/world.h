// SPDX-License-Identifier: Apache-2.0
// A model of everything around the two handoff machines, small enough to visit all states. The model has a router with
// two requests of at most two attempts each, a prefill and a decode process, a pool, connections, and one fault.
//
//   router     starts an attempt on both workers, may cancel at any time, and cancels after a failure. Cancels reach
//   the
//              two workers independently and at any time, also after the next attempt has started
//   prefill    two source pages per handoff, of which decode has the first, and one layer: one put. Puts, then commits
//              or finishes the request
//   network    delivers messages about one attempt in order, and messages about different attempts in any order: a real
//              connection does less. A put may land at any time before its flush is done. After prefill has lost the
//              connection or died, its puts may land until decode has revoked the peer
//   decode     a page with the prefix of every prompt, which all attempts share, and three more, of which each grant
//              takes two. Runs a received sequence until the sequence ends or is closed
//   fault      at most one, at any time, of either process: crash, crash and restart, or stop and return. A stopped
//              process takes no steps; its peer hears nothing and may give the connection up
//
// Fair steps happen if no other step does. Unfair steps may never happen: faults, a client's cancel, a timeout. The
// world is at rest in a state without fair steps.
//
// Settle takes some steps as soon as they are possible. No other step can prevent such a step or change its outcome:
// no behaviour is missed, and far fewer states remain.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kvtransfer/handoff/receiver_machine.h"
#include "kvtransfer/handoff/writer_machine.h"
#include "model_pool.h"
#include "mutation.h"

namespace baton::handoff {

constexpr int kRequests = 2;
constexpr int kAttempts = 2;
constexpr int kKeys = kRequests * kAttempts;
constexpr int kConnections = 2;

AttemptKey KeyOfIndex(int index);
int IndexOfKey(const AttemptKey& key);

enum class StepKind : uint8_t {
  kStart,
  kCancel,
  kCloseArrives,
  kAbortArrives,
  kPut,
  kFlushPuts,
  kCommit,
  kFinishEarly,
  kFlushDone,
  kFlushFailed,
  kDeliverToDecode,
  kDeliverToPrefill,
  kSequenceEnds,
  kDecodeSeesSilence,
  kDecodeSeesAlive,
  kDecodeGivesUp,
  kDecodeRevokes,
  kPrefillGivesUp,
  kPrefillRevokes,
  kCrashPrefill,
  kRestartPrefill,
  kCrashDecode,
  kRestartDecode,
  kCount
};
const char* Name(StepKind kind);

struct Step {
  StepKind kind{};
  uint8_t index = 0;  // of the request, attempt or connection, by kind
  bool fair = true;

  std::string ToString() const;
};

class World {
 public:
  // `attempts` of each request, kAttempts at most.
  explicit World(Mutation mutation, std::array<uint8_t, kRequests> attempts = {kAttempts, kAttempts});

  std::vector<Step> Steps() const;  // those that can be taken now
  void Take(const Step& step);

  // Returns the violated rule of this state; empty if no rule is violated.
  std::string Violation() const;
  // The same for a state in which nothing more will happen by itself.
  std::string ViolationAtRest() const;

  template <typename H>
  friend H AbslHashValue(H h, const World& w) {
    return H::combine(std::move(h), w.requests_, w.attempts_, w.prefill_, w.decode_, w.receiver_, w.pool_,
                      w.connections_, w.puts_, w.fault_);
  }

 private:
  enum class Process : uint8_t { kUp, kDead };
  enum class Phase : uint8_t { kIdle, kActive, kDone };

  struct Request {
    uint8_t attempt = 0;  // the current one, from 1
    Phase phase = Phase::kIdle;
    template <typename H>
    friend H AbslHashValue(H h, const Request& r) {
      return H::combine(std::move(h), r.attempt, r.phase);
    }
  };
  struct Handoff {
    WriterMachine writer;
    bool put = false;
    bool commit_asked = false;
    bool source_released = false;   // by kReleaseSourceAtAbort
    std::optional<PageId> granted;  // for kPutAfterRevoke
    template <typename H>
    friend H AbslHashValue(H h, const Handoff& x) {
      return H::combine(std::move(h), x.writer, x.put, x.commit_asked, x.source_released);
    }
  };
  // The world's knowledge about one attempt.
  struct Attempt {
    bool close = false;   // the router's cancel is under way to decode
    bool abort = false;   // ... to prefill
    bool failed = false;  // a worker tells the router that it failed
    bool closed = false;  // decode has heard the close
    uint8_t connection = 0;
    std::optional<Handoff> handoff;
    std::vector<Message> to_decode;
    std::vector<Message> to_prefill;
    std::vector<PageId> running;  // the pages of the sequence at decode

    template <typename H>
    friend H AbslHashValue(H h, const Attempt& a) {
      h = H::combine(std::move(h), a.close, a.abort, a.closed, a.connection, a.running, a.handoff.has_value());
      if (a.handoff) h = H::combine(std::move(h), *a.handoff);
      // Grants are the receiver's state; the texts and reasons of other messages make no difference to an attempt that
      // the router has left, and only to such are they sent.
      for (const Message& m : a.to_decode) h = H::combine(std::move(h), m.index());
      h = H::combine(std::move(h), a.to_decode.size());
      for (const Message& m : a.to_prefill) h = H::combine(std::move(h), m.index());
      return H::combine(std::move(h), a.to_prefill.size());
    }
  };
  struct Connection {
    bool exists = false;
    bool prefill_closing = false;                  // prefill asked its transport to disconnect
    PeerState prefill_view = PeerState::kRevoked;  // of decode; revoked too when prefill is gone
    PeerState decode_view = PeerState::kRevoked;   // of prefill; revoked too when decode is gone
    template <typename H>
    friend H AbslHashValue(H h, const Connection& c) {
      return H::combine(std::move(h), c.exists, c.prefill_closing, c.prefill_view, c.decode_view);
    }
    bool prefill_holds() const { return prefill_view != PeerState::kRevoked; }
    bool decode_holds() const { return decode_view != PeerState::kRevoked; }
    // Messages reach the other side.
    bool carries() const { return prefill_view < PeerState::kGivenUp && decode_view < PeerState::kGivenUp; }
  };
  struct PutInFlight {
    uint8_t key = 0;
    PageId page{};
    bool reads_source = true;
    bool before_flush = true;
    template <typename H>
    friend H AbslHashValue(H h, const PutInFlight& p) {
      return H::combine(std::move(h), p.key, p.page, p.reads_source, p.before_flush);
    }
  };

  void RouterSteps(std::vector<Step>* steps) const;
  void PrefillSteps(std::vector<Step>* steps) const;
  void NetworkSteps(std::vector<Step>* steps) const;
  void FaultSteps(std::vector<Step>* steps) const;

  bool PrefillUp() const { return prefill_ == Process::kUp; }
  bool DecodeUp() const { return decode_ == Process::kUp; }
  Attempt& attempt(int key) { return attempts_[size_t(key)]; }
  const Attempt& attempt(int key) const { return attempts_[size_t(key)]; }
  Connection& connection(int key) { return connections_[attempt(key).connection]; }
  const Connection& connection(int key) const { return connections_[attempt(key).connection]; }
  int CurrentKey(int request) const { return request * kAttempts + requests_[size_t(request)].attempt - 1; }
  bool IsCurrent(int key) const;
  std::optional<uint8_t> UsableConnection() const;
  bool CanConnect() const;
  bool CanLand(const PutInFlight& put) const { return connection(put.key).decode_holds(); }
  bool UnderWay(int key) const;  // a put of it

  void Act(const Step& step);
  void Start(int request);
  void EndAttempt(int request);
  void TellWriter(int key, const WriterMachine::Event& event);
  void TellReceiver(const ReceiverMachine::Event& event);
  void Do(const ReceiverMachine::Action& action);
  void SendToDecode(int key, const Message& message);
  void SendToPrefill(int key, const Message& message);
  void DeliverToDecode(int key);
  void DeliverToPrefill(int key);
  void CloseAtDecode(int key);
  void EndSequence(int key);
  void FinishFlush(int key);
  void DecodeGivesUp(int connection);
  void DecodeRevokes(int connection);
  void PrefillGivesUp(int connection);
  void PrefillRevokes(int connection);
  bool ReadsSource(int connection) const;    // a put through it
  void DetachPuts(int connection, int key);  // they no longer read source pages; key -1: all
  void PrefillDies();
  void DecodeDies();

  void Settle();
  bool SettleRouter();
  bool SettleMessages(int key);
  void Forget();  // what makes no difference any more

  std::string Disagreement() const;

  void Note(const char* violation) {
    if (violation_ == nullptr) violation_ = violation;
  }

  Mutation mutation_;
  std::array<uint8_t, kRequests> max_attempts_;
  ReceiverConfig receiver_config_;
  std::array<Request, kRequests> requests_;
  std::array<Attempt, kKeys> attempts_;
  Process prefill_ = Process::kUp;
  Process decode_ = Process::kUp;
  ReceiverMachine receiver_;
  ModelPool pool_;
  std::array<Connection, kConnections> connections_;
  std::vector<PutInFlight> puts_;
  bool fault_ = false;
  const char* violation_ = nullptr;  // found while taking the last step
};

}  // namespace baton::handoff
