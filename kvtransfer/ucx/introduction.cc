// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/ucx/introduction.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "kvtransfer/ucx/frame.h"

namespace baton {
namespace {

constexpr size_t kMaxAddressBytes = 16 << 10;  // of a UCX worker address; a few hundred bytes are typical
constexpr int kBacklog = 64;

std::string ErrnoText(int error) { return std::system_category().message(error); }

absl::Status Broken(const std::string& why) {
  return absl::UnavailableError(absl::StrCat("the connection broke during authentication: ", why));
}

}  // namespace

Introduction::Introduction(AuthRole role, FileDescriptor socket, const std::string& secret, std::string worker_address)
    : role_(role),
      socket_(std::move(socket)),
      worker_address_(std::move(worker_address)),
      handshake_(role, secret, kFrameVersion) {}

absl::StatusOr<std::unique_ptr<Introduction>> Introduction::Connect(const SocketAddress& address,
                                                                    const std::string& secret,
                                                                    std::string worker_address) {
  FileDescriptor socket(::socket(address.get()->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return absl::ResourceExhaustedError(absl::StrCat("cannot create a socket: ", ErrnoText(errno)));
  if (connect(socket.get(), address.get(), address.bytes) != 0 && errno != EINPROGRESS) {
    return absl::UnavailableError(ErrnoText(errno));
  }
  std::unique_ptr<Introduction> introduction(
      new Introduction(AuthRole::kClient, std::move(socket), secret, std::move(worker_address)));
  introduction->connecting_ = true;
  BATON_ASSIGN_OR_RETURN(const std::string hello, introduction->handshake_.Start());
  introduction->Queue(hello);
  return introduction;
}

std::unique_ptr<Introduction> Introduction::Accept(FileDescriptor socket, const std::string& secret,
                                                   std::string worker_address) {
  return std::unique_ptr<Introduction>(
      new Introduction(AuthRole::kServer, std::move(socket), secret, std::move(worker_address)));
}

std::optional<absl::StatusOr<Introduced>> Introduction::Advance() {
  if (connecting_) {
    if (absl::Status status = FinishConnecting(); !status.ok()) return status;
    if (connecting_) return std::nullopt;
  }
  if (absl::Status status = Flush(); !status.ok()) return status;
  absl::Status status = Receive();
  if (absl::Status sent = Flush(); status.ok() && !sent.ok()) status = sent;
  if (!status.ok()) return status;
  if (!result_.has_value()) return std::nullopt;
  return *result_;
}

void Introduction::Confirm() {
  Queue(worker_address_);
  // The message fits the socket's empty buffer. Otherwise the client finds the connection broken and reports that.
  static_cast<void>(Flush().ok());
}

absl::Status Introduction::FinishConnecting() {
  pollfd poll_fd{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
  if (poll(&poll_fd, 1, 0) == 0) return absl::OkStatus();
  int error = 0;
  socklen_t bytes = sizeof(error);
  getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
  if (error != 0) return absl::UnavailableError(ErrnoText(error));
  connecting_ = false;
  return absl::OkStatus();
}

void Introduction::Queue(std::string_view message) {
  const auto bytes = static_cast<uint32_t>(message.size());
  out_.append(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
  out_.append(message);
}

absl::Status Introduction::Flush() {
  while (!out_.empty()) {
    const ssize_t sent = send(socket_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN ? absl::OkStatus() : Broken(ErrnoText(errno));
    out_.erase(0, static_cast<size_t>(sent));
  }
  return absl::OkStatus();
}

absl::Status Introduction::Receive() {
  std::array<char, 4096> buffer;
  while (!result_.has_value()) {
    uint32_t bytes = 0;
    if (in_.size() >= sizeof(bytes)) {
      std::memcpy(&bytes, in_.data(), sizeof(bytes));
      if (bytes > (proven_ ? kMaxAddressBytes : AuthHandshake::kMaxMessageBytes)) {
        return absl::UnauthenticatedError("the peer does not speak this protocol: a message exceeds the length limit");
      }
      if (in_.size() >= sizeof(bytes) + bytes) {
        const std::string message = in_.substr(sizeof(bytes), bytes);
        in_.erase(0, sizeof(bytes) + bytes);
        BATON_RETURN_IF_ERROR(OnMessage(message));
        continue;
      }
    }
    const ssize_t got = recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN ? absl::OkStatus() : Broken(ErrnoText(errno));
    if (got == 0) return Broken("closed by the peer");
    in_.append(buffer.data(), static_cast<size_t>(got));
  }
  return absl::OkStatus();
}

absl::Status Introduction::OnMessage(std::string_view message) {
  if (proven_) {
    if (message.empty()) return absl::InvalidArgumentError("the peer sent an empty worker address");
    BATON_ASSIGN_OR_RETURN(const uint64_t session, handshake_.SessionId());
    result_ = Introduced{.session = session, .worker_address = std::string(message)};
    return absl::OkStatus();
  }
  const AuthHandshake::Step step = handshake_.OnMessage(message);
  if (!step.reply.empty()) Queue(step.reply);
  BATON_RETURN_IF_ERROR(step.status);
  proven_ = step.done;
  if (proven_ && role_ == AuthRole::kClient) Queue(worker_address_);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<IntroductionListener>> IntroductionListener::Listen(const std::string& address) {
  BATON_ASSIGN_OR_RETURN(const SocketAddress wanted, ResolveAddress(address, /*numeric_only=*/false));
  const auto error = [&] {
    return absl::UnavailableError(absl::StrCat("cannot listen at ", address, ": ", ErrnoText(errno)));
  };
  FileDescriptor socket(::socket(wanted.get()->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return error();
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(socket.get(), wanted.get(), wanted.bytes) != 0 || listen(socket.get(), kBacklog) != 0) return error();
  SocketAddress bound;
  bound.bytes = sizeof(bound.storage);
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound.storage), &bound.bytes) != 0) return error();
  return std::unique_ptr<IntroductionListener>(new IntroductionListener(std::move(socket), bound));
}

std::optional<FileDescriptor> IntroductionListener::Accept() {
  FileDescriptor socket(accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket.valid()) return std::nullopt;
  return socket;
}

}  // namespace baton
