// SPDX-License-Identifier: Apache-2.0
// Handles one authenticated peer: choice of the data path, messages, puts, liveness and closing. I/O thread only.
//
//   phase      entered when                                            next
//   identity   the connection is authenticated                         offer, leaving
//   offer      the peer's identity has come                            ready, leaving
//   ready      the peer's offer has come                               open, leaving
//   open       the peer is ready                                       leaving
//   leaving    lost, given up, disconnected, or the peer's goodbye     farewell
//   farewell   our puts touch no memory, and our goodbye is queued     answered, gone
//   answered   the peer has acknowledged our goodbye                   gone
//   gone       the connection is closed, and revoked is proven         -
//
// Negotiation. The client sends its identity, and the server answers with its own. Each side answers an identity with
// an offer, and an offer with ready. An offer tells where our region is, if the peer may write to it through shared
// memory. Ready tells whether we mapped the peer's region.
//
// Leaving. We stop our puts, unmap the peer's region, say goodbye and wait briefly for the peer's goodbye. If the peer
// never mapped our region, closing the connection proves revoked. Otherwise the peer is revoked once its goodbye
// arrives (the peer unmaps first) or its process is dead. Until then the peer is given up.
//
// While a peer is given up the connection stays open, so that a stopped peer that returns finds our goodbye and can
// answer. Each direction has its own connection: the peer's goodbye counts even if ours cannot leave. If both are
// broken, the next connection of the two processes carries an "unmapped" frame.
//
// OnFrame runs in UCX's receive callback, where nothing may be closed. Advance runs between rounds of progress and
// closes.
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

// A peer's access to the node that owns it.
struct UcxPeerContext {
  const TransportOptions& options;
  const SharedRegion* region = nullptr;               // our region that peers write to; null: none
  TransportEvents* events = nullptr;                  // null while the transport is being destroyed
  Identity identity;                                  // of this process
  std::string network_path;                           // PathName without shared memory
  std::function<void(int fd)> watch;                  // calls CheckProcess when `fd` is readable
  std::function<void(absl::Duration)> advance_after;  // calls Advance after a delay
  std::function<void(PeerId, std::string)> set_path_name;
  // We unmapped the region of this process; the goodbye of that session may never arrive.
  std::function<void(const Identity&, uint64_t session)> unmapped;
  // The goodbye of that session has arrived.
  std::function<void(uint64_t session)> unmapped_is_known;
  // This process has reported that it unmapped our region of that session.
  std::function<void(const Identity&, uint64_t session)> peer_unmapped;
};

class UcxPeer {
 public:
  using ConnectDone = std::function<void(absl::StatusOr<PeerId>)>;

  // `connected` is called when an outgoing connection is open or has failed; null for an accepted connection.
  UcxPeer(UcxPeerContext* context, PeerId id, std::unique_ptr<UcxChannel> channel, ConnectDone connected);

  uint64_t session() const { return channel_->session(); }
  bool IsOf(const Identity& process) const { return theirs_.has_value() && IsSameProcess(*theirs_, process); }
  bool open() const { return phase_ == Phase::kOpen; }
  bool gone() const { return phase_ == Phase::kGone; }
  // UCX uses nothing of this peer: the object may be destroyed, even before it is gone.
  bool drained() const { return channel_->drained(); }

  void OnFrame(const FrameHeader& header, std::string_view payload);
  // The peer unmapped our region, as reported through a later connection.
  void OnUnmapped();
  void OnUnexpected(const std::string& what) { Leave(absl::InvalidArgumentError("the peer sent " + what)); }

  // If the peer is not open, Send and Put do nothing and Flush fails. For a leaving peer, Flush fails after Unmap.
  void Send(std::string message);
  void SendUnmapped(uint64_t session) { channel_->Send(FrameType::kUnmapped, "", session); }
  void Put(StreamId stream, std::span<const PutPiece> pieces) { puts_.Put(stream, pieces); }
  void Flush(StreamId stream, PutQueue::FlushDone done);

  // Gives the peer up. Only the first call's reason counts.
  void Leave(const absl::Status& why);

  // Called every heartbeat_interval. `stall` is the time that the I/O thread itself did not run.
  void Tick(SteadyTime now, absl::Duration stall);

  // Does all work that is possible now: puts, and steps of leaving. Returns true if anything was done.
  bool Advance();
  // Checks whether the peer's process is dead.
  void CheckProcess();

  // The transport is closing: closes the connection, whether revoked is proven or not.
  void Abort();

 private:
  // In order: a peer never returns to an earlier phase. The first three name the frame that is expected next.
  enum class Phase : uint8_t { kIdentity, kOffer, kReady, kOpen, kLeaving, kFarewell, kAnswered, kGone };
  // How the peer's side of the connection ended, if it did. After either end, the peer writes nothing more.
  enum class PeerEnd : uint8_t { kNone, kGoodbye, kProcessDied };

  // Takes the next frame of the negotiation. Returns false if it is not the expected frame.
  bool OnNegotiation(const FrameHeader& header, std::string_view payload);
  void OnOpenFrame(const FrameHeader& header, std::string_view payload);
  void OnIdentity(std::string_view payload);
  void OnOffer(std::string_view payload);
  void OnMessagePart(const FrameHeader& header, std::string_view part);
  void OnPut(const FrameHeader& header, std::string_view data);
  void OnFlush(const FrameHeader& header);
  void OnGoodbye(std::string_view why);

  absl::StatusOr<RegionOffer> MakeOffer(const Identity& theirs);
  void Open();
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

  Phase phase_ = Phase::kIdentity;
  bool was_open_ = false;  // the transport's user knows the peer
  SteadyTime open_by_;
  Liveness liveness_;
  PeerState state_ = PeerState::kAlive;
  uint32_t next_sequence_ = 0;  // of the next received frame

  std::optional<Identity> theirs_;
  std::optional<ProcessWatch> process_;
  absl::Status no_shared_memory_;  // why we do not offer our region or could not map the peer's
  bool may_map_ = false;           // we offered our region and the peer has not declined
  PeerEnd end_ = PeerEnd::kNone;

  std::string message_;                                  // received parts of a message
  std::unordered_map<StreamId, uint64_t> bytes_landed_;  // tcp: bytes of the peer's puts since the last flush

  absl::Status why_;  // reason of Leave
  SteadyTime left_at_;
};

}  // namespace baton
