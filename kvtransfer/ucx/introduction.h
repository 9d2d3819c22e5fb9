// SPDX-License-Identifier: Apache-2.0
// Sets up a connection over a TCP socket of its own: authenticates the peer and exchanges UCX worker addresses. Never
// blocks; I/O thread only. Owns the socket.
//
//   client                                server
//   Hello                            ->                        AuthHandshake (auth/challenge.h)
//                                    <-   Challenge
//   Proof                            ->
//                                    <-   Accept | Reject
//   worker address                   ->                        the server now accepts the session's frames
//                                    <-   worker address       the client may now send frames
//
// A 4-byte length precedes each message.
//
// Why not UCX's own listener: malformed input makes it abort the process. Authentication here does not protect UCX's
// own ports. UCX opens ports on its network device and authenticates nothing that arrives there, remote writes
// included. Only trusted hosts may reach those ports.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/file_descriptor.h"
#include "kvtransfer/auth/challenge.h"
#include "kvtransfer/ucx/socket_address.h"

namespace baton {

// An authenticated peer.
struct Introduced {
  uint64_t session = 0;
  std::string worker_address;
};

class Introduction {
 public:
  static absl::StatusOr<std::unique_ptr<Introduction>> Connect(const SocketAddress& address, const std::string& secret,
                                                               std::string worker_address);
  static std::unique_ptr<Introduction> Accept(FileDescriptor socket, const std::string& secret,
                                              std::string worker_address);

  // Poll fd() for reading and writing, edge-triggered, and call Advance on every event.
  int fd() const { return socket_.get(); }

  // Does all steps that are possible without waiting. Returns nullopt while more input is needed, then the result once:
  // UNAVAILABLE (no answer, or the connection broke), UNAUTHENTICATED, or FAILED_PRECONDITION (version).
  std::optional<absl::StatusOr<Introduced>> Advance();

  // Sends the server's worker address: the client may send frames from now on.
  void Confirm();

 private:
  Introduction(AuthRole role, FileDescriptor socket, const std::string& secret, std::string worker_address);

  absl::Status FinishConnecting();
  absl::Status Flush();
  absl::Status Receive();
  void Queue(std::string_view message);
  absl::Status OnMessage(std::string_view message);

  const AuthRole role_;
  const FileDescriptor socket_;
  const std::string worker_address_;  // of this process
  AuthHandshake handshake_;
  bool connecting_ = false;
  bool proven_ = false;
  std::optional<Introduced> result_;
  std::string in_;
  std::string out_;
};

// Listens for connections. Owns the socket. I/O thread only.
class IntroductionListener {
 public:
  // UNAVAILABLE names the address if it cannot be bound.
  static absl::StatusOr<std::unique_ptr<IntroductionListener>> Listen(const std::string& address);

  int fd() const { return socket_.get(); }
  const SocketAddress& bound() const { return bound_; }

  // Returns the next pending connection, or nullopt.
  std::optional<FileDescriptor> Accept();

 private:
  IntroductionListener(FileDescriptor socket, const SocketAddress& bound) : socket_(std::move(socket)), bound_(bound) {}
  const FileDescriptor socket_;
  const SocketAddress bound_;
};

}  // namespace baton
