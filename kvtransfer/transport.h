// A Transport moves bytes between two processes: messages, and one-sided writes into a registered region. It knows
// nothing of requests.
//
// It runs one I/O thread, which never waits for compute: all TransportEvents are called there, one at a time, and must
// not block. Every method below is thread-safe and returns at once; work is posted to the I/O thread.
//
// Peers. A PeerId names one authenticated connection and is never used again; a peer that comes back is a new PeerId.
// Both sides prove that they hold the shared secret (HMAC challenge) before anything else is accepted. Each sends
// heartbeats from the I/O thread. States:
//   alive    heard within silent_after
//   silent   not heard since; may come back to alive, until peer_timeout
//   given up final but for revoked: its flushes fail, nothing is sent to or taken from it any more, but its writes may
//            still land. After peer_timeout, or because the connection broke or was closed; left out where revoked is
//            proven at once.
//   revoked  final: no write of this peer can land any more, nothing of ours is read for it, and it will not be heard
//            again. What proves that depends on the data path: tcp: our endpoint is closed; shared memory: the peer's
//            process is dead, or came back and said that it let go of our memory; in-process: at once. A timer alone
//            never proves it: a stopped peer on shared memory stays given up as long as it is stopped.
//
// Flushes that wait for a peer fail before it is reported revoked. Callbacks that have not run when the transport is
// destroyed never run.
//
// Writes. The writer puts bytes at offsets of the peer's region; puts of one (peer, stream) complete with its Flush.
// Puts of several streams to one peer share the way: a short one does not wait for a long one. Puts and messages are
// not ordered with each other. A transport whose receiver performs the writes asks it first
// (AllowWrite); with a one-sided transport the writer's own checks are the only ones, and the threat model says so.
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
#include "kvtransfer/peer.h"

namespace baton {

// One contiguous piece of a put. `local` must stay valid and unchanged until the stream's flush is done, or the peer is
// revoked, or the transport is destroyed.
struct PutPiece {
  const std::byte* local = nullptr;
  uint64_t remote_offset = 0;  // into the region that the peer registered
  uint64_t bytes = 0;
};

// Implemented by the user of a transport. Called on the I/O thread.
class TransportEvents {
 public:
  virtual ~TransportEvents() = default;
  // A peer connected to us and authenticated. (For our own connections, Connect's callback says so.)
  virtual void OnPeerAccepted(PeerId peer) = 0;
  // `message` is at most max_message_bytes long and valid during the call.
  virtual void OnMessage(PeerId peer, std::string_view message) = 0;
  // Never kAlive before OnPeerAccepted or Connect's callback. `why` is OK unless given up or revoked.
  virtual void OnPeerState(PeerId peer, PeerState state, const absl::Status& why) = 0;
  // May the peer write [offset, offset + bytes) of our region, as part of its `stream`? Asked by transports whose
  // receiver performs the writes, for each piece or for the parts that a long one travels in. False: nothing is written
  // and the peer is disconnected.
  virtual bool AllowWrite(PeerId peer, StreamId stream, uint64_t offset, uint64_t bytes) = 0;
};

struct TransportOptions {
  std::string listen_address;     // host:port, port 0 for any; empty: does not listen
  std::string advertise_address;  // what peers should connect to, port 0 for the one bound; default: the address bound
  // Address of this host whose network device data goes through, and no other; default: that of listen_address, and all
  // devices if that is every address or empty.
  std::string local_host;
  std::string secret;         // shared by all workers of a deployment; must not be empty
  std::string path = "auto";  // data path: auto | tcp | shm
  absl::Duration heartbeat_interval = absl::Milliseconds(250);
  absl::Duration silent_after = absl::Seconds(1);
  absl::Duration peer_timeout = absl::Seconds(3);
  absl::Duration connect_timeout = absl::Seconds(3);
  size_t max_message_bytes = 4 << 20;
  bool prefault = false;  // map the shared memory of peers that we connect to ahead of use
};

// Memory that peers may write to or that puts are sent from.
struct TransportMemory {
  void* data = nullptr;
  size_t bytes = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;  // stops: all peers are closed, the I/O thread has ended, no event follows

  // Memory that this transport allocated and registered, for the transport's lifetime; the first region is the one that
  // peers' offsets refer to. Call before Start. RESOURCE_EXHAUSTED names the bytes asked for.
  virtual absl::StatusOr<TransportMemory> AllocateRegion(size_t bytes) = 0;

  // Starts the I/O thread and listens. `events` must outlive the transport.
  virtual absl::Status Start(TransportEvents* events) = 0;

  // host:port for peers' Connect; empty when not listening.
  virtual std::string address() const = 0;

  // The longest message that may be sent.
  virtual size_t max_message_bytes() const = 0;

  // `done` runs on the I/O thread: the new peer; UNAUTHENTICATED when the secrets differ; UNAVAILABLE or
  // DEADLINE_EXCEEDED, naming the address, when nobody answers.
  virtual void Connect(const std::string& address, std::function<void(absl::StatusOr<PeerId>)> done) = 0;

  // In order per peer. Lost when the peer is given up or revoked: OnPeerState says so. A message longer than
  // max_message_bytes disconnects the peer, and so does one that finds too much waiting for a peer that does not read.
  virtual void Send(PeerId peer, std::string message) = 0;

  // Fails, through the stream's Flush, when the peer is gone.
  virtual void Put(PeerId peer, StreamId stream, std::span<const PutPiece> pieces) = 0;

  // `done` runs on the I/O thread once every put of `stream` has landed in the peer's memory (OK), or once nothing of
  // it will read local memory any more (the error says why). The stream may be used anew then.
  virtual void Flush(PeerId peer, StreamId stream, std::function<void(absl::Status)> done) = 0;

  // Closes the connection; OnPeerState(kRevoked) follows when that is proven, kGivenUp if it is not yet.
  virtual void Disconnect(PeerId peer) = 0;

  // The data path in use with a peer, for logs and usage reports: "ucx:shm", "ucx:tcp", "inproc". Empty when unknown.
  virtual std::string PathName(PeerId peer) const = 0;

  // Runs `task` on the I/O thread, after `delay`. Never after the destructor.
  virtual void Post(absl::Duration delay, std::function<void()> task) = 0;
};

}  // namespace baton
