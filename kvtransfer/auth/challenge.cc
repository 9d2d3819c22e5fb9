// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/auth/challenge.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace baton {
namespace {

// The first byte of each message.
enum class MessageType : char { kHello = 'H', kChallenge = 'C', kProof = 'P', kAccept = 'A', kReject = 'R' };
// The second byte of a Reject.
enum class RejectReason : char { kSecret = 's', kVersion = 'v', kMalformed = 'm' };

constexpr std::string_view kProofLabel = "baton transport proof";
constexpr std::string_view kSessionLabel = "baton transport session";

void AppendUint32(std::string& out, uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(value >> shift));
}

template <typename Bytes>
std::string_view AsText(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string Message(MessageType type, std::string_view body) {
  std::string message(1, static_cast<char>(type));
  message.append(body);
  return message;
}

absl::StatusOr<Mac> HmacSha256(std::string_view secret, std::string_view data) {
  BATON_RETURN_IF_ERROR(CheckSecret(secret));
  Mac mac;
  size_t bytes = 0;
  if (EVP_Q_mac(nullptr, "HMAC", nullptr, "SHA256", nullptr, secret.data(), secret.size(),
                reinterpret_cast<const unsigned char*>(data.data()), data.size(), mac.data(), mac.size(),
                &bytes) == nullptr ||
      bytes != mac.size()) {
    return absl::InternalError("OpenSSL does not provide HMAC-SHA256");
  }
  return mac;
}

std::string Signed(std::string_view label, const AuthTranscript& transcript) {
  std::string data(label);
  AppendUint32(data, transcript.version);
  data.append(AsText(transcript.client_nonce));
  data.append(AsText(transcript.server_nonce));
  return data;
}

absl::Status Malformed() { return absl::UnauthenticatedError("malformed authentication message"); }

absl::Status WrongSecret() {
  return absl::UnauthenticatedError("the peer's proof is wrong: expected the same transport secret on both sides");
}

}  // namespace

absl::StatusOr<Nonce> MakeNonce() {
  Nonce nonce;
  if (RAND_bytes(nonce.data(), static_cast<int>(nonce.size())) != 1) {
    return absl::InternalError("OpenSSL cannot provide random bytes");
  }
  return nonce;
}

absl::StatusOr<Mac> MakeProof(std::string_view secret, AuthRole role, const AuthTranscript& transcript) {
  std::string data = Signed(kProofLabel, transcript);
  data.push_back(static_cast<char>(role));
  return HmacSha256(secret, data);
}

bool CheckProof(std::string_view secret, AuthRole role, const AuthTranscript& transcript, const Mac& proof) {
  const absl::StatusOr<Mac> expected = MakeProof(secret, role, transcript);
  return expected.ok() && CRYPTO_memcmp(expected->data(), proof.data(), proof.size()) == 0;
}

absl::Status CheckSecret(std::string_view secret) {
  if (secret.empty())
    return absl::InvalidArgumentError("the transport secret is empty: expected the secret that all workers share");
  return absl::OkStatus();
}

AuthHandshake::AuthHandshake(AuthRole role, std::string secret, uint32_t version)
    : role_(role),
      secret_(std::move(secret)),
      transcript_{.version = version},
      state_(role == AuthRole::kClient ? State::kStart : State::kWaitForHello) {}

absl::StatusOr<std::string> AuthHandshake::Start() {
  if (state_ != State::kStart)
    return absl::FailedPreconditionError("authentication cannot start: expected the first call of a client");
  BATON_RETURN_IF_ERROR(CheckSecret(secret_));
  BATON_ASSIGN_OR_RETURN(transcript_.client_nonce, MakeNonce());
  std::string body;
  AppendUint32(body, transcript_.version);
  body.append(AsText(transcript_.client_nonce));
  state_ = State::kWaitForChallenge;
  return Message(MessageType::kHello, body);
}

AuthHandshake::Step AuthHandshake::OnMessage(std::string_view message) {
  if (message.empty() || message.size() > kMaxMessageBytes) return Fail(Malformed());
  const auto type = static_cast<MessageType>(message[0]);
  const std::string_view body = message.substr(1);
  if (state_ == State::kWaitForHello && type == MessageType::kHello) return OnHello(body);
  if (state_ == State::kWaitForChallenge && type == MessageType::kChallenge) return OnChallenge(body);
  if (state_ == State::kWaitForProof && type == MessageType::kProof) return OnProof(body);
  if (state_ == State::kWaitForAccept && type == MessageType::kAccept) return OnAccept(body);
  if (role_ == AuthRole::kClient && type == MessageType::kReject) return OnReject(body);
  return Fail(absl::UnauthenticatedError("authentication message out of order"));
}

AuthHandshake::Step AuthHandshake::OnHello(std::string_view body) {
  std::string version;
  AppendUint32(version, transcript_.version);
  if (body.size() != version.size() + sizeof(Nonce)) return Fail(Malformed());
  if (body.substr(0, version.size()) != version) {
    return Fail(absl::FailedPreconditionError(
        absl::StrCat("the peer has another transport version, expected ", transcript_.version)));
  }
  std::memcpy(transcript_.client_nonce.data(), body.data() + version.size(), sizeof(Nonce));
  absl::StatusOr<Nonce> nonce = MakeNonce();
  if (!nonce.ok()) return Fail(nonce.status());
  transcript_.server_nonce = *nonce;
  state_ = State::kWaitForProof;
  return {.reply = Message(MessageType::kChallenge, AsText(transcript_.server_nonce)), .status = {}};
}

AuthHandshake::Step AuthHandshake::OnChallenge(std::string_view body) {
  if (body.size() != sizeof(Nonce)) return Fail(Malformed());
  std::memcpy(transcript_.server_nonce.data(), body.data(), sizeof(Nonce));
  absl::StatusOr<Mac> proof = MakeProof(secret_, role_, transcript_);
  if (!proof.ok()) return Fail(proof.status());
  state_ = State::kWaitForAccept;
  return {.reply = Message(MessageType::kProof, AsText(*proof)), .status = {}};
}

AuthHandshake::Step AuthHandshake::OnProof(std::string_view body) {
  Mac theirs;
  if (body.size() != sizeof(theirs)) return Fail(Malformed());
  std::memcpy(theirs.data(), body.data(), sizeof(theirs));
  if (!CheckProof(secret_, AuthRole::kClient, transcript_, theirs)) return Fail(WrongSecret());
  absl::StatusOr<Mac> ours = MakeProof(secret_, role_, transcript_);
  if (!ours.ok()) return Fail(ours.status());
  state_ = State::kDone;
  return {.reply = Message(MessageType::kAccept, AsText(*ours)), .status = {}, .done = true};
}

AuthHandshake::Step AuthHandshake::OnAccept(std::string_view body) {
  Mac theirs;
  if (body.size() != sizeof(theirs)) return Fail(Malformed());
  std::memcpy(theirs.data(), body.data(), sizeof(theirs));
  if (!CheckProof(secret_, AuthRole::kServer, transcript_, theirs)) return Fail(WrongSecret());
  state_ = State::kDone;
  return {.reply = "", .status = {}, .done = true};
}

AuthHandshake::Step AuthHandshake::OnReject(std::string_view body) {
  const auto reason = body.empty() ? RejectReason::kMalformed : static_cast<RejectReason>(body[0]);
  if (reason == RejectReason::kVersion) {
    return Fail(
        absl::FailedPreconditionError(absl::StrCat("the peer refuses our transport version ", transcript_.version)));
  }
  if (reason == RejectReason::kSecret) {
    return Fail(absl::UnauthenticatedError("the peer refuses our transport secret"));
  }
  return Fail(absl::UnauthenticatedError("the peer refuses our authentication message as malformed"));
}

AuthHandshake::Step AuthHandshake::Fail(absl::Status status) {
  Step step;
  const bool fault_of_peer = absl::IsUnauthenticated(status) || absl::IsFailedPrecondition(status);
  if (fault_of_peer && role_ == AuthRole::kServer) {
    RejectReason reason = RejectReason::kMalformed;
    if (state_ == State::kWaitForProof) reason = RejectReason::kSecret;
    if (absl::IsFailedPrecondition(status)) reason = RejectReason::kVersion;
    step.reply = Message(MessageType::kReject, std::string(1, static_cast<char>(reason)));
  }
  state_ = State::kFailed;
  step.status = std::move(status);
  return step;
}

absl::StatusOr<uint64_t> AuthHandshake::SessionId() const {
  if (state_ != State::kDone) return absl::FailedPreconditionError("no session id: authentication is not complete");
  BATON_ASSIGN_OR_RETURN(const Mac mac, HmacSha256(secret_, Signed(kSessionLabel, transcript_)));
  uint64_t session = 0;
  std::memcpy(&session, mac.data(), sizeof(session));
  return session;
}

}  // namespace baton
