// SPDX-License-Identifier: Apache-2.0
// A Transport between two objects in one process, for tests and single-process mode.
//
// Transports find each other by name in a process-wide hub: listen_address "inproc:<name>" ("inproc:" for any free
// name). The receiver performs the writes on its I/O thread and asks AllowWrite. Transports authenticate and send
// heartbeats like any transport. A peer is revoked at once when its connection ends: each write happens under the
// connection's lock, and only while the connection is open.
//
// The fault methods imitate faults of a process or a network. Thread-safe.
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
  // INVALID_ARGUMENT: the secret is empty. ALREADY_EXISTS: the name is taken.
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

  // Imitate SIGSTOP and SIGCONT: the I/O thread stops between two events, and messages of peers wait.
  void Pause();
  void Resume();
  // Imitates SIGKILL: no event or callback follows; peers see the connection break.
  void Kill();
  // Imitates a pulled cable: frames are lost in both directions, and peers are not told. After Reconnect, later frames
  // arrive again.
  void CutNetwork();
  void ReconnectNetwork();
  // Holds this node's puts, and so the puts' flushes, until released. Messages pass.
  void HoldPuts();
  void ReleasePuts();

 private:
  explicit InprocTransport(std::shared_ptr<InprocNode> node);

  const std::shared_ptr<InprocNode> node_;
};

}  // namespace baton
