// Mutual proof that both ends of a new connection hold the same secret, without sending it.
//
//   client                                   server
//   Hello(version, client nonce)       ->
//                                      <-    Challenge(server nonce)
//   Proof(HMAC-SHA256(secret, T, client)) ->
//                                      <-    Accept(HMAC-SHA256(secret, T, server)) | Reject(reason)
//
// T is the version and both nonces. Nonces are fresh, so that a recorded exchange proves nothing later; the role is
// part of what is signed, so that neither proof can be sent back to its maker. The secret should be random (a file of
// 32 bytes, say): whoever sees an exchange can test guesses of a weak one.
//
// Pure computation, no I/O. Not thread-safe; one object per connection.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace baton {

using Nonce = std::array<uint8_t, 32>;
using Mac = std::array<uint8_t, 32>;

enum class AuthRole : uint8_t { kClient = 1, kServer = 2 };

struct AuthTranscript {
  uint32_t version = 0;
  Nonce client_nonce{};
  Nonce server_nonce{};
};

// INTERNAL if the system has no randomness or cryptography to offer.
absl::StatusOr<Nonce> MakeNonce();
absl::StatusOr<Mac> MakeProof(std::string_view secret, AuthRole role, const AuthTranscript& transcript);
// In constant time. False also when the proof cannot be computed.
bool CheckProof(std::string_view secret, AuthRole role, const AuthTranscript& transcript, const Mac& proof);

// INVALID_ARGUMENT for an empty secret, which would let anyone in.
absl::Status CheckSecret(std::string_view secret);

// One side of the exchange.
class AuthHandshake {
 public:
  // What to do after a message of the peer.
  struct Step {
    std::string reply;    // send it, unless empty (also when `status` is an error: it tells the peer)
    absl::Status status;  // an error ends the exchange: UNAUTHENTICATED, or FAILED_PRECONDITION for the version
    bool done = false;    // the peer has proven itself
  };

  static constexpr size_t kMaxMessageBytes = 256;  // no message of either side is longer

  AuthHandshake(AuthRole role, std::string secret, uint32_t version);

  // The client's first message. Called once, by the client only.
  absl::StatusOr<std::string> Start();

  Step OnMessage(std::string_view message);

  // A number that both sides know once done, and that cannot be guessed by others: marks the frames of the connection.
  absl::StatusOr<uint64_t> SessionId() const;

 private:
  enum class State : uint8_t {
    kStart,
    kWaitForHello,
    kWaitForChallenge,
    kWaitForProof,
    kWaitForAccept,
    kDone,
    kFailed
  };

  Step OnHello(std::string_view body);
  Step OnChallenge(std::string_view body);
  Step OnProof(std::string_view body);
  Step OnAccept(std::string_view body);
  Step OnReject(std::string_view body);
  Step Fail(absl::Status status, bool tell_peer);

  const AuthRole role_;
  const std::string secret_;
  AuthTranscript transcript_;
  State state_;
};

}  // namespace baton
