// SPDX-License-Identifier: Apache-2.0
// The side that hands over: one handoff::WriterMachine per handoff, one connection per decode worker.
//
// `mutex_` guards all state. The endpoint sends messages under the mutex, so that messages leave in the machines'
// order. Callbacks run without the mutex, because a callback may call the endpoint.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/status_macros.h"
#include "common/steady_time.h"
#include "kvtransfer/endpoints/endpoints.h"
#include "kvtransfer/endpoints/make_endpoint.h"
#include "kvtransfer/endpoints/peer_log.h"
#include "kvtransfer/endpoints/put_pieces.h"
#include "kvtransfer/handoff/seen_attempts.h"
#include "kvtransfer/handoff/writer_machine.h"
#include "kvtransfer/wire/codec.h"

namespace baton {
namespace {

using Machine = handoff::WriterMachine;

class SenderEndpoint final : public TransportSender {
 public:
  SenderEndpoint(const HandoffIdentity& identity, const SenderOptions& options, Transport* transport, PagePool* pool)
      : options_(options), transport_(transport), pool_(pool), self_(HelloOf(identity, *pool)) {}

  void Reserve(const AttemptKey& key, const HandoffTarget& target, int tokens, std::vector<PageHash> hashes,
               Events events) override;
  void PutLayer(const AttemptKey& key, int layer, int first_page, std::span<const PageId> pages) override;
  void Flush(const AttemptKey& key) override;
  void Commit(const AttemptKey& key, std::vector<TokenId> output) override;
  void Abort(const AttemptKey& key, bool finished, std::function<void()> released) override;

  void OnPeerAccepted(PeerId peer) override { transport_->Disconnect(peer); }  // no peer connects to a sender
  void OnMessage(PeerId peer, std::string_view bytes) override;
  void OnPeerState(PeerId peer, PeerState state, const absl::Status& why) override;
  bool AllowWrite(PeerId, StreamId, uint64_t, uint64_t) override { return false; }

 private:
  using TargetKey = std::tuple<std::string, uint64_t, std::string>;  // worker_id, epoch, address
  // Runs callbacks after the lock: to be declared before the lock.
  class Callbacks {
   public:
    Callbacks() = default;
    Callbacks(const Callbacks&) = delete;
    Callbacks& operator=(const Callbacks&) = delete;
    ~Callbacks() {
      for (const auto& callback : callbacks_) callback();
    }
    void Add(std::function<void()> callback) { callbacks_.push_back(std::move(callback)); }

   private:
    std::vector<std::function<void()>> callbacks_;
  };

  // A connection to one target. Erased when the target is lost or given up; the handoffs keep the PeerId.
  struct Connection {
    enum class State : uint8_t { kConnecting, kGreeting, kReady };
    State state = State::kConnecting;
    PeerId peer{};  // from greeting on
    bool silent = false;
    uint32_t peer_pages_total = 0;  // when ready
  };
  using Connections = std::map<TargetKey, Connection>;

  struct Handoff {
    TargetKey target;
    handoff::Reserve reservation;
    Events events;
    std::optional<Machine> writer;  // once the connection is ready
    PeerId peer{};                  // of the writer
    uint32_t peer_pages_total = 0;
    std::vector<std::function<void()>> released;  // once aborted
    SteadyTime first_put = SteadyTime::InfiniteFuture();
    SteadyTime commit_asked;
    uint64_t bytes = 0;
  };
  using Handoffs = absl::flat_hash_map<AttemptKey, std::unique_ptr<Handoff>>;

  // Returns why the handoff cannot begin; nullopt if the handoff can.
  std::optional<Outcome> Admit(const handoff::Reserve& reservation, const TargetKey& target)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Connect(const TargetKey& target) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnConnected(const TargetKey& target, const absl::StatusOr<PeerId>& peer);
  void OnWelcome(Connections::iterator it, const handoff::Welcome& welcome, Callbacks* callbacks)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // FAILED_PRECONDITION: the workers do not fit. UNAVAILABLE: another worker answers.
  absl::Status CheckWelcome(const TargetKey& target, const handoff::Welcome& welcome) const;
  Connections::iterator FindConnection(PeerId peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Erases the connection and fails the handoffs that wait for it. A handoff that has begun ends when its peer is given
  // up or revoked.
  void DropConnection(Connections::iterator it, PeerState state, const absl::Status& why, Callbacks* callbacks,
                      Cause cause = Cause::kPeerLost) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Feeds the machine of `key` and carries out its actions. Erases a handoff that has ended.
  void Tell(const AttemptKey& key, const Machine::Event& event, Callbacks* callbacks)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellAllOf(PeerId peer, const Machine::Event& event, Callbacks* callbacks) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellAndRun(const AttemptKey& key, const Machine::Event& event);
  void Carry(Handoff& handoff, const Machine::Action& action, Callbacks* callbacks)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Put(Handoff& handoff, const Machine::Put& put) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  HandoffStats Stats(const Handoff& handoff) const;

  const SenderOptions options_;
  Transport* const transport_;
  PagePool* const pool_;
  const handoff::Hello self_;

  Mutex mutex_;
  Connections connections_ ABSL_GUARDED_BY(mutex_);
  Handoffs handoffs_ ABSL_GUARDED_BY(mutex_);
  handoff::SeenAttempts seen_ ABSL_GUARDED_BY(mutex_);
};

void SenderEndpoint::Reserve(const AttemptKey& key, const HandoffTarget& target, int tokens,
                             std::vector<PageHash> hashes, Events events) {
  const TargetKey target_key(target.worker_id, target.epoch, target.address);
  handoff::Reserve reservation{key, tokens, std::move(hashes)};
  Callbacks callbacks;
  MutexLock lock(mutex_);
  if (const std::optional<Outcome> why = Admit(reservation, target_key)) {
    transport_->Post(absl::ZeroDuration(), [fail = std::move(events.on_failed), why = *why] { fail(why); });
    return;
  }
  auto handoff = std::make_unique<Handoff>();
  handoff->target = target_key;
  handoff->reservation = std::move(reservation);
  handoff->events = std::move(events);
  handoffs_[key] = std::move(handoff);
  const auto it = connections_.find(target_key);
  if (it == connections_.end()) {
    Connect(target_key);
  } else if (it->second.state == Connection::State::kReady) {
    Tell(key, Machine::Start{}, &callbacks);
  }
}

std::optional<Outcome> SenderEndpoint::Admit(const handoff::Reserve& reservation, const TargetKey& target) {
  if (reservation.tokens < 1) {
    return Outcome(Cause::kInternal, absl::StrCat(reservation.tokens, " tokens to hand over, expected at least 1"));
  }
  // A transport gives up the peer of a message that is too long, and with the peer all of the peer's handoffs.
  const size_t bytes = handoff::Encode(reservation).size();
  if (const size_t limit = transport_->max_message_bytes(); bytes > limit) {
    return Outcome(Cause::kTooLarge, absl::StrCat("the reservation of ", reservation.tokens, " tokens, with ",
                                                  reservation.page_hashes.size(), " page hashes, is ", bytes,
                                                  " bytes long, the limit is ", limit));
  }
  if (!seen_.Admit(reservation.key)) {
    return Outcome(Cause::kRevoked, absl::StrCat("attempt ", reservation.key.ToString(),
                                                 " or a later attempt of the request was handed over before"));
  }
  const auto it = connections_.find(target);
  if (it != connections_.end() && it->second.silent) {
    return Outcome(Cause::kPeerLost, absl::StrCat("decode worker ", std::get<0>(target), " is silent"));
  }
  return std::nullopt;
}

void SenderEndpoint::PutLayer(const AttemptKey& key, int layer, int first_page, std::span<const PageId> pages) {
  TellAndRun(key, Machine::PutLayer{layer, first_page, {pages.begin(), pages.end()}});
}

void SenderEndpoint::Flush(const AttemptKey& key) { TellAndRun(key, Machine::FlushPuts{}); }

void SenderEndpoint::Commit(const AttemptKey& key, std::vector<TokenId> output) {
  Callbacks callbacks;
  MutexLock lock(mutex_);
  const auto it = handoffs_.find(key);
  if (it == handoffs_.end()) return;
  it->second->commit_asked = SteadyTime::Now();
  Tell(key, Machine::CommitSequence{std::move(output)}, &callbacks);
}

void SenderEndpoint::Abort(const AttemptKey& key, bool finished, std::function<void()> released) {
  Callbacks callbacks;
  MutexLock lock(mutex_);
  const auto it = handoffs_.find(key);
  if (it != handoffs_.end() && it->second->writer) {
    it->second->released.push_back(std::move(released));
    Tell(key, Machine::Abort{finished ? Cause::kFinished : Cause::kCancelled}, &callbacks);
  } else {
    handoffs_.erase(key);  // if the connection is not ready, the target never heard of the handoff
    callbacks.Add(std::move(released));
  }
}

void SenderEndpoint::Connect(const TargetKey& target) {
  connections_[target];
  transport_->Connect(std::get<2>(target),
                      [this, target](const absl::StatusOr<PeerId>& peer) { OnConnected(target, peer); });
}

void SenderEndpoint::OnConnected(const TargetKey& target, const absl::StatusOr<PeerId>& peer) {
  Callbacks callbacks;
  MutexLock lock(mutex_);
  const auto it = connections_.find(target);
  if (!peer.ok()) return DropConnection(it, PeerState::kGivenUp, peer.status(), &callbacks);
  it->second.state = Connection::State::kGreeting;
  it->second.peer = *peer;
  transport_->Send(*peer, handoff::Encode(self_));
  transport_->Post(options_.hello_timeout, [this, peer = *peer] {
    Callbacks late;
    MutexLock lock(mutex_);
    const auto it = FindConnection(peer);
    if (it == connections_.end() || it->second.state != Connection::State::kGreeting) return;
    DropConnection(it, PeerState::kGivenUp, absl::DeadlineExceededError("no answer to Hello"), &late);
  });
}

void SenderEndpoint::OnWelcome(Connections::iterator it, const handoff::Welcome& welcome, Callbacks* callbacks) {
  if (absl::Status status = CheckWelcome(it->first, welcome); !status.ok()) {
    const Cause cause = absl::IsFailedPrecondition(status) ? Cause::kPairMismatch : Cause::kPeerLost;
    DropConnection(it, PeerState::kGivenUp, status, callbacks, cause);
    return;
  }
  callbacks->Add([worker = std::get<0>(it->first), path = transport_->PathName(it->second.peer)] {
    Log(LogLevel::kInfo, "peer.connected", {{"peer", worker}, {"transport", path}});
  });
  it->second.state = Connection::State::kReady;
  it->second.peer_pages_total = welcome.self.pages_total;
  std::vector<AttemptKey> waiting;
  for (const auto& [key, handoff] : handoffs_) {
    if (!handoff->writer && handoff->target == it->first) waiting.push_back(key);
  }
  for (const AttemptKey& key : waiting) Tell(key, Machine::Start{}, callbacks);
}

absl::Status SenderEndpoint::CheckWelcome(const TargetKey& target, const handoff::Welcome& welcome) const {
  if (!welcome.error.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("refused by the decode worker: ", welcome.error));
  }
  BATON_RETURN_IF_ERROR(handoff::CheckPair(self_, welcome.self));
  if (welcome.self.worker_id != std::get<0>(target) || welcome.self.epoch != std::get<1>(target)) {
    return absl::UnavailableError(
        absl::StrCat("worker ", welcome.self.worker_id, ", epoch ", welcome.self.epoch, " answers at this address"));
  }
  return absl::OkStatus();
}

SenderEndpoint::Connections::iterator SenderEndpoint::FindConnection(PeerId peer) {
  auto it = connections_.begin();
  while (it != connections_.end() && (it->second.state == Connection::State::kConnecting || it->second.peer != peer)) {
    ++it;
  }
  return it;
}

void SenderEndpoint::DropConnection(Connections::iterator it, PeerState state, const absl::Status& why,
                                    Callbacks* callbacks, Cause cause) {
  if (it->second.state != Connection::State::kConnecting) transport_->Disconnect(it->second.peer);
  const bool was_ready = it->second.state == Connection::State::kReady;
  callbacks->Add([worker = std::get<0>(it->first), address = std::get<2>(it->first), was_ready, state, why] {
    if (was_ready) return LogPeerState(worker, state, why);
    Log(LogLevel::kWarning, "peer.not_connected", {{"peer", worker}, {"address", address}, {"status", why}});
  });
  const Outcome outcome(cause, absl::StrCat("decode worker ", std::get<0>(it->first), " at ", std::get<2>(it->first),
                                            ": ", why.message()));
  for (auto handoff = handoffs_.begin(); handoff != handoffs_.end();) {
    const auto current = handoff++;
    if (current->second->writer || current->second->target != it->first) continue;
    callbacks->Add([fail = std::move(current->second->events.on_failed), outcome] { fail(outcome); });
    handoffs_.erase(current);
  }
  connections_.erase(it);
}

void SenderEndpoint::OnMessage(PeerId peer, std::string_view bytes) {
  absl::StatusOr<handoff::WireMessage> decoded = handoff::Decode(bytes);
  Callbacks callbacks;
  MutexLock lock(mutex_);
  const auto it = FindConnection(peer);
  if (it == connections_.end()) return;
  const bool greeting = it->second.state == Connection::State::kGreeting;
  const auto* welcome = decoded.ok() ? std::get_if<handoff::Welcome>(&*decoded) : nullptr;
  const auto* message = decoded.ok() ? std::get_if<handoff::Message>(&*decoded) : nullptr;
  if (greeting && welcome != nullptr) {
    OnWelcome(it, *welcome, &callbacks);
  } else if (!greeting && message != nullptr) {
    const AttemptKey& key = handoff::KeyOf(*message);
    const auto handoff = handoffs_.find(key);
    if (handoff != handoffs_.end() && handoff->second->writer && handoff->second->peer == peer) {
      Tell(key, *message, &callbacks);
    } else if (std::optional<handoff::Message> answer = Machine::AnswerToUnknown(*message)) {
      transport_->Send(peer, handoff::Encode(*answer));
    }
  } else {
    const absl::Status what = decoded.ok() ? absl::InvalidArgumentError("unexpected message") : decoded.status();
    DropConnection(it, PeerState::kGivenUp, what, &callbacks);
  }
}

void SenderEndpoint::OnPeerState(PeerId peer, PeerState state, const absl::Status& why) {
  Callbacks callbacks;
  MutexLock lock(mutex_);
  if (const auto it = FindConnection(peer); it != connections_.end()) {
    it->second.silent = state == PeerState::kSilent;
    if (state == PeerState::kGivenUp || state == PeerState::kRevoked) {
      DropConnection(it, state, why, &callbacks);
    } else {
      callbacks.Add([worker = std::get<0>(it->first), state, why] { LogPeerState(worker, state, why); });
    }
  }
  if (state == PeerState::kGivenUp) TellAllOf(peer, Machine::PeerGivenUp{why}, &callbacks);
  if (state == PeerState::kRevoked) TellAllOf(peer, Machine::PeerRevoked{why}, &callbacks);
}

void SenderEndpoint::TellAllOf(PeerId peer, const Machine::Event& event, Callbacks* callbacks) {
  std::vector<AttemptKey> keys;
  for (const auto& [key, handoff] : handoffs_) {
    if (handoff->writer && handoff->peer == peer) keys.push_back(key);
  }
  for (const AttemptKey& key : keys) Tell(key, event, callbacks);
}

void SenderEndpoint::TellAndRun(const AttemptKey& key, const Machine::Event& event) {
  Callbacks callbacks;
  MutexLock lock(mutex_);
  Tell(key, event, &callbacks);
}

void SenderEndpoint::Tell(const AttemptKey& key, const Machine::Event& event, Callbacks* callbacks) {
  const auto it = handoffs_.find(key);
  if (it == handoffs_.end()) return;
  Handoff& handoff = *it->second;
  if (std::holds_alternative<Machine::Start>(event)) {
    const Connection& connection = connections_.at(handoff.target);
    handoff.peer = connection.peer;
    handoff.peer_pages_total = connection.peer_pages_total;
    handoff.writer.emplace(
        handoff::WriterConfig{.layout = &pool_->layout(), .peer_pages_total = connection.peer_pages_total},
        std::move(handoff.reservation));
  }
  if (!handoff.writer) return;
  for (const Machine::Action& action : handoff.writer->On(event)) Carry(handoff, action, callbacks);
  if (handoff.writer->ended()) handoffs_.erase(key);
}

void SenderEndpoint::Carry(Handoff& handoff, const Machine::Action& action, Callbacks* callbacks) {
  if (const auto* send = std::get_if<Machine::Send>(&action)) {
    transport_->Send(handoff.peer, handoff::Encode(send->message));
  } else if (const auto* put = std::get_if<Machine::Put>(&action)) {
    Put(handoff, *put);
  } else if (std::holds_alternative<Machine::Flush>(action)) {
    const AttemptKey key = handoff.writer->key();
    transport_->Flush(handoff.peer, handoff::StreamOf(key), [this, key](const absl::Status& status) {
      status.ok() ? TellAndRun(key, Machine::FlushDone{}) : TellAndRun(key, Machine::FlushFailed{status});
    });
  } else if (std::holds_alternative<Machine::Disconnect>(action)) {
    if (const auto it = FindConnection(handoff.peer); it != connections_.end()) {
      DropConnection(it, PeerState::kGivenUp, absl::UnavailableError("a flush failed"), callbacks);
    }
  } else if (std::holds_alternative<Machine::ReportQueued>(action)) {
    callbacks->Add(handoff.events.on_queued);
  } else if (std::holds_alternative<Machine::ReportGranted>(action)) {
    callbacks->Add(handoff.events.on_granted);
  } else if (std::holds_alternative<Machine::ReportFlushed>(action)) {
    callbacks->Add(handoff.events.on_flushed);
  } else if (std::holds_alternative<Machine::Finish>(action)) {
    callbacks->Add([done = std::move(handoff.events.on_done), stats = Stats(handoff)] { done(stats); });
  } else if (const auto* fail = std::get_if<Machine::Fail>(&action)) {
    callbacks->Add([failed = std::move(handoff.events.on_failed), why = fail->why] { failed(why); });
  } else if (std::holds_alternative<Machine::Release>(action)) {
    for (auto& released : handoff.released) callbacks->Add(std::move(released));
  }
}

void SenderEndpoint::Put(Handoff& handoff, const Machine::Put& put) {
  handoff.first_put = std::min(handoff.first_put, SteadyTime::Now());
  const KvLayout& layout = pool_->layout();
  handoff.bytes += put.sources.size() * layout.block(layout.place(put.layer).group).bytes();
  transport_->Put(handoff.peer, handoff::StreamOf(handoff.writer->key()),
                  PiecesOf(put, *pool_, handoff.peer_pages_total));
}

HandoffStats SenderEndpoint::Stats(const Handoff& handoff) const {
  const SteadyTime now = SteadyTime::Now();
  return {.transfer = now - std::min(handoff.first_put, now),
          .exposed = now - handoff.commit_asked,
          .bytes = handoff.bytes,
          .transport = transport_->PathName(handoff.peer)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<TransportSender>> MakeSender(const HandoffIdentity& identity,
                                                            const SenderOptions& options, Transport* transport,
                                                            PagePool* pool) {
  if (identity.worker_id.empty()) return absl::InvalidArgumentError("worker_id is empty");
  return std::make_unique<SenderEndpoint>(identity, options, transport, pool);
}

absl::StatusOr<std::unique_ptr<HandoffSender>> HandoffSender::Create(const HandoffIdentity& identity,
                                                                     Transport* transport, PagePool* pool,
                                                                     const SenderOptions& options) {
  BATON_ASSIGN_OR_RETURN(std::unique_ptr<TransportSender> sender, MakeSender(identity, options, transport, pool));
  BATON_RETURN_IF_ERROR(transport->Start(sender.get()));
  return sender;
}

}  // namespace baton
