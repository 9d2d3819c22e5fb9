// The I/O thread of a UCX transport, and what lives on it: the worker, the connections being made, the peers.
//
// The thread sleeps in epoll on UCX's event descriptor, the task queue, sockets and the peers' processes; it uses no
// CPU while nothing happens but heartbeats. Unless marked otherwise, methods are for the I/O thread.
#pragma once

#include <ucp/api/ucp.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "kvtransfer/timing/liveness.h"
#include "kvtransfer/timing/task_queue.h"
#include "kvtransfer/transport.h"
#include "kvtransfer/ucx/event_fd.h"
#include "kvtransfer/ucx/introduction.h"
#include "kvtransfer/ucx/poller.h"
#include "kvtransfer/ucx/shared_region.h"
#include "kvtransfer/ucx/socket_address.h"
#include "kvtransfer/ucx/ucx_peer.h"
#include "kvtransfer/ucx/ucx_worker.h"

namespace baton {

class UcxNode {
 public:
  using ConnectDone = UcxPeer::ConnectDone;

  static absl::StatusOr<std::unique_ptr<UcxNode>> Create(const TransportOptions& options);
  ~UcxNode();  // ends the I/O thread, within a second or two whatever the peers do
  UcxNode(const UcxNode&) = delete;
  UcxNode& operator=(const UcxNode&) = delete;

  // Any thread; the first two before Start has returned.
  absl::StatusOr<TransportMemory> AllocateRegion(size_t bytes);
  absl::Status Start(TransportEvents* events);
  const std::string& address() const { return address_; }
  size_t max_message_bytes() const { return options_.max_message_bytes; }
  std::string PathName(PeerId peer) const;
  void Post(absl::Duration delay, std::function<void()> task) { tasks_->Post(delay, std::move(task)); }

  void Connect(const std::string& address, ConnectDone done);
  void Send(PeerId peer, std::string message);
  void Put(PeerId peer, StreamId stream, std::span<const PutPiece> pieces);
  void Flush(PeerId peer, StreamId stream, std::function<void(absl::Status)> done);
  void Disconnect(PeerId peer);

 private:
  explicit UcxNode(const TransportOptions& options);

  // A connection on its way to become a peer. Without `connected`: accepted.
  struct Pending {
    std::unique_ptr<Introduction> introduction;
    SteadyTime deadline;
    std::string address;
    ConnectDone connected;
  };

  static ucs_status_t OnFrame(void* node, const void* header, size_t header_bytes, void* data, size_t bytes,
                              const ucp_am_recv_param_t* params);

  void Run();

  // One round of everything; false if there was nothing to do.
  bool RunOnce();
  void SleepUntil(SteadyTime deadline);
  void Tick();
  void CloseAll();

  // Sockets and processes; only when the poller may have something to say about them.
  void CheckDescriptors();
  void AcceptConnections();
  void AddPending(Pending pending);
  void AdvancePending();
  void LogStranger(const Pending& pending, const absl::Status& why);
  void OnIntroduced(Pending pending, const Introduced& peer);

  void LookUp(const std::string& address, ConnectDone done);
  void OnLookedUp(uint64_t lookup, const std::string& address, const absl::StatusOr<SocketAddress>& result);
  void ConnectTo(const std::string& address, const SocketAddress& socket_address, ConnectDone done);
  bool AdvancePeers();
  // To processes that are connected anew.
  void TellWhatWasLetGo();
  UcxPeer* FindOpen(PeerId peer);

  const TransportOptions options_;
  std::string address_;
  const std::shared_ptr<EventFd> wake_;
  const std::shared_ptr<TaskQueue> tasks_;  // shared with threads that look names up
  Poller poller_;
  // One to send and one to receive: see UcxChannel.
  std::unique_ptr<UcxWorker> outgoing_;
  std::unique_ptr<UcxWorker> incoming_;
  std::string worker_address_;  // of incoming_
  // Pointers stay valid: nothing is added once the transport has started.
  std::vector<SharedRegion> regions_;
  std::unique_ptr<IntroductionListener> listener_;
  std::optional<UcxPeerContext> context_;
  std::optional<StallDetector> stalls_;

  std::map<PeerId, std::unique_ptr<UcxPeer>> peers_;
  std::unordered_map<uint64_t, UcxPeer*> by_session_;
  // Of whose memory we have let go, oldest first, as long as they may not know it.
  struct LetGo {
    Identity process;
    uint64_t session = 0;
  };
  std::vector<LetGo> let_go_;
  std::vector<Pending> pending_;
  SteadyTime next_stranger_log_;
  std::map<uint64_t, ConnectDone> lookups_;
  uint64_t next_lookup_ = 1;
  bool check_descriptors_ = false;
  bool stop_ = false;

  mutable Mutex path_names_mutex_;
  std::map<PeerId, std::string> path_names_ ABSL_GUARDED_BY(path_names_mutex_);

  std::thread thread_;
};

}  // namespace baton
