// SPDX-License-Identifier: Apache-2.0
#include "tests/inproc/inproc_node.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "common/steady_time.h"
#include "kvtransfer/auth/challenge.h"
#include "tests/inproc/inproc_hub.h"

namespace baton {
namespace {

constexpr uint32_t kVersion = 1;

absl::Status PeerGone(PeerId peer) {
  return absl::UnavailableError(absl::StrCat("peer ", static_cast<uint64_t>(peer), " is not connected"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<InprocNode>> InprocNode::Create(const TransportOptions& options) {
  BATON_RETURN_IF_ERROR(CheckSecret(options.secret));
  std::shared_ptr<InprocNode> node(new InprocNode(options));
  if (!options.listen_address.empty()) {
    BATON_ASSIGN_OR_RETURN(node->address_, InprocHub::Get().Register(options.listen_address, node));
  }
  return node;
}

InprocNode::InprocNode(const TransportOptions& options)
    : options_(options), queue_([this] {
        MutexLock lock(run_mutex_);
        woken_ = true;
        run_changed_.NotifyAll();
      }) {}

InprocNode::~InprocNode() {
  for (const TransportMemory& region : regions_) munmap(region.data, region.bytes);
}

absl::StatusOr<TransportMemory> InprocNode::AllocateRegion(size_t bytes) {
  if (bytes == 0) return absl::InvalidArgumentError("a region of 0 bytes was asked for");
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    return absl::ResourceExhaustedError(absl::StrCat("no memory for a region of ", bytes, " bytes"));
  regions_.push_back({.data = data, .bytes = bytes});
  return regions_.back();
}

absl::Status InprocNode::Start(TransportEvents* events) {
  if (thread_.joinable()) return absl::FailedPreconditionError("the transport was started before");
  events_ = events;
  stalls_.emplace(options_.heartbeat_interval, SteadyTime::Now());
  Post(options_.heartbeat_interval, [this] { Tick(); });
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void InprocNode::Stop() {
  SetRunState(RunState::kStopped);
  if (thread_.joinable()) thread_.join();
  if (!address_.empty()) InprocHub::Get().Unregister(address_);
  queue_.Close();
}

void InprocNode::SetRunState(RunState state) {
  MutexLock lock(run_mutex_);
  if (run_state_ == RunState::kKilled || run_state_ == RunState::kStopped) return;
  run_state_ = state;
  run_changed_.NotifyAll();
}

std::string InprocNode::PathName(PeerId peer) const {
  MutexLock lock(names_mutex_);
  const auto it = path_names_.find(peer);
  return it == path_names_.end() ? "" : it->second;
}

// ------------------------------------------------------------------------------------------------ the I/O thread

void InprocNode::Run() {
  while (true) {
    {
      MutexLock lock(run_mutex_);
      WaitForWork();
      if (run_state_ == RunState::kKilled || run_state_ == RunState::kStopped) break;
      woken_ = false;
    }
    queue_.RunDue();
  }
  EndAllLinks();
}

void InprocNode::WaitForWork() {
  while (run_state_ == RunState::kPaused) run_changed_.Wait(run_mutex_);
  while (run_state_ == RunState::kRunning && !woken_) {
    const SteadyTime due = queue_.NextDue();
    if (due <= SteadyTime::Now()) return;
    run_changed_.WaitUntil(run_mutex_, due);
  }
}

void InprocNode::EndAllLinks() {
  for (auto& [id, peer] : peers_) {
    Deliver(peer, [](InprocNode& node, PeerId from, Peer&) {
      node.Revoke(from, absl::UnavailableError("the peer closed the connection"), /*tell_peer=*/false);
    });
    MutexLock lock(peer.link->mutex);
    peer.link->open = false;
  }
  peers_.clear();
}

void InprocNode::Tick() {
  const SteadyTime now = SteadyTime::Now();
  const absl::Duration stall = stalls_->Tick(now);
  std::vector<std::pair<PeerId, absl::Status>> lost;
  std::vector<std::pair<PeerId, PeerState>> changed;
  for (auto& [id, peer] : peers_) {
    peer.liveness.Forgive(stall, now);
    if (!peer.open) {
      if (now >= peer.authenticate_by) {
        lost.emplace_back(id, absl::DeadlineExceededError(absl::StrCat("no answer from ", peer.their_address)));
      }
      continue;
    }
    Deliver(peer, [](InprocNode&, PeerId, Peer&) {});  // a heartbeat
    const Liveness::Verdict verdict = peer.liveness.Check(now);
    if (verdict == Liveness::Verdict::kExpired) {
      lost.emplace_back(id, absl::DeadlineExceededError(absl::StrCat("the peer was not heard for ",
                                                                     absl::FormatDuration(options_.peer_timeout))));
      continue;
    }
    const PeerState state = verdict == Liveness::Verdict::kSilent ? PeerState::kSilent : PeerState::kAlive;
    if (state != peer.state) {
      peer.state = state;
      changed.emplace_back(id, state);
    }
  }
  for (const auto& [id, state] : changed) events_->OnPeerState(id, state, absl::OkStatus());
  for (const auto& [id, why] : lost) Revoke(id, why, /*tell_peer=*/true);
  Post(options_.heartbeat_interval, [this] { Tick(); });
}

void InprocNode::Deliver(const Peer& peer, Frame frame) {
  if (network_cut_) return;
  const InprocLink::End& other = peer.link->ends[1 - peer.end];
  {
    MutexLock lock(peer.link->mutex);
    if (!peer.link->open) return;
  }
  if (std::shared_ptr<InprocNode> node = other.node.lock(); node != nullptr) {
    node->Post(absl::ZeroDuration(), [to = node.get(), from = other.peer, frame = std::move(frame)] {
      if (!to->network_cut_) to->Receive(from, frame);
    });
  }
}

void InprocNode::Receive(PeerId id, const Frame& frame) {
  const auto it = peers_.find(id);
  if (it == peers_.end()) return;
  Peer& peer = it->second;
  peer.liveness.Heard(SteadyTime::Now());
  if (peer.state == PeerState::kSilent) {
    peer.state = PeerState::kAlive;
    events_->OnPeerState(id, PeerState::kAlive, absl::OkStatus());
  }
  frame(*this, id, peer);
}

InprocNode::Peer* InprocNode::FindOpen(PeerId id) {
  const auto it = peers_.find(id);
  return it == peers_.end() || !it->second.open ? nullptr : &it->second;
}

// ------------------------------------------------------------------------------------------------ connections

void InprocNode::Connect(const std::string& address, ConnectDone done) {
  const std::shared_ptr<InprocNode> server = InprocHub::Get().Find(address);
  if (server == nullptr) {
    done(absl::UnavailableError(absl::StrCat("nobody listens at ", address)));
    return;
  }
  if (server.get() == this) {
    done(absl::InvalidArgumentError("a transport cannot connect to itself"));
    return;
  }
  const PeerId ours = NextPeerId();
  const PeerId theirs = NextPeerId();
  auto link = std::make_shared<InprocLink>(std::array<InprocLink::End, 2>{
      InprocLink::End{.node = weak_from_this(), .peer = ours}, InprocLink::End{.node = server, .peer = theirs}});
  AddPeer(ours, link, 0, AuthRole::kClient, std::move(done), address);
  absl::StatusOr<std::string> hello = peers_.at(ours).handshake.Start();
  if (!hello.ok()) {
    Revoke(ours, hello.status(), /*tell_peer=*/false);
    return;
  }
  if (!network_cut_) server->Post(absl::ZeroDuration(), [to = server.get(), link] { to->Accept(link); });
  Deliver(peers_.at(ours), [hello = *std::move(hello)](InprocNode& node, PeerId from, Peer& peer) {
    node.OnAuthMessage(from, peer, hello);
  });
}

void InprocNode::Accept(std::shared_ptr<InprocLink> link) {
  const PeerId id = link->ends[1].peer;
  AddPeer(id, std::move(link), 1, AuthRole::kServer, nullptr, "a peer that connected");
}

void InprocNode::AddPeer(PeerId id, std::shared_ptr<InprocLink> link, int end, AuthRole role, ConnectDone done,
                         std::string address) {
  const SteadyTime now = SteadyTime::Now();
  peers_.emplace(id, Peer{.link = std::move(link),
                          .end = end,
                          .handshake = AuthHandshake(role, options_.secret, kVersion),
                          .liveness = Liveness(options_.silent_after, options_.peer_timeout, now),
                          .authenticate_by = now + options_.connect_timeout,
                          .connected = std::move(done),
                          .their_address = std::move(address),
                          .streams = {}});
}

void InprocNode::OnAuthMessage(PeerId id, Peer& peer, std::string_view message) {
  AuthHandshake::Step step = peer.handshake.OnMessage(message);
  if (!step.reply.empty()) {
    Deliver(peer, [reply = std::move(step.reply)](InprocNode& node, PeerId from, Peer& other) {
      node.OnAuthMessage(from, other, reply);
    });
  }
  if (!step.status.ok()) {
    Revoke(id, step.status, /*tell_peer=*/true);
    return;
  }
  // The authenticated peer gets the size of the local region. The peer is open once its own size has come.
  if (step.done) {
    Deliver(peer, [bytes = regions_.empty() ? 0 : regions_[0].bytes](InprocNode& node, PeerId from, Peer& other) {
      node.OnPeerOpen(from, other, bytes);
    });
  }
}

void InprocNode::OnPeerOpen(PeerId id, Peer& peer, uint64_t region_bytes) {
  peer.open = true;
  peer.region_bytes = region_bytes;
  {
    MutexLock lock(names_mutex_);
    path_names_[id] = "inproc";
  }
  if (ConnectDone done = std::exchange(peer.connected, nullptr); done != nullptr) {
    done(id);
  } else {
    events_->OnPeerAccepted(id);
  }
}

void InprocNode::Disconnect(PeerId id) { Revoke(id, absl::CancelledError("disconnected by this side"), true); }

void InprocNode::Revoke(PeerId id, const absl::Status& why, bool tell_peer) {
  const auto it = peers_.find(id);
  if (it == peers_.end()) return;
  Peer peer = std::move(it->second);
  peers_.erase(it);
  if (tell_peer) {
    Deliver(peer, [](InprocNode& node, PeerId from, Peer&) {
      node.Revoke(from, absl::UnavailableError("the peer closed the connection"), false);
    });
  }
  {
    MutexLock lock(peer.link->mutex);
    peer.link->open = false;
  }
  {
    MutexLock lock(names_mutex_);
    path_names_.erase(id);
  }
  for (auto& [stream_id, stream] : peer.streams) {
    for (const auto& done : stream.flushes) done(why);
  }
  if (peer.connected != nullptr) peer.connected(why);
  if (peer.open) events_->OnPeerState(id, PeerState::kRevoked, why);
}

// ------------------------------------------------------------------------------------------------ data

void InprocNode::Send(PeerId id, std::string message) {
  Peer* peer = FindOpen(id);
  if (peer == nullptr) return;
  if (message.size() > options_.max_message_bytes) {
    Revoke(id,
           absl::InvalidArgumentError(
               absl::StrCat("a message of ", message.size(), " bytes is longer than ", options_.max_message_bytes)),
           /*tell_peer=*/true);
    return;
  }
  Deliver(*peer, [message = std::move(message)](InprocNode& node, PeerId from, Peer& other) {
    node.OnMessage(from, other, message);
  });
}

void InprocNode::OnMessage(PeerId id, const Peer& peer, std::string_view message) {
  if (!peer.open) return;
  if (message.size() > options_.max_message_bytes) {
    Revoke(id, absl::InvalidArgumentError("the peer's message is longer than we take"), /*tell_peer=*/true);
    return;
  }
  events_->OnMessage(id, message);
}

void InprocNode::Put(PeerId id, StreamId stream, std::vector<PutPiece> pieces) {
  Peer* peer = FindOpen(id);
  if (peer == nullptr) return;
  ++peer->streams[stream].puts_pending;
  if (hold_puts_) {
    held_puts_.push_back({.peer = id, .stream = stream, .pieces = std::move(pieces)});
  } else {
    SendPut(*peer, stream, std::move(pieces));
  }
}

void InprocNode::SetHoldPuts(bool hold) {
  hold_puts_ = hold;
  if (hold) return;
  for (HeldPut& put : std::exchange(held_puts_, {})) {
    if (Peer* peer = FindOpen(put.peer); peer != nullptr) SendPut(*peer, put.stream, std::move(put.pieces));
  }
}

void InprocNode::SendPut(Peer& peer, StreamId stream, std::vector<PutPiece> pieces) {
  Deliver(peer, [stream, pieces = std::move(pieces)](InprocNode& node, PeerId from, Peer& other) {
    node.PerformPut(from, other, stream, pieces);
  });
}

void InprocNode::PerformPut(PeerId id, Peer& peer, StreamId stream, const std::vector<PutPiece>& pieces) {
  if (!peer.open) return;
  const uint64_t region_bytes = regions_.empty() ? 0 : regions_[0].bytes;
  for (const PutPiece& piece : pieces) {
    const bool inside = piece.bytes <= region_bytes && piece.remote_offset <= region_bytes - piece.bytes;
    if (!inside || !events_->AllowWrite(id, stream, piece.remote_offset, piece.bytes)) {
      Revoke(id,
             absl::PermissionDeniedError(
                 absl::StrCat("the peer's write to [", piece.remote_offset, ", +", piece.bytes, ") is not allowed")),
             /*tell_peer=*/true);
      return;
    }
    MutexLock lock(peer.link->mutex);
    if (!peer.link->open) return;
    std::memcpy(static_cast<std::byte*>(regions_[0].data) + piece.remote_offset, piece.local, piece.bytes);
  }
  Deliver(peer, [stream](InprocNode& node, PeerId, Peer& other) { node.OnPutDone(other, stream); });
}

void InprocNode::OnPutDone(Peer& peer, StreamId stream_id) {
  const auto it = peer.streams.find(stream_id);
  if (it == peer.streams.end() || --it->second.puts_pending > 0) return;
  if (it->second.flushes.empty()) return;
  const auto flushes = std::move(it->second.flushes);
  peer.streams.erase(it);
  for (const auto& done : flushes) done(absl::OkStatus());
}

void InprocNode::Flush(PeerId id, StreamId stream_id, std::function<void(absl::Status)> done) {
  Peer* peer = FindOpen(id);
  if (peer == nullptr) {
    done(PeerGone(id));
    return;
  }
  const auto it = peer->streams.find(stream_id);
  if (it == peer->streams.end() || it->second.puts_pending == 0) {
    if (it != peer->streams.end()) peer->streams.erase(it);
    done(absl::OkStatus());
    return;
  }
  it->second.flushes.push_back(std::move(done));
}

}  // namespace baton
