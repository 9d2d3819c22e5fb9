// SPDX-License-Identifier: Apache-2.0
// The I/O thread of a UCX transport and everything it owns: the UCX workers, pending connections and peers. Unless
// marked otherwise, methods are for the I/O thread.
//
// The thread sleeps in epoll on UCX's event descriptor, the task queue, sockets and the peers' processes. Without
// traffic it wakes for heartbeats only.
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
#include "common/event_fd.h"
#include "common/mutex.h"
#include "kvtransfer/timing/liveness.h"
#include "kvtransfer/timing/task_queue.h"
#include "kvtransfer/transport.h"
#include "kvtransfer/ucx/introduction.h"
#include "kvtransfer/ucx/network.h"
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
  ~UcxNode();  // ends the I/O thread within two seconds, even if peers do not answer
  UcxNode(const UcxNode&) = delete;
  UcxNode& operator=(const UcxNode&) = delete;

  // Any thread may call these; AllocateRegion before Start.
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

  // A connection that is not yet a peer. `connected` is null for an accepted connection.
  struct Pending {
    std::unique_ptr<Introduction> introduction;
    SteadyTime deadline;
    std::string address;
    ConnectDone connected;
  };

  static ucs_status_t OnFrame(void* node, const void* header, size_t header_bytes, void* data, size_t bytes,
                              const ucp_am_recv_param_t* params);

  void Run();

  // Does one round of all work. Returns false if there was none.
  bool RunOnce();
  void SleepUntil(SteadyTime deadline);
  void Tick();
  void CloseAll();

  // Checks sockets and processes; called only after the poller may have reported an event.
  void CheckDescriptors();
  void AcceptConnections();
  void AddPending(Pending pending);
  void AdvancePending();
  void LogRefused(const Pending& pending, const absl::Status& why);
  void OnIntroduced(Pending pending, const Introduced& peer);

  void LookUp(const std::string& address, ConnectDone done);
  void OnLookedUp(uint64_t lookup, const std::string& address, const absl::StatusOr<SocketAddress>& result);
  void ConnectTo(const std::string& address, const SocketAddress& socket_address, ConnectDone done);
  bool AdvancePeers();
  // Sends pending "unmapped" notices to processes that have reconnected.
  void SendUnmapped();
  UcxPeer* FindOpen(PeerId peer);

  const TransportOptions options_;
  std::string address_;
  NetworkChoice network_;
  const std::shared_ptr<EventFd> wake_;
  const std::shared_ptr<TaskQueue> tasks_;  // shared with threads that resolve names
  Poller poller_;
  // Separate UCX workers to send and to receive: see UcxChannel.
  std::unique_ptr<UcxWorker> outgoing_;
  std::unique_ptr<UcxWorker> incoming_;
  std::string worker_address_;  // of incoming_
  // Pointers into regions_ stay valid: no region is added after Start.
  std::vector<SharedRegion> regions_;
  std::unique_ptr<IntroductionListener> listener_;
  std::optional<UcxPeerContext> context_;
  std::optional<StallDetector> stalls_;

  std::map<PeerId, std::unique_ptr<UcxPeer>> peers_;
  std::unordered_map<uint64_t, UcxPeer*> by_session_;
  // Peers' regions that we have unmapped and whose owner may not know, oldest first.
  struct Unmapped {
    Identity process;
    uint64_t session = 0;
  };
  std::vector<Unmapped> unmapped_;
  std::vector<Pending> pending_;
  SteadyTime next_refused_log_;
  std::map<uint64_t, ConnectDone> lookups_;
  uint64_t next_lookup_ = 1;
  bool check_descriptors_ = false;
  bool stop_ = false;

  mutable Mutex path_names_mutex_;
  std::map<PeerId, std::string> path_names_ ABSL_GUARDED_BY(path_names_mutex_);

  std::thread thread_;
};

}  // namespace baton
