// A Transport between two objects in one process, for tests and single-process mode.
//
// Transports find each other by name in a process-wide hub: listen_address "inproc:<name>" ("inproc:" for any free
// name). The receiver performs the writes, on its I/O thread, and asks AllowWrite; both sides authenticate and send
// heartbeats like any transport. A peer is revoked at once when its connection ends: each write happens under the
// connection's lock, after a look at whether it is still open.
//
// The fault methods let tests do to one transport what happens to a process or a network. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kvtransfer/transport.h"

namespace baton {

class InprocNode;

class InprocTransport final : public Transport {
 public:
  // INVALID_ARGUMENT for options that make no sense; ALREADY_EXISTS when the name is taken.
  static absl::StatusOr<std::unique_ptr<InprocTransport>> Create(const TransportOptions& options);
  ~InprocTransport() override;

  absl::StatusOr<TransportMemory> AllocateRegion(size_t bytes) override;
  absl::Status Start(TransportEvents* events) override;
  std::string address() const override;
  size_t max_message_bytes() const override;
  void Connect(const std::string& address, std::function<void(absl::StatusOr<PeerId>)> done) override;
  void Send(PeerId peer, std::string message) override;
  void Put(PeerId peer, StreamId stream, std::span<const PutPiece> pieces) override;
  void Flush(PeerId peer, StreamId stream, std::function<void(absl::Status)> done) override;
  void Disconnect(PeerId peer) override;
  std::string PathName(PeerId peer) const override;
  void Post(absl::Duration delay, std::function<void()> task) override;

  // Like SIGSTOP and SIGCONT: the I/O thread stops between two events; what peers send waits.
  void Pause();
  void Resume();
  // Like kill -9: no event or callback follows; peers see the connection break.
  void Kill();
  // Like a pulled cable: from now on nothing is sent or received, and peers are not told. Reconnect undoes it for what
  // is sent later; what was lost stays lost.
  void CutNetwork();
  void ReconnectNetwork();
  // Keeps our puts (and so their flushes) from being performed until released. Messages pass.
  void HoldPuts();
  void ReleasePuts();

 private:
  explicit InprocTransport(std::shared_ptr<InprocNode> node);

  const std::shared_ptr<InprocNode> node_;
};

}  // namespace baton
