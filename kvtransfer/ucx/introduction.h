// The first words of a connection, on a TCP socket of its own: who is there, is it one of us, how is its UCX worker
// reached.
//
//   client                                server
//   Hello                            ->                        AuthHandshake (auth/challenge.h)
//                                    <-   Challenge
//   Proof                            ->
//                                    <-   Accept | Reject
//   worker address                   ->                        the server expects the session's frames from here on
//                                    <-   worker address       the client may send them
//
// Each message is preceded by its length in 4 bytes. UCX could listen by itself, but its listener takes the process
// down when what it receives is malformed. This keeps strangers from becoming peers, but not from UCX: it opens
// ports of its own on the network device it uses, and what arrives there, remote writes included, it does not
// authenticate. Only trusted hosts may reach those ports.
//
// Never blocks; I/O thread only. Owns the socket.
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

// A peer that holds the secret.
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

  // Watch it for reading and writing, edge-triggered, and call Advance then.
  int fd() const { return socket_.get(); }

  // Goes as far as it can without waiting. Nothing while there is more to wait for; else how it ended, once:
  // UNAVAILABLE if nobody is there or the connection broke, UNAUTHENTICATED, FAILED_PRECONDITION for another version.
  std::optional<absl::StatusOr<Introduced>> Advance();

  // The server's last word: frames of the session are expected.
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
  const std::string worker_address_;  // ours
  AuthHandshake handshake_;
  bool connecting_ = false;
  bool proven_ = false;
  std::optional<Introduced> result_;
  std::string in_;
  std::string out_;
};

// Listens for introductions.
class IntroductionListener {
 public:
  // UNAVAILABLE, naming the address, if it cannot be bound.
  static absl::StatusOr<std::unique_ptr<IntroductionListener>> Listen(const std::string& address);

  int fd() const { return socket_.get(); }
  const SocketAddress& bound() const { return bound_; }

  // The next connection; nothing if none waits.
  std::optional<FileDescriptor> Accept();

 private:
  IntroductionListener(FileDescriptor socket, const SocketAddress& bound) : socket_(std::move(socket)), bound_(bound) {}
  const FileDescriptor socket_;
  const SocketAddress bound_;
};

}  // namespace baton
