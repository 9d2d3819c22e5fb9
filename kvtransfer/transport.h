// SPDX-License-Identifier: Apache-2.0
// Moves bytes between two processes: messages, and one-sided writes into a registered region. A Transport knows nothing
// of requests. All methods are thread-safe and return at once; the work runs on one I/O thread.
//
// The I/O thread never waits for compute. The I/O thread calls TransportEvents, one call at a time; an event must not
// block.
//
// Peers. Each side proves that it holds the shared secret (HMAC challenge) before the transport accepts anything else.
// Each side sends heartbeats from the I/O thread. States of a peer:
//   alive    heard within silent_after
//   silent   not heard for silent_after; may become alive again
//   given up after peer_timeout, or because the connection broke or was closed. Flushes fail; no message is sent or
//            accepted; but the peer's writes may still land. Only revoked can follow
//   revoked  no later write of this peer can land, and the peer reads no local memory. Final
//
// Proof of revoked, by data path. A timer alone is never a proof: a stopped peer on shared memory stays given up.
//   tcp            the local endpoint is closed
//   shared memory  the peer's process is dead, or has said that it unmapped the local memory
//   in-process     at once
//
// A peer's pending flushes fail before the peer is reported as revoked. Callbacks that have not run when the transport
// is destroyed never run.
//
// Writes. The writer puts bytes at offsets of the peer's region. Puts of one (peer, stream) are complete when its Flush
// is. Streams to one peer take turns, so a short put does not wait for a long put. Puts and messages are not ordered
// with each other. If the receiver performs the writes, it checks them (AllowWrite). With a one-sided transport only
// the writer checks; the threat model (docs/handoff.md) says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/strings.h"
#include "engine/types.h"
#include "kvtransfer/peer.h"

namespace baton {

// A contiguous piece of a put. `local` must stay valid and unchanged until the stream's flush is done, the peer is
// revoked or the transport is destroyed.
struct PutPiece {
  const std::byte* local = nullptr;
  uint64_t remote_offset = 0;  // within the peer's region
  uint64_t bytes = 0;
};

// Implemented by the transport's user. Called on the I/O thread.
class TransportEvents {
 public:
  virtual ~TransportEvents() = default;
  // A peer connected and is authenticated. (For outgoing connections see Connect.)
  virtual void OnPeerAccepted(PeerId peer) = 0;
  // `message` has at most max_message_bytes and is valid during the call.
  virtual void OnMessage(PeerId peer, std::string_view message) = 0;
  // Follows OnPeerAccepted or Connect's callback. `why` is OK unless the peer is given up or revoked.
  virtual void OnPeerState(PeerId peer, PeerState state, const absl::Status& why) = 0;
  // Returns whether the peer may write [offset, offset + bytes) of the local region in `stream`. Only transports whose
  // receiver performs the writes ask, for each piece or for parts of a long piece. False discards the bytes and
  // disconnects the peer.
  virtual bool AllowWrite(PeerId peer, StreamId stream, uint64_t offset, uint64_t bytes) = 0;
};

struct TransportOptions {
  std::string listen_address;     // host:port, port 0 for any free port; empty: does not listen
  std::string advertise_address;  // address for peers, port 0 for the bound port; default: the bound address
  // Address of this host whose network device alone carries the data. Default: the host of listen_address; all devices
  // if listen_address is empty or binds all addresses.
  std::string local_host;
  std::string secret;         // shared by all workers of a deployment; must not be empty
  std::string path = "auto";  // data path: auto | tcp | shm
  absl::Duration heartbeat_interval = absl::Milliseconds(250);
  absl::Duration silent_after = absl::Seconds(1);
  absl::Duration peer_timeout = absl::Seconds(3);
  absl::Duration connect_timeout = absl::Seconds(3);
  size_t max_message_bytes = 4 << 20;
  bool prefault = false;  // maps the shared memory of peers ahead of use, after Connect
};

// Memory that peers may write to, or that puts read.
struct TransportMemory {
  void* data = nullptr;
  size_t bytes = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;  // closes all peers and ends the I/O thread; no event follows

  // Allocates and registers memory for the transport's lifetime. Peers' offsets refer to the first region. Call before
  // Start. RESOURCE_EXHAUSTED names the bytes.
  virtual absl::StatusOr<TransportMemory> AllocateRegion(size_t bytes) = 0;

  // Returns whether regions can be of `kind`.
  virtual bool Registers(MemoryKind kind) const { return kind == MemoryKind::kHost; }
  // Allocates a region of `kind`. UNIMPLEMENTED names `kind` and the kind that the transport registers.
  absl::StatusOr<TransportMemory> AllocateRegion(MemoryKind kind, size_t bytes) {
    if (Registers(kind)) return AllocateRegion(bytes);
    return absl::UnimplementedError(
        Concat("the transport registers ", Name(MemoryKind::kHost), " memory, not ", Name(kind), " memory"));
  }

  // Starts the I/O thread and listens. `events` must outlive the transport.
  virtual absl::Status Start(TransportEvents* events) = 0;

  // Returns the address for peers' Connect; empty if the transport does not listen.
  virtual std::string address() const = 0;

  // Longest message that Send accepts.
  virtual size_t max_message_bytes() const = 0;

  // `done` runs on the I/O thread with the new peer or an error. UNAUTHENTICATED: the secrets differ. UNAVAILABLE or
  // DEADLINE_EXCEEDED, naming the address: no answer.
  virtual void Connect(const std::string& address, std::function<void(absl::StatusOr<PeerId>)> done) = 0;

  // Sends in order per peer. Messages are lost when the peer is given up or revoked (see OnPeerState). Disconnects the
  // peer if `message` exceeds max_message_bytes or too many unsent bytes wait for the peer.
  virtual void Send(PeerId peer, std::string message) = 0;

  // The stream's Flush reports errors.
  virtual void Put(PeerId peer, StreamId stream, std::span<const PutPiece> pieces) = 0;

  // `done` runs on the I/O thread. OK: every put of `stream` has landed in the peer's memory. Error: the puts no longer
  // read local memory. The stream id may be reused afterwards.
  virtual void Flush(PeerId peer, StreamId stream, std::function<void(absl::Status)> done) = 0;

  // Closes the connection. OnPeerState(kRevoked) follows once revocation is proven; until then the peer is kGivenUp.
  virtual void Disconnect(PeerId peer) = 0;

  // Returns the data path to a peer, for logs and usage reports: "ucx:shm", "ucx:tcp", "inproc". With RDMA, every
  // transport that may carry the data: "ucx:dc_mlx5,tcp". Empty if unknown.
  virtual std::string PathName(PeerId peer) const = 0;

  // Runs `task` on the I/O thread after `delay`; never after the destructor.
  virtual void Post(absl::Duration delay, std::function<void()> task) = 0;
};

}  // namespace baton
