// One peer that has proven to hold the secret: the choice of the data path, messages, puts, liveness, and how it ends.
//
//   phase         entered when                              leaves for
//   negotiating   introduced                                open (both ready), leaving
//   open          identity, offer, ready exchanged          leaving
//   leaving       lost, given up, disconnected, goodbye     gone
//   gone          revoked is proven                         -
//
// Negotiation: the client sends its identity, the server answers with its own; each side, having the other's, sends an
// offer; having the other's offer, ready. An offer says where our region is if the peer may write it through shared
// memory; ready says whether we mapped theirs.
//
// Leaving. We stop our puts, let go of the peer's memory, say goodbye and wait a little for the peer's goodbye. Then:
//   the peer never had our region mapped: the connection is closed, nothing it sends is taken any more: revoked.
//   It has, or may have: revoked once it said goodbye (it let go first) or its process is dead. Until then it is
//   given up, and the connection stays open as long as it lasts, so that a stopped peer that returns finds our goodbye
//   and can answer. Its goodbye counts also when our way to it is broken: each direction has its own. When both are,
//   the next connection between the two processes brings word of it (let-go).
//
// I/O thread only. OnFrame is called from UCX's receive callback and closes nothing; Advance, called between rounds of
// progress, does.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kvtransfer/timing/liveness.h"
#include "kvtransfer/transport.h"
#include "kvtransfer/ucx/frame.h"
#include "kvtransfer/ucx/host_identity.h"
#include "kvtransfer/ucx/put_queue.h"
#include "kvtransfer/ucx/shared_region.h"
#include "kvtransfer/ucx/ucx_channel.h"

namespace baton {

// What a peer needs of the node that owns it.
struct UcxPeerContext {
  const TransportOptions& options;
  const SharedRegion* region = nullptr;  // ours, which peers write to; null: none
  TransportEvents* events = nullptr;  // null while the transport is being destroyed: nobody is told anything any more
  Identity identity;                  // ours
  std::function<void(int fd)> watch;  // has CheckProcess called when `fd` is readable
  std::function<void(absl::Duration)> advance_after;  // has Advance called then
  std::function<void(PeerId, std::string)> set_path_name;
  // We have let go of the memory of this process, and the goodbye of that session may never arrive; it has.
  std::function<void(const Identity&, uint64_t session)> let_go;
  std::function<void(uint64_t session)> let_go_heard;
  // This process says that it has let go of ours.
  std::function<void(const Identity&, uint64_t session)> peer_let_go;
};

class UcxPeer {
 public:
  using ConnectDone = std::function<void(absl::StatusOr<PeerId>)>;

  // `connected`: of a connection of ours, called when it is open or failed; null for one that we accepted.
  UcxPeer(UcxPeerContext* context, PeerId id, std::unique_ptr<UcxChannel> channel, ConnectDone connected);

  uint64_t session() const { return channel_->session(); }
  bool IsOf(const Identity& process) const { return theirs_.has_value() && IsSameProcess(*theirs_, process); }
  bool open() const { return phase_ == Phase::kOpen; }
  bool gone() const { return phase_ == Phase::kGone; }
  // Nothing of it is in use by UCX: it may be destroyed before it is gone.
  bool drained() const { return channel_->drained(); }

  void OnFrame(const FrameHeader& header, std::string_view payload);
  // The peer says so through another connection.
  void OnLetGo();
  void OnUnexpected(const std::string& what) { Leave(absl::InvalidArgumentError("the peer sent " + what)); }

  // When open; otherwise nothing happens, and flushes fail: of a peer that is leaving once it has let go.
  void Send(std::string message);
  void SendLetGo(uint64_t session) { channel_->Send(FrameType::kLetGo, "", session); }
  void Put(StreamId stream, std::span<const PutPiece> pieces) { puts_.Put(stream, pieces); }
  void Flush(StreamId stream, PutQueue::FlushDone done);

  // Gives the peer up. The first reason counts.
  void Leave(const absl::Status& why);

  // Every heartbeat_interval. `stall`: how long we did not run ourselves.
  void Tick(SteadyTime now, absl::Duration stall);

  // Does what is possible now: puts, and steps of the ending. True if it did anything.
  bool Advance();
  // Looks whether the peer's process is dead.
  void CheckProcess();

  // The transport ends: closes what is left of the connection, proven or not.
  void Abort();

 private:
  enum class Phase : uint8_t { kNegotiating, kOpen, kLeaving, kGone };

  void OnNegotiation(const FrameHeader& header, std::string_view payload);
  void OnOpenFrame(const FrameHeader& header, std::string_view payload);
  void OnIdentity(std::string_view payload);
  void OnOffer(std::string_view payload);
  void OnReady(const FrameHeader& header);
  void OnMessagePart(const FrameHeader& header, std::string_view part);
  void OnPut(const FrameHeader& header, std::string_view data);
  void OnFlush(const FrameHeader& header);
  void OnGoodbye(std::string_view why);

  absl::StatusOr<RegionOffer> MakeOffer(const Identity& theirs);
  void OpenIfReady();
  void SetState(PeerState state, const absl::Status& why = absl::OkStatus());
  bool RevokedIsProven() const;
  bool FarewellIsOver(SteadyTime now) const;
  bool AdvanceLeaving(SteadyTime now);

  UcxPeerContext* const context_;
  const PeerId id_;
  const bool is_client_;
  ConnectDone connected_;
  const std::unique_ptr<UcxChannel> channel_;
  PutQueue puts_;

  Phase phase_ = Phase::kNegotiating;
  SteadyTime open_by_;
  Liveness liveness_;
  PeerState state_ = PeerState::kAlive;
  uint32_t next_sequence_ = 0;  // of what we receive

  std::optional<Identity> theirs_;
  std::optional<ProcessWatch> process_;
  bool process_dead_ = false;
  absl::Status no_shared_memory_;  // why we do not offer our region, or could not map theirs
  bool offered_ = false;           // our region was offered and the peer has not declined it
  bool ready_sent_ = false;
  bool ready_received_ = false;

  std::string message_;                                  // parts so far
  std::unordered_map<StreamId, uint64_t> bytes_landed_;  // tcp: of the peer's puts, since the last flush

  bool was_open_ = false;
  absl::Status why_;  // we left
  SteadyTime left_at_;
  bool let_go_ = false;
  bool goodbye_sent_ = false;
  bool goodbye_received_ = false;
  bool goodbye_acknowledged_ = false;
};

}  // namespace baton
