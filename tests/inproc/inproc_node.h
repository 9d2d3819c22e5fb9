// SPDX-License-Identifier: Apache-2.0
// An InprocNode is the I/O thread, the peers and the memory of an InprocTransport.
//
// Owned by its transport. The hub and links hold weak references, so that a peer's I/O thread can post safely. Methods
// are for the I/O thread unless marked otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/mutex.h"
#include "kvtransfer/auth/challenge.h"
#include "kvtransfer/timing/liveness.h"
#include "kvtransfer/timing/task_queue.h"
#include "kvtransfer/transport.h"
#include "tests/inproc/inproc_link.h"

namespace baton {

class InprocNode : public std::enable_shared_from_this<InprocNode> {
 public:
  enum class RunState : uint8_t { kRunning, kPaused, kKilled, kStopped };
  using ConnectDone = std::function<void(absl::StatusOr<PeerId>)>;

  static absl::StatusOr<std::shared_ptr<InprocNode>> Create(const TransportOptions& options);
  ~InprocNode();
  InprocNode(const InprocNode&) = delete;
  InprocNode& operator=(const InprocNode&) = delete;

  // Any thread.
  absl::StatusOr<TransportMemory> AllocateRegion(size_t bytes);
  absl::Status Start(TransportEvents* events);
  void Stop();  // returns when the I/O thread has ended
  const std::string& address() const { return address_; }
  size_t max_message_bytes() const { return options_.max_message_bytes; }
  std::string PathName(PeerId peer) const;
  void Post(absl::Duration delay, std::function<void()> task) { queue_.Post(delay, std::move(task)); }
  void SetRunState(RunState state);  // killed and stopped are final
  void set_network_cut(bool cut) { network_cut_ = cut; }

  void Connect(const std::string& address, ConnectDone done);
  void Send(PeerId peer, std::string message);
  void Put(PeerId peer, StreamId stream, std::vector<PutPiece> pieces);
  void Flush(PeerId peer, StreamId stream, std::function<void(absl::Status)> done);
  void Disconnect(PeerId peer);
  void SetHoldPuts(bool hold);

 private:
  struct Stream {
    int puts_pending = 0;
    std::vector<std::function<void(absl::Status)>> flushes;
  };
  struct Peer {
    std::shared_ptr<InprocLink> link;
    int end = 0;  // this node's index in the link's ends
    AuthHandshake handshake;
    Liveness liveness;
    SteadyTime authenticate_by;
    bool open = false;  // authenticated, and announced to the user
    PeerState state = PeerState::kAlive;
    ConnectDone connected;      // of outgoing connections, until open
    std::string their_address;  // of outgoing connections
    std::map<StreamId, Stream> streams;
    uint64_t region_bytes = 0;  // of the peer
  };
  struct HeldPut {
    PeerId peer;
    StreamId stream;
    std::vector<PutPiece> pieces;
  };
  // Runs on the receiving node's I/O thread, with the sending peer.
  using Frame = std::function<void(InprocNode&, PeerId, Peer&)>;

  explicit InprocNode(const TransportOptions& options);

  void Run();
  void WaitForWork() ABSL_EXCLUSIVE_LOCKS_REQUIRED(run_mutex_);
  void EndAllLinks();
  void Tick();

  // Sends `frame` over the peer's link. The frame is lost if the network is cut or the link has ended.
  void Deliver(const Peer& peer, Frame frame);
  void Receive(PeerId peer, const Frame& frame);

  void Accept(std::shared_ptr<InprocLink> link);
  void AddPeer(PeerId id, std::shared_ptr<InprocLink> link, int end, AuthRole role, ConnectDone done,
               std::string address);
  void OnAuthMessage(PeerId id, Peer& peer, std::string_view message);
  void OnPeerOpen(PeerId id, Peer& peer, uint64_t region_bytes);
  void OnMessage(PeerId id, const Peer& peer, std::string_view message);
  void PerformPut(PeerId id, Peer& peer, StreamId stream, const std::vector<PutPiece>& pieces);
  void OnPutDone(Peer& peer, StreamId stream);
  void SendPut(Peer& peer, StreamId stream, std::vector<PutPiece> pieces);

  // Ends the link, fails pending flushes and connects, and reports the peer as revoked.
  void Revoke(PeerId id, const absl::Status& why, bool tell_peer);
  Peer* FindOpen(PeerId id);

  const TransportOptions options_;
  std::string address_;
  std::vector<TransportMemory> regions_;
  TransportEvents* events_ = nullptr;
  TaskQueue queue_;
  std::atomic<bool> network_cut_ = false;

  // I/O thread only.
  std::map<PeerId, Peer> peers_;
  std::optional<StallDetector> stalls_;
  bool hold_puts_ = false;
  std::vector<HeldPut> held_puts_;

  mutable Mutex names_mutex_;
  std::map<PeerId, std::string> path_names_ ABSL_GUARDED_BY(names_mutex_);  // of open peers

  Mutex run_mutex_;
  CondVar run_changed_;
  RunState run_state_ ABSL_GUARDED_BY(run_mutex_) = RunState::kRunning;
  bool woken_ ABSL_GUARDED_BY(run_mutex_) = false;

  std::thread thread_;
};

}  // namespace baton
