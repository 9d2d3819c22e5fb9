// SPDX-License-Identifier: Apache-2.0
// A ReceiverMachine is the protocol of all handoffs to a decode worker: which attempts are open, and which peer may
// write where.
//
// A pure state machine and a value: no clock, no thread, no I/O. The caller feeds events, carries out the returned
// actions in their order, and lends the Admission. All transitions of an attempt are in transitions.def:
//
//   open       a writer may reserve
//   queued     a writer has reserved; the Admission holds a claim on pages and a slot
//   granted    the writer may put
//   revoking   closed or given up while granted: the receiver waits for the writer's fence
//   received   committed: the pages belong to the caller
//
// Invariant I1: only three events release the wanted pages of a granted or revoking attempt. Commit and Aborted are
// fences, which the writer sends after its flush. The third event is the transport's report that the peer is revoked.
// While the peer is silent or given up, its pages are in quarantine; no timer frees a page. The attempt itself fails as
// soon as the peer is given up.
//
// A grant may begin with published pages of the prompt's prefix. The writer does not write shared pages, and shared
// pages are never in quarantine. The receiver releases shared pages as soon as an attempt is revoking.
//
// A reservation is a claim on the prompt's pages, a page of each KV group to grow into, and a batch slot. After each
// event the receiver carries out the Admission's decisions. A granted or received attempt holds its slot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/ids.h"
#include "common/outcome.h"
#include "engine/kv/layout.h"
#include "engine/types.h"
#include "kvtransfer/handoff/admission.h"
#include "kvtransfer/handoff/messages.h"
#include "kvtransfer/handoff/seen_attempts.h"
#include "kvtransfer/peer.h"

namespace baton::handoff {

struct ReceiverConfig {
  const KvLayout* layout = nullptr;  // outlives the machine
  uint32_t pages_total = 0;
  int max_attempts = 0;  // in all states together

  bool operator==(const ReceiverConfig&) const = default;
};

class ReceiverMachine {
 public:
  // Events.
  struct Close {
    AttemptKey key;
  };
  struct From {
    PeerId peer{};
    Message message;
  };
  struct PeerUp {  // connected, and the pair fits
    PeerId peer{};
  };
  struct PeerChanged {
    PeerId peer{};
    PeerState state = PeerState::kAlive;
    absl::Status why;  // of kGivenUp and kRevoked
  };
  struct Decided {};  // the Admission may have decisions to take
  struct StartDraining {};
  struct StopDraining {};
  using Event = std::variant<Close, From, PeerUp, PeerChanged, Decided, StartDraining, StopDraining>;

  // Actions.
  struct Send {
    PeerId peer{};
    Message message;
  };
  struct Received {  // the caller owns the pages now; the last page of each KV group is for growth
    AttemptKey key;
    std::vector<PageId> pages;
    int tokens = 0;
    int cached_pages = 0;         // number of first pages, which were not put
    std::vector<TokenId> output;  // of Commit
  };
  struct Failed {
    AttemptKey key;
    Outcome why;
  };
  struct FinishedByWriter {
    AttemptKey key;
  };
  using Action = std::variant<Send, Received, Failed, FinishedByWriter>;

  enum class State : uint8_t { kOpen, kQueued, kGranted, kRevoking, kReceived };

  struct Counts {
    int open = 0;
    int queued = 0;
    int granted = 0;
    int revoking = 0;
    int received = 0;
    bool operator==(const Counts&) const = default;
  };

  explicit ReceiverMachine(const ReceiverConfig& config) : config_(config) {}

  // Opens an attempt of a request that is due at `due`.
  // ALREADY_EXISTS: the attempt is open. FAILED_PRECONDITION: this or a later attempt of the request was open before.
  // RESOURCE_EXHAUSTED: max_attempts are open. UNAVAILABLE: the worker drains.
  absl::Status Open(const AttemptKey& key, absl::Time due);

  std::vector<Action> On(const Event& event, Admission& admission);

  // Returns whether all pages [first, first + count) are granted to `peer` for `stream`, without a later fence.
  bool MayWrite(PeerId peer, StreamId stream, uint32_t first, uint32_t count) const;

  Counts counts() const;
  std::optional<State> state(const AttemptKey& key) const;

  bool operator==(const ReceiverMachine&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const ReceiverMachine& r) {
    return H::combine(std::move(h), r.attempts_, r.silent_, r.seen_, r.draining_);
  }

 private:
  using Actions = std::vector<Action>;
  struct Attempt {
    State state = State::kOpen;
    absl::Time due;
    PeerId peer{};                 // from queued on
    int tokens = 0;                // from queued on
    GrantedPages granted;          // while granted or revoking; the last page of each KV group is for growth
    std::vector<PageId> writable;  // WantedPages(), sorted

    // Returns the pages that are not shared: the writer's pages and the pages for growth.
    std::span<const PageId> own_pages() const { return std::span(granted.pages).subspan(granted.cached); }
    bool operator==(const Attempt&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Attempt& a) {
      return H::combine(std::move(h), a.state, a.peer, a.tokens, a.granted.pages, a.granted.cached);
    }
  };
  using Attempts = std::map<AttemptKey, Attempt>;

  void Handle(const Close& close, Admission& admission, Actions* out);
  void Handle(const From& from, Admission& admission, Actions* out);
  void Handle(const PeerUp& up, Admission& admission, Actions* out);
  void Handle(const PeerChanged& changed, Admission& admission, Actions* out);
  void Handle(const Decided&, Admission&, Actions*) {}
  void Handle(const StartDraining&, Admission&, Actions*) { draining_ = true; }
  void Handle(const StopDraining&, Admission&, Actions*) { draining_ = false; }

  void Receive(PeerId peer, const Reserve& reserve, Admission& admission, Actions* out);
  void Receive(PeerId peer, const CancelReserve& cancel, Admission& admission, Actions* out);
  void Receive(PeerId peer, const Commit& commit, Admission& admission, Actions* out);
  void Receive(PeerId peer, const Aborted& aborted, Admission& admission, Actions* out);

  // Returns the attempt if `peer` has reserved for it, else end().
  Attempts::iterator FindReserved(const AttemptKey& key, PeerId peer);
  // Frees the attempt's slot, or withdraws its claim. The caller has released the attempt's pages.
  Attempts::iterator Erase(Attempts::iterator it, Admission& admission);
  void Refuse(Attempts::iterator it, Outcome why, Admission& admission, Actions* out);
  void SetSilent(PeerId peer, bool silent, Admission& admission);
  // Fails the attempts of the peer. Granted attempts become revoking.
  void GiveUp(PeerId peer, const absl::Status& why, Admission& admission, Actions* out);
  void ForgetPeer(PeerId peer, const absl::Status& why, Admission& admission, Actions* out);

  void CarryOutDecisions(Admission& admission, Actions* out);
  void Grant(Attempts::iterator it, GrantedPages granted, Admission& admission, Actions* out);
  // Frees the slot and the shared pages of a granted attempt. Shared pages need no fence: no writer writes to them.
  static void StartRevoking(Attempts::iterator it, Admission& admission);
  bool Silent(PeerId peer) const;
  // The pages that the writer writes.
  std::span<const PageId> WantedPages(const Attempt& attempt) const {
    return attempt.own_pages().first(attempt.own_pages().size() - config_.layout->groups());
  }
  int64_t PagesNeeded(int tokens) const {
    return ((int64_t{tokens} - 1) / config_.layout->page_tokens() + 2) * config_.layout->groups();
  }
  bool Holds(const Attempt& a) const { return a.state == State::kGranted || a.state == State::kRevoking; }
  // Returns why `commit` does not fit the grant; empty if the Commit fits.
  std::string CommitError(const Attempt& attempt, const Commit& commit) const;

  ReceiverConfig config_;
  Attempts attempts_;
  std::map<StreamId, AttemptKey> streams_;  // of granted and revoking attempts
  std::map<PeerId, bool> silent_;           // by connected peer
  SeenAttempts seen_;
  bool draining_ = false;
};

}  // namespace baton::handoff
