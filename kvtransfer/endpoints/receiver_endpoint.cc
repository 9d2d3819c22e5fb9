// SPDX-License-Identifier: Apache-2.0
// The decode side: feeds a handoff::ReceiverMachine with events of the transport and the worker, and carries out the
// machine's actions.
//
// `mutex_` guards all state. The endpoint sends messages under the mutex, so that messages leave in the machine's
// order. Callbacks run and pages are released without the mutex, because both may call the endpoint. Lock order: this
// mutex, the capacity's lock, the pool's lock.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/log.h"
#include "common/mutex.h"
#include "kvtransfer/endpoints/endpoints.h"
#include "kvtransfer/endpoints/make_endpoint.h"
#include "kvtransfer/endpoints/peer_log.h"
#include "kvtransfer/handoff/receiver_machine.h"
#include "kvtransfer/wire/codec.h"

namespace baton {
namespace {

// The worker's capacity as the machine's Admission. Owns the pages of granted and revoking attempts.
class PoolPages final : public handoff::Admission {
 public:
  explicit PoolPages(HandoffCapacity* capacity) : capacity_(*capacity) {}

  absl::Status Enqueue(Claim claim) override {
    return capacity_.Enqueue(
        {.key = claim.key, .due = claim.due, .pages = claim.pages, .names = std::move(claim.names)});
  }
  std::vector<Decision> TakeDecisions() override {
    std::vector<Decision> decisions;
    for (HandoffCapacity::Decision& decision : capacity_.TakeDecisions()) {
      if (decision.pages.ok()) {
        decisions.push_back({decision.key, Keep(*std::move(decision.pages))});
      } else {
        decisions.push_back({decision.key, decision.pages.status()});
      }
    }
    return decisions;
  }
  void Withdraw(const AttemptKey& key) override {
    for (PageRef& ref : capacity_.Withdraw(key)) released_.push_back(std::move(ref));
  }
  void Hold(const AttemptKey& key, bool hold) override { capacity_.Hold(key, hold); }
  void Leave(const AttemptKey& key) override { capacity_.Leave(key); }

  void Release(std::span<const PageId> pages) override {
    for (PageRef& ref : Take(pages)) released_.push_back(std::move(ref));
  }

  void SetQuarantined(std::span<const PageId> pages, bool quarantined) override {
    for (PageId page : pages) held_.at(page).front().SetQuarantined(quarantined);
  }

  std::vector<PageRef> Take(std::span<const PageId> pages) {
    std::vector<PageRef> refs;
    for (PageId page : pages) {
      const auto it = held_.find(page);
      refs.push_back(std::move(it->second.back()));
      it->second.pop_back();
      if (it->second.empty()) held_.erase(it);
    }
    return refs;
  }

  // Returns the pages released since the last call. The caller destroys the PageRefs without locks.
  std::vector<PageRef> TakeReleased() { return std::exchange(released_, {}); }
  std::vector<PageRef> TakeAll() {
    for (auto& [id, refs] : held_) {
      for (PageRef& ref : refs) released_.push_back(std::move(ref));
    }
    held_.clear();
    return TakeReleased();
  }

 private:
  handoff::GrantedPages Keep(SharedPages shared) {
    handoff::GrantedPages granted{.pages = {}, .cached = shared.cached};
    for (PageRef& page : shared.pages) {
      granted.pages.push_back(page.id());
      held_[page.id()].push_back(std::move(page));
    }
    return granted;
  }

  HandoffCapacity& capacity_;
  absl::flat_hash_map<PageId, std::vector<PageRef>> held_;  // several PageRefs of a page that attempts share
  std::vector<PageRef> released_;
};

class ReceiverEndpoint final : public TransportReceiver {
 public:
  ReceiverEndpoint(const HandoffIdentity& identity, const ReceiverOptions& options, Transport* transport,
                   PagePool* pool, HandoffCapacity* capacity, Events events)
      : options_(options),
        transport_(transport),
        pool_(*pool),
        events_(std::move(events)),
        self_(HelloOf(identity, *pool)),
        machine_({.layout = &pool->layout(), .pages_total = pool->pages_total(), .max_attempts = options.max_attempts}),
        pages_(capacity) {}

  ~ReceiverEndpoint() override {
    // Destroys the pages after the lock and before the members: the release of a page may call Poke.
    std::vector<PageRef> pages;
    MutexLock lock(mutex_);
    stopped_ = true;
    pages = pages_.TakeAll();
  }

  absl::Status OpenAttempt(const AttemptKey& key, absl::Time due) override {
    MutexLock lock(mutex_);
    return machine_.Open(key, due);
  }

  void CloseAttempt(const AttemptKey& key) override { Apply(handoff::ReceiverMachine::Close{key}); }
  void Poke() override { Apply(handoff::ReceiverMachine::Decided{}); }
  void StartDraining() override { Apply(handoff::ReceiverMachine::StartDraining{}); }
  void StopDraining() override { Apply(handoff::ReceiverMachine::StopDraining{}); }

  Load load() const override {
    MutexLock lock(mutex_);
    const handoff::ReceiverMachine::Counts counts = machine_.counts();
    return {
        .queued = counts.queued, .granted = counts.granted, .revoking = counts.revoking, .received = counts.received};
  }

  void OnPeerAccepted(PeerId peer) override;
  void OnMessage(PeerId peer, std::string_view bytes) override;
  void OnPeerState(PeerId peer, PeerState state, const absl::Status& why) override;
  bool AllowWrite(PeerId peer, StreamId stream, uint64_t offset, uint64_t bytes) override;

 private:
  struct Peer {
    std::string worker_id;  // empty until a fitting Hello has come
    uint64_t epoch = 0;
    PeerState state = PeerState::kAlive;
    bool greeted() const { return !worker_id.empty(); }
  };
  // Work to do after the lock: to be declared before the lock.
  struct Effects {
    explicit Effects(PagePool& of) : pool(of) {}
    Effects(const Effects&) = delete;
    Effects& operator=(const Effects&) = delete;
    ~Effects() {
      for (const auto& callback : callbacks) callback();
      pool.Release(std::move(released));
    }
    PagePool& pool;
    std::vector<std::function<void()>> callbacks;
    std::vector<PageRef> released;
  };

  void Apply(const handoff::ReceiverMachine::Event& event);
  void ApplyLocked(const handoff::ReceiverMachine::Event& event, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Carry(handoff::ReceiverMachine::Action action, Effects* effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Greet(PeerId id, const handoff::Hello& hello, Effects* effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Refuse(PeerId id, const handoff::Hello& hello, const std::string& why, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ReceiverOptions options_;
  Transport* const transport_;
  PagePool& pool_;
  const Events events_;
  const handoff::Hello self_;

  mutable Mutex mutex_;
  handoff::ReceiverMachine machine_ ABSL_GUARDED_BY(mutex_);
  PoolPages pages_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<PeerId, Peer> peers_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

void ReceiverEndpoint::Apply(const handoff::ReceiverMachine::Event& event) {
  Effects effects(pool_);
  MutexLock lock(mutex_);
  if (!stopped_) ApplyLocked(event, &effects);
}

void ReceiverEndpoint::ApplyLocked(const handoff::ReceiverMachine::Event& event, Effects* effects) {
  for (handoff::ReceiverMachine::Action& action : machine_.On(event, pages_)) Carry(std::move(action), effects);
  for (PageRef& page : pages_.TakeReleased()) effects->released.push_back(std::move(page));
}

void ReceiverEndpoint::Carry(handoff::ReceiverMachine::Action action, Effects* effects) {
  if (auto* send = std::get_if<handoff::ReceiverMachine::Send>(&action)) {
    transport_->Send(send->peer, handoff::Encode(send->message));
  } else if (auto* received = std::get_if<handoff::ReceiverMachine::Received>(&action)) {
    // A std::function must be copyable, so that the sequence travels shared.
    auto sequence = std::make_shared<ReceivedSequence>(ReceivedSequence{
        .key = received->key,
        .pages = pages_.Take(received->pages),
        .tokens = received->tokens,
        .cached_tokens = pool_.layout().tokens_in(received->cached_pages),
        .output = std::move(received->output),
    });
    effects->callbacks.push_back([this, sequence] { events_.on_received(std::move(*sequence)); });
  } else if (auto* failed = std::get_if<handoff::ReceiverMachine::Failed>(&action)) {
    effects->callbacks.push_back([this, f = *failed] { events_.on_failed(f.key, f.why); });
  }
}

void ReceiverEndpoint::OnPeerAccepted(PeerId peer) {
  {
    MutexLock lock(mutex_);
    peers_[peer];
  }
  transport_->Post(options_.hello_timeout, [this, peer] {
    MutexLock lock(mutex_);
    const auto it = peers_.find(peer);
    if (it != peers_.end() && !it->second.greeted()) transport_->Disconnect(peer);
  });
}

void ReceiverEndpoint::OnMessage(PeerId peer, std::string_view bytes) {
  absl::StatusOr<handoff::WireMessage> message = handoff::Decode(bytes);
  Effects effects(pool_);
  MutexLock lock(mutex_);
  const auto it = peers_.find(peer);
  if (it == peers_.end()) return;
  const auto* hello = message.ok() ? std::get_if<handoff::Hello>(&*message) : nullptr;
  auto* ordinary = message.ok() ? std::get_if<handoff::Message>(&*message) : nullptr;
  if (hello != nullptr && !it->second.greeted()) {
    Greet(peer, *hello, &effects);
  } else if (ordinary != nullptr && it->second.greeted()) {
    ApplyLocked(handoff::ReceiverMachine::From{peer, std::move(*ordinary)}, &effects);
  } else {
    transport_->Disconnect(peer);  // the peer violates the protocol
  }
}

void ReceiverEndpoint::Greet(PeerId id, const handoff::Hello& hello, Effects* effects) {
  if (absl::Status fits = handoff::CheckPair(self_, hello); !fits.ok()) {
    return Refuse(id, hello, std::string(fits.message()), effects);
  }
  // A worker has one connection to this endpoint, so that an older connection of the same process is lost. A connection
  // with this id and another epoch belongs to a former process. If that process is alive, two workers share one id.
  for (const auto& [other_id, other] : peers_) {
    if (other.worker_id != hello.worker_id) continue;
    if (other.epoch != hello.epoch && other.state == PeerState::kAlive) {
      return Refuse(id, hello, absl::StrCat("another worker with the id ", hello.worker_id, " is connected"), effects);
    }
    transport_->Disconnect(other_id);
  }
  peers_[id] = {.worker_id = hello.worker_id, .epoch = hello.epoch};
  transport_->Send(id, handoff::Encode(handoff::Welcome{.error = "", .self = self_}));
  effects->callbacks.push_back([worker = hello.worker_id, path = transport_->PathName(id)] {
    Log(LogLevel::kInfo, "peer.connected", {{"peer", worker}, {"transport", path}});
  });
  ApplyLocked(handoff::ReceiverMachine::PeerUp{id}, effects);
}

// The peer reads the reason and disconnects, or hello_timeout ends the connection.
void ReceiverEndpoint::Refuse(PeerId id, const handoff::Hello& hello, const std::string& why, Effects* effects) {
  transport_->Send(id, handoff::Encode(handoff::Welcome{.error = why, .self = self_}));
  effects->callbacks.push_back(
      [worker = hello.worker_id, why] { Log(LogLevel::kWarning, "peer.refused", {{"peer", worker}, {"why", why}}); });
}

void ReceiverEndpoint::OnPeerState(PeerId peer, PeerState state, const absl::Status& why) {
  Effects effects(pool_);
  MutexLock lock(mutex_);
  if (const auto it = peers_.find(peer); it != peers_.end()) {
    if (it->second.greeted()) {
      effects.callbacks.push_back([this, worker = it->second.worker_id, state, why] {
        LogPeerState(worker, state, why, pool_.counts().quarantined);
      });
    }
    it->second.state = state;
    if (state == PeerState::kRevoked) peers_.erase(it);
  }
  ApplyLocked(handoff::ReceiverMachine::PeerChanged{peer, state, why}, &effects);
}

bool ReceiverEndpoint::AllowWrite(PeerId peer, StreamId stream, uint64_t offset, uint64_t bytes) {
  // A transport may cut a put anywhere, so that a piece may hold parts of blocks. All blocks of the piece must be
  // granted.
  const uint32_t pages_total = pool_.pages_total();
  const uint64_t block_bytes = pool_.layout().block_stride();
  const uint64_t blocks = uint64_t(pool_.layout().slots()) * pages_total;
  if (bytes == 0 || offset >= blocks * block_bytes || bytes > blocks * block_bytes - offset) return false;
  const uint64_t first = offset / block_bytes;
  const uint64_t last = (offset + bytes - 1) / block_bytes;
  if (first / pages_total != last / pages_total) return false;  // the piece spans two slots
  MutexLock lock(mutex_);
  return machine_.MayWrite(peer, stream, uint32_t(first % pages_total), uint32_t(last - first + 1));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TransportReceiver>> MakeReceiver(const HandoffIdentity& identity,
                                                                const ReceiverOptions& options, Transport* transport,
                                                                PagePool* pool, HandoffCapacity* capacity,
                                                                HandoffReceiver::Events events) {
  if (identity.worker_id.empty()) return absl::InvalidArgumentError("worker_id is empty");
  if (options.max_attempts < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("receiver options: max_attempts is ", options.max_attempts, ", expected 1 or more"));
  }
  return std::make_unique<ReceiverEndpoint>(identity, options, transport, pool, capacity, std::move(events));
}

}  // namespace baton
