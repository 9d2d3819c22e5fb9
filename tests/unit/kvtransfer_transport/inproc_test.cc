// SPDX-License-Identifier: Apache-2.0
// The faults of the in-process transport, and its promises under faults. ThreadSanitizer runs this test, too.

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "recording_events.h"
#include "tests/inproc/inproc_transport.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using testing::ConnectAndWait;
using testing::FlushAndWait;
using testing::RecordingEvents;
using testing::Waiting;

constexpr size_t kRegionBytes = 1 << 16;

class InprocTest : public ::testing::Test {
 protected:
  struct Node {
    RecordingEvents events;
    TransportMemory memory;
    std::unique_ptr<InprocTransport> transport;
  };

  static std::unique_ptr<Node> Make(const std::string& listen, absl::Duration peer_timeout = absl::Milliseconds(300)) {
    TransportOptions options;
    options.listen_address = listen;
    options.secret = "secret";
    options.heartbeat_interval = absl::Milliseconds(10);
    options.silent_after = absl::Milliseconds(100);
    options.peer_timeout = peer_timeout;
    options.connect_timeout = absl::Milliseconds(200);
    auto node = std::make_unique<Node>();
    node->transport = *InprocTransport::Create(options);
    node->memory = *node->transport->AllocateRegion(kRegionBytes);
    EXPECT_OK(node->transport->Start(&node->events));
    return node;
  }

  void Connect(absl::Duration peer_timeout = absl::Milliseconds(300)) {
    server_ = Make("inproc:", peer_timeout);
    client_ = Make("", peer_timeout);
    std::memset(client_->memory.data, 1, kRegionBytes);
    ASSERT_OK_AND_ASSIGN(to_server_, ConnectAndWait(*client_->transport, server_->transport->address()));
    ASSERT_TRUE(server_->events.WaitForAccepted(1));
    to_client_ = server_->events.accepted()[0];
  }

  void PutOnes(StreamId stream) {
    const PutPiece all{
        .local = static_cast<const std::byte*>(client_->memory.data), .remote_offset = 0, .bytes = kRegionBytes};
    client_->transport->Put(to_server_, stream, {&all, 1});
  }
  int FirstByte() const { return *static_cast<const unsigned char*>(server_->memory.data); }

  std::unique_ptr<Node> server_;
  std::unique_ptr<Node> client_;
  PeerId to_server_{};
  PeerId to_client_{};
};

TEST_F(InprocTest, ARegionOfAKindThatIsNotRegisteredIsRefusedByName) {
  const auto node = Make("inproc:");
  Transport& transport = *node->transport;
  EXPECT_OK(transport.AllocateRegion(MemoryKind::kHost, kRegionBytes));
  for (const MemoryKind kind : {MemoryKind::kPinned, MemoryKind::kDevice}) {
    EXPECT_TRUE(testing::Fails(transport.AllocateRegion(kind, kRegionBytes), absl::StatusCode::kUnimplemented,
                               "registers host memory, not " + std::string(Name(kind)) + " memory"));
  }
}

TEST_F(InprocTest, NamesAreUniqueAndFreedAgain) {
  auto node = Make("inproc:decode");
  EXPECT_EQ(node->transport->address(), "inproc:decode");
  TransportOptions options;
  options.secret = "secret";
  options.listen_address = "inproc:decode";
  EXPECT_TRUE(testing::Fails(InprocTransport::Create(options), absl::StatusCode::kAlreadyExists, "inproc:decode"));
  node.reset();
  EXPECT_OK(InprocTransport::Create(options));
  options.listen_address = "127.0.0.1:80";
  EXPECT_TRUE(testing::Fails(InprocTransport::Create(options), absl::StatusCode::kInvalidArgument, "127.0.0.1:80"));
}

TEST_F(InprocTest, APausedPeerIsSilentAndComesBack) {
  Connect(absl::Minutes(10));
  server_->transport->Pause();
  ASSERT_TRUE(client_->events.WaitForState(to_server_, PeerState::kSilent));
  client_->transport->Send(to_server_, "waits");
  server_->transport->Resume();
  ASSERT_TRUE(client_->events.WaitForState(to_server_, PeerState::kAlive));
  EXPECT_TRUE(server_->events.WaitForMessages(1));
  EXPECT_FALSE(client_->events.Has(to_server_, PeerState::kRevoked));
}

TEST_F(InprocTest, APeerPausedForLongIsRevokedAndItsLatePutsDoNotLand) {
  Connect();
  client_->transport->HoldPuts();
  PutOnes(1);
  client_->transport->Pause();
  ASSERT_TRUE(server_->events.WaitForState(to_client_, PeerState::kRevoked));
  client_->transport->ReleasePuts();
  client_->transport->Resume();
  EXPECT_TRUE(client_->events.WaitForState(to_server_, PeerState::kRevoked));
  EXPECT_EQ(FirstByte(), 0);
}

TEST_F(InprocTest, FlushWaitsForHeldPuts) {
  Connect(absl::Minutes(10));
  client_->transport->HoldPuts();
  PutOnes(1);
  Waiting<absl::Status> flushed;
  client_->transport->Flush(to_server_, 1, flushed.Callback());
  client_->transport->Send(to_server_, "overtakes the put");
  ASSERT_TRUE(server_->events.WaitForMessages(1));
  EXPECT_FALSE(flushed.done());
  EXPECT_EQ(FirstByte(), 0);
  client_->transport->ReleasePuts();
  ASSERT_TRUE(flushed.Wait());
  EXPECT_OK(flushed.Get());
  EXPECT_EQ(FirstByte(), 1);
  EXPECT_EQ(flushed.calls(), 1U);
}

TEST_F(InprocTest, AKilledPeerIsRevokedAndFlushesToItFail) {
  Connect(absl::Minutes(10));
  client_->transport->HoldPuts();
  PutOnes(1);
  Waiting<absl::Status> flushed;
  client_->transport->Flush(to_server_, 1, flushed.Callback());
  server_->transport->Kill();
  ASSERT_TRUE(flushed.Wait());
  EXPECT_TRUE(testing::Fails(flushed.Get(), absl::StatusCode::kUnavailable, "closed"));
  EXPECT_TRUE(client_->events.WaitForState(to_server_, PeerState::kRevoked));
  EXPECT_TRUE(server_->events.states().empty());
}

TEST_F(InprocTest, ACutNetworkRevokesBothSidesByTimeout) {
  Connect();
  client_->transport->CutNetwork();
  PutOnes(1);
  EXPECT_EQ(FlushAndWait(*client_->transport, to_server_, 1).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(client_->events.WaitForState(to_server_, PeerState::kRevoked));
  EXPECT_TRUE(server_->events.WaitForState(to_client_, PeerState::kRevoked));
  client_->transport->ReconnectNetwork();
  EXPECT_OK(ConnectAndWait(*client_->transport, server_->transport->address()));
}

TEST_F(InprocTest, ConnectingToAPausedTransportRunsIntoItsDeadline) {
  server_ = Make("inproc:");
  client_ = Make("");
  server_->transport->Pause();
  EXPECT_TRUE(testing::Fails(ConnectAndWait(*client_->transport, server_->transport->address()),
                             absl::StatusCode::kDeadlineExceeded, server_->transport->address()));
}

TEST_F(InprocTest, EndsWhilePausedAndWithPutsUnderWay) {
  for (int round = 0; round < 20; ++round) {
    Connect();
    for (int i = 0; i < 50; ++i) PutOnes(i);
    if (round % 4 == 0) server_->transport->Pause();
    if (round % 4 == 1) client_->transport->Pause();
    if (round % 2 == 0) {
      server_.reset();
      client_.reset();
    } else {
      client_.reset();
      server_.reset();
    }
  }
}

TEST_F(InprocTest, ManyThreadsUseOneTransport) {
  Connect(absl::Minutes(10));
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      const std::vector<std::byte> source(4096, static_cast<std::byte>(t + 1));
      const PutPiece piece{.local = source.data(), .remote_offset = static_cast<uint64_t>(t) * 4096, .bytes = 4096};
      for (int i = 0; i < 100; ++i) {
        client_->transport->Send(to_server_, "message");
        client_->transport->Put(to_server_, t, {&piece, 1});
        ASSERT_OK(FlushAndWait(*client_->transport, to_server_, t));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(server_->events.WaitForMessages(400));
  for (int t = 0; t < 4; ++t) {
    EXPECT_EQ(static_cast<const unsigned char*>(server_->memory.data)[t * 4096 + 4095], t + 1);
  }
}

}  // namespace
}  // namespace baton
