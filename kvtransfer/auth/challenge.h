// SPDX-License-Identifier: Apache-2.0
// Mutual proof that both ends of a new connection hold the same secret, without sending the secret. Pure computation,
// no I/O. Not thread-safe; one object per connection.
//
//   client                                   server
//   Hello(version, client nonce)       ->
//                                      <-    Challenge(server nonce)
//   Proof(HMAC-SHA256(secret, T, client)) ->
//                                      <-    Accept(HMAC-SHA256(secret, T, server)) | Reject(reason)
//
// T is the version and both nonces. Fresh nonces make a recorded exchange useless. The MAC covers the role, so a proof
// cannot be reflected to its sender. The secret should be random, for instance a file of 32 bytes: an eavesdropper can
// test guesses of a weak secret offline.
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

// INTERNAL if OpenSSL has no random bytes or no HMAC-SHA256.
absl::StatusOr<Nonce> MakeNonce();
absl::StatusOr<Mac> MakeProof(std::string_view secret, AuthRole role, const AuthTranscript& transcript);
// Compares in constant time. Returns false if the expected proof cannot be computed.
bool CheckProof(std::string_view secret, AuthRole role, const AuthTranscript& transcript, const Mac& proof);

// INVALID_ARGUMENT for an empty secret, which would admit any peer.
absl::Status CheckSecret(std::string_view secret);

// A side of the exchange: client or server.
class AuthHandshake {
 public:
  // Reaction to a message from the peer.
  struct Step {
    std::string reply;    // send unless empty; set with an error, too, to tell the peer
    absl::Status status;  // UNAUTHENTICATED or FAILED_PRECONDITION (version) ends the exchange
    bool done = false;    // the peer has proven that it holds the secret
  };

  static constexpr size_t kMaxMessageBytes = 256;  // limit of every message

  AuthHandshake(AuthRole role, std::string secret, uint32_t version);

  // Returns the client's first message. Called once, by the client only.
  absl::StatusOr<std::string> Start();

  Step OnMessage(std::string_view message);

  // Returns a number that both sides know once done and no third party can guess. Frames of the connection carry this
  // number.
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
  Step Fail(absl::Status status);  // a server tells the client, unless the failure is its own

  const AuthRole role_;
  const std::string secret_;
  AuthTranscript transcript_;
  State state_;
};

}  // namespace baton
