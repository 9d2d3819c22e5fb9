// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <string>

#include "kvtransfer/auth/challenge.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

constexpr uint32_t kVersion = 7;

struct Pair {
  explicit Pair(const std::string& client_secret = "secret", const std::string& server_secret = "secret",
                uint32_t client_version = kVersion)
      : client(AuthRole::kClient, client_secret, client_version), server(AuthRole::kServer, server_secret, kVersion) {}
  AuthHandshake client;
  AuthHandshake server;
};

TEST(AuthHandshake, TwoWithTheSameSecretProveItToEachOther) {
  Pair pair;
  ASSERT_OK_AND_ASSIGN(const std::string hello, pair.client.Start());
  const auto challenge = pair.server.OnMessage(hello);
  ASSERT_OK(challenge.status);
  EXPECT_FALSE(challenge.done);
  EXPECT_FALSE(pair.server.SessionId().ok());
  const auto proof = pair.client.OnMessage(challenge.reply);
  ASSERT_OK(proof.status);
  EXPECT_FALSE(proof.done);
  const auto accept = pair.server.OnMessage(proof.reply);
  ASSERT_OK(accept.status);
  EXPECT_TRUE(accept.done);
  const auto end = pair.client.OnMessage(accept.reply);
  ASSERT_OK(end.status);
  EXPECT_TRUE(end.done);
  EXPECT_EQ(end.reply, "");
  EXPECT_EQ(*pair.client.SessionId(), *pair.server.SessionId());
  for (const std::string& message : {hello, challenge.reply, proof.reply, accept.reply}) {
    EXPECT_LE(message.size(), AuthHandshake::kMaxMessageBytes);
    EXPECT_EQ(message.find("secret"), std::string::npos);
  }
}

TEST(AuthHandshake, TheServerRefusesAnotherSecretAndTellsTheClient) {
  Pair pair("guess");
  const auto challenge = pair.server.OnMessage(*pair.client.Start());
  const auto verdict = pair.server.OnMessage(pair.client.OnMessage(challenge.reply).reply);
  EXPECT_TRUE(testing::Fails(verdict.status, absl::StatusCode::kUnauthenticated, "secret"));
  const auto end = pair.client.OnMessage(verdict.reply);
  EXPECT_TRUE(testing::Fails(end.status, absl::StatusCode::kUnauthenticated, "secret"));
  EXPECT_FALSE(end.done);
  EXPECT_FALSE(pair.server.SessionId().ok());
}

TEST(AuthHandshake, TheClientRefusesAServerThatAcceptsWithoutTheSecret) {
  Pair pair("secret", "another");
  const std::string hello = *pair.client.Start();
  AuthHandshake other_client(AuthRole::kClient, "another", kVersion);
  // The false server cannot check the proof; it says yes with the best it has.
  const auto challenge = pair.server.OnMessage(hello);
  ASSERT_OK(pair.client.OnMessage(challenge.reply).status);
  const auto end = pair.client.OnMessage("A" + std::string(32, 'x'));
  EXPECT_TRUE(testing::Fails(end.status, absl::StatusCode::kUnauthenticated, "secret"));
}

TEST(AuthHandshake, AProofSentBackToItsMakerProvesNothing) {
  Pair pair;
  const auto challenge = pair.server.OnMessage(*pair.client.Start());
  const std::string proof = pair.client.OnMessage(challenge.reply).reply;
  const auto end = pair.client.OnMessage("A" + proof.substr(1));
  EXPECT_TRUE(testing::Fails(end.status, absl::StatusCode::kUnauthenticated, "secret"));
}

TEST(AuthHandshake, ARecordedExchangeCannotBeReplayed) {
  Pair pair;
  const std::string hello = *pair.client.Start();
  const auto challenge = pair.server.OnMessage(hello);
  const std::string proof = pair.client.OnMessage(challenge.reply).reply;
  ASSERT_TRUE(pair.server.OnMessage(proof).done);
  AuthHandshake server(AuthRole::kServer, "secret", kVersion);
  ASSERT_OK(server.OnMessage(hello).status);
  EXPECT_TRUE(testing::Fails(server.OnMessage(proof).status, absl::StatusCode::kUnauthenticated, "secret"));
}

TEST(AuthHandshake, AnotherVersionIsRefusedOnBothSides) {
  Pair pair("secret", "secret", kVersion + 1);
  const auto refusal = pair.server.OnMessage(*pair.client.Start());
  EXPECT_TRUE(testing::Fails(refusal.status, absl::StatusCode::kFailedPrecondition, "version"));
  EXPECT_TRUE(
      testing::Fails(pair.client.OnMessage(refusal.reply).status, absl::StatusCode::kFailedPrecondition, "version"));
}

TEST(AuthHandshake, ProofsAreBoundToRoleNoncesAndVersion) {
  AuthTranscript transcript{.version = 1, .client_nonce = *MakeNonce(), .server_nonce = *MakeNonce()};
  const Mac proof = *MakeProof("secret", AuthRole::kClient, transcript);
  EXPECT_TRUE(CheckProof("secret", AuthRole::kClient, transcript, proof));
  EXPECT_FALSE(CheckProof("Secret", AuthRole::kClient, transcript, proof));
  EXPECT_FALSE(CheckProof("secret", AuthRole::kServer, transcript, proof));
  AuthTranscript other = transcript;
  other.version = 2;
  EXPECT_FALSE(CheckProof("secret", AuthRole::kClient, other, proof));
  other = transcript;
  other.client_nonce[31] ^= 1;
  EXPECT_FALSE(CheckProof("secret", AuthRole::kClient, other, proof));
  other = transcript;
  std::swap(other.client_nonce, other.server_nonce);
  EXPECT_FALSE(CheckProof("secret", AuthRole::kClient, other, proof));
}

TEST(AuthHandshake, AnEmptySecretProvesNothing) {
  EXPECT_TRUE(testing::Fails(CheckSecret(""), absl::StatusCode::kInvalidArgument, "secret"));
  AuthHandshake client(AuthRole::kClient, "", kVersion);
  EXPECT_TRUE(testing::Fails(client.Start(), absl::StatusCode::kInvalidArgument, "secret"));
  EXPECT_FALSE(MakeProof("", AuthRole::kClient, {}).ok());
  EXPECT_FALSE(CheckProof("", AuthRole::kClient, {}, Mac{}));
}

TEST(AuthHandshake, EveryMalformedMessageEndsTheExchange) {
  const std::string hello = *Pair().client.Start();
  std::string long_hello = hello;
  long_hello.resize(AuthHandshake::kMaxMessageBytes + 1);
  for (const std::string& message :
       {std::string(), std::string("?"), std::string("H"), hello + "x", hello.substr(0, hello.size() - 1),
        std::string("P") + std::string(32, 'x'), std::string("A") + std::string(32, 'x'), long_hello}) {
    Pair pair;
    const auto step = pair.server.OnMessage(message);
    EXPECT_FALSE(step.status.ok()) << message;
    EXPECT_FALSE(pair.server.OnMessage(hello).status.ok()) << "goes on after " << message;
  }
}

TEST(AuthHandshake, NoncesAreNeverTheSame) {
  std::set<Nonce> seen;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(seen.insert(*MakeNonce()).second);
}

}  // namespace
}  // namespace baton
