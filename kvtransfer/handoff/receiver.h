// The receiver's side of all handoffs of a decode worker: which attempts are open, who waits for pages, who may write
// where.
//
// A pure state machine and a value: no clock, no thread, no I/O. The caller feeds events, carries out the actions that
// come back, in their order, and lends the page source. All transitions of an attempt are in transitions.def:
//
//   open       a writer may reserve
//   queued     one has; it waits for pages and a slot
//   granted    it may put
//   revoking   closed or given up while granted: the writer's fence is awaited
//   received   committed: the pages belong to the caller
//
// Invariant I1: wanted pages of granted and revoking attempts are released on three events only: Commit and Aborted,
// which the writer sends after its flush, and the transport's word that the peer is revoked. While their peer is silent
// or given up they are in quarantine; no timer frees them. Their attempts do not wait for that: they fail when the peer
// is given up.
//
// Pages that hold the beginning of the prompt already are part of a grant without being wanted. They are shared: the
// writer may not write them, they are never in quarantine, and they are released when the attempt is revoked.
//
// Grants are all or nothing: the prompt's pages, one to grow into, and a batch slot, leaving some pages for the growth
// of the sequences there are. One FIFO serves all writers; a reservation that fits may pass older ones that do not,
// each of them max_bypass times at most. Local sequences, which do not come through here, may pass the oldest one
// likewise, once at least, and may say that they are next: then nothing is granted but what may not be passed any more.
// Reservations of silent peers neither advance nor hold others up.
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
#include "common/ids.h"
#include "common/outcome.h"
#include "engine/types.h"
#include "kvtransfer/handoff/messages.h"
#include "kvtransfer/handoff/page_source.h"
#include "kvtransfer/handoff/seen_attempts.h"
#include "kvtransfer/peer.h"

namespace baton::handoff {

struct ReceiverConfig {
  int layers = 0;
  int page_tokens = 0;
  uint32_t pages_total = 0;
  int max_attempts = 0;   // open, queued, granted, revoking and received ones
  int max_sequences = 0;  // granted, received and local ones
  int max_queue = 0;
  int max_bypass = 0;
  int growth_watermark_pages = 0;

  bool operator==(const ReceiverConfig&) const = default;
};

class Receiver {
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
  struct PagesFreed {};
  struct LocalSequences {
    int count = 0;      // in the batch
    bool next = false;  // another one waits for what becomes free
    bool operator==(const LocalSequences&) const = default;
  };
  struct StartDraining {};
  using Event = std::variant<Close, From, PeerUp, PeerChanged, PagesFreed, LocalSequences, StartDraining>;

  // Actions.
  struct Send {
    PeerId peer{};
    Message message;
  };
  struct Received {  // the pages, the last one to grow into, belong to the caller now
    AttemptKey key;
    std::vector<PageId> pages;
    int tokens = 0;
    int cached_pages = 0;         // the first so many of `pages` were not put
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

  explicit Receiver(const ReceiverConfig& config) : config_(config) {}

  // ALREADY_EXISTS if the attempt is open (or further), FAILED_PRECONDITION if it, or a later one, was before,
  // RESOURCE_EXHAUSTED beyond max_attempts, UNAVAILABLE when draining.
  absl::Status Open(const AttemptKey& key);

  std::vector<Action> On(const Event& event, PageSource& pages);

  // Were all of the pages [first, first + count) granted to `peer` for the puts of `stream`, with no fence since?
  bool MayWrite(PeerId peer, StreamId stream, uint32_t first, uint32_t count) const;

  Counts counts() const;
  std::optional<State> state(const AttemptKey& key) const;
  // The oldest reservation that waits may not be passed once more: no local sequence is to start.
  bool queued_first() const;

  bool operator==(const Receiver&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const Receiver& r) {
    return H::combine(std::move(h), r.attempts_, r.fifo_, r.silent_, r.seen_, r.local_.count, r.local_.next,
                      r.draining_);
  }

 private:
  using Actions = std::vector<Action>;
  struct Attempt {
    State state = State::kOpen;
    PeerId peer{};                      // from queued on
    int tokens = 0;                     // from queued on
    int bypassed = 0;                   // how often another one started while this waited
    std::vector<PageHash> page_hashes;  // while queued
    GrantedPages granted;               // while granted or revoking; the last page is not for the writer
    std::vector<PageId> writable;       // wanted_pages(), sorted

    // Not shared: those that the writer puts, and the last one.
    std::span<const PageId> own_pages() const { return std::span(granted.pages).subspan(granted.cached); }
    std::span<const PageId> wanted_pages() const { return own_pages().first(own_pages().size() - 1); }
    bool operator==(const Attempt&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Attempt& a) {
      return H::combine(std::move(h), a.state, a.peer, a.tokens, a.bypassed, a.page_hashes, a.granted.pages,
                        a.granted.cached);
    }
  };
  using Attempts = std::map<AttemptKey, Attempt>;

  void Handle(const Close& close, PageSource& pages, Actions* out);
  void Handle(const From& from, PageSource& pages, Actions* out);
  void Handle(const PeerUp& up, PageSource& pages, Actions* out);
  void Handle(const PeerChanged& changed, PageSource& pages, Actions* out);
  void Handle(const PagesFreed&, PageSource&, Actions*) {}
  void Handle(const LocalSequences& local, PageSource&, Actions*);
  void Handle(const StartDraining&, PageSource&, Actions*) { draining_ = true; }

  void Receive(PeerId peer, const Reserve& reserve, PageSource& pages, Actions* out);
  void Receive(PeerId peer, const CancelReserve& cancel, PageSource& pages, Actions* out);
  void Receive(PeerId peer, const Commit& commit, PageSource& pages, Actions* out);
  void Receive(PeerId peer, const Aborted& aborted, PageSource& pages, Actions* out);

  // The attempt if it is reserved by `peer`, else end().
  Attempts::iterator FindReserved(const AttemptKey& key, PeerId peer);
  Attempts::iterator Erase(Attempts::iterator it);
  void Refuse(Attempts::iterator it, Outcome why, Actions* out);
  void SetSilent(PeerId peer, bool silent, PageSource& pages);
  // Ends its attempts; what it was granted stays revoking.
  void GiveUp(PeerId peer, const absl::Status& why, PageSource& pages, Actions* out);
  void ForgetPeer(PeerId peer, const absl::Status& why, PageSource& pages, Actions* out);

  // Grants what can be granted, after every event.
  void ServeQueue(PageSource& pages, Actions* out);
  void RefuseUnservable(Actions* out);
  // False if the pages or the growth reserve are not there.
  bool Grant(Attempts::iterator it, int leave, PageSource& pages, Actions* out);
  bool Silent(PeerId peer) const;
  std::optional<AttemptKey> OldestWaiting() const;  // of a peer that is not silent
  bool Holds(const Attempt& a) const { return a.state == State::kGranted || a.state == State::kRevoking; }
  int64_t PagesNeeded(int tokens) const {
    return (int64_t{tokens} + config_.page_tokens - 1) / config_.page_tokens + 1;
  }
  int SequenceCount() const;
  int PagesOfSilentPeers() const;
  static void ReleaseShared(Attempt& attempt, PageSource& pages);
  std::string CommitError(const Attempt& attempt, const Commit& commit) const;  // empty: it fits

  ReceiverConfig config_;
  Attempts attempts_;
  std::vector<AttemptKey> fifo_;            // the queued ones, oldest first
  std::map<StreamId, AttemptKey> streams_;  // of the granted and revoking ones
  std::map<PeerId, bool> silent_;           // the peers there are
  SeenAttempts seen_;
  LocalSequences local_;
  bool draining_ = false;
};

}  // namespace baton::handoff
