// SPDX-License-Identifier: Apache-2.0
// The promises of every transport about connections, messages and tasks.

#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "transport_fixture.h"

namespace baton {
namespace {

using testing::ConnectAndWait;
using testing::FlushAndWait;
using testing::Waiting;

INSTANTIATE_TEST_SUITE_P(All, TransportTest,
                         ::testing::Values(Kind{"inproc", "inproc", "auto", "inproc:", "inproc:nobody", "inproc"},
                                           Kind{"ucx_tcp", "ucx", "tcp", "127.0.0.1:0", "127.0.0.1:1", "ucx:tcp"},
                                           Kind{"ucx_shm", "ucx", "shm", "127.0.0.1:0", "127.0.0.1:1", "ucx:shm"}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(TransportTest, ConnectsAndNamesItsDataPath) {
  Connect();
  EXPECT_EQ(client_->transport->PathName(to_server_), GetParam().path_name);
  EXPECT_EQ(server_->transport->PathName(to_client_), GetParam().path_name);
  EXPECT_EQ(client_->transport->PathName(PeerId{987654}), "");
}

TEST_P(TransportTest, RefusesAnEmptySecret) {
  TransportOptions options = Options();
  options.secret = "";
  EXPECT_TRUE(testing::Fails(Create(options), absl::StatusCode::kInvalidArgument, "secret"));
}

TEST_P(TransportTest, RefusesAPeerWithAnotherSecret) {
  const auto server = Make(ListenOptions());
  TransportOptions options = Options();
  options.secret = "a guess";
  const auto client = Make(options);
  EXPECT_TRUE(testing::Fails(ConnectAndWait(*client->transport, server->transport->address()),
                             absl::StatusCode::kUnauthenticated, "secret"));
  EXPECT_TRUE(server->events.accepted().empty());
  // The server goes on.
  const auto friendly = Make(Options());
  EXPECT_OK(ConnectAndWait(*friendly->transport, server->transport->address()));
}

TEST_P(TransportTest, SaysWhenNobodyListens) {
  const auto client = Make(Options());
  EXPECT_TRUE(testing::Fails(ConnectAndWait(*client->transport, GetParam().nobody), absl::StatusCode::kUnavailable,
                             GetParam().nobody));
}

TEST_P(TransportTest, DeliversMessagesInOrderBothWays) {
  Connect();
  constexpr int kCount = 500;
  for (int i = 0; i < kCount; ++i) {
    client_->transport->Send(to_server_, "to server " + std::to_string(i));
    server_->transport->Send(to_client_, "to client " + std::to_string(i));
  }
  ASSERT_TRUE(server_->events.WaitForMessages(kCount));
  ASSERT_TRUE(client_->events.WaitForMessages(kCount));
  for (int i = 0; i < kCount; ++i) {
    EXPECT_EQ(server_->events.messages()[i], std::pair(to_client_, "to server " + std::to_string(i)));
    EXPECT_EQ(client_->events.messages()[i], std::pair(to_server_, "to client " + std::to_string(i)));
  }
}

TEST_P(TransportTest, DeliversEmptyAndLargestMessages) {
  Connect();
  const std::string largest(Options().max_message_bytes, 'x');
  client_->transport->Send(to_server_, "");
  client_->transport->Send(to_server_, largest);
  client_->transport->Send(to_server_, "after");
  ASSERT_TRUE(server_->events.WaitForMessages(3));
  EXPECT_EQ(server_->events.messages()[0].second, "");
  EXPECT_EQ(server_->events.messages()[1].second, largest);
  EXPECT_EQ(server_->events.messages()[2].second, "after");
}

TEST_P(TransportTest, DisconnectsOverAMessageThatIsTooLong) {
  Connect();
  client_->transport->Send(to_server_, std::string(Options().max_message_bytes + 1, 'x'));
  ASSERT_TRUE(client_->events.WaitForState(to_server_, PeerState::kRevoked));
  EXPECT_TRUE(testing::Fails(client_->events.WhyRevoked(to_server_), absl::StatusCode::kInvalidArgument, "message"));
  EXPECT_TRUE(server_->events.WaitForState(to_client_, PeerState::kRevoked));
  EXPECT_TRUE(server_->events.messages().empty());
}

TEST_P(TransportTest, RefusesAMessageLongerThanTheReceiverTakes) {
  TransportOptions strict = ListenOptions();
  strict.max_message_bytes = 1000;
  server_ = Make(strict);
  client_ = Make(Options());
  ASSERT_OK_AND_ASSIGN(to_server_, ConnectAndWait(*client_->transport, server_->transport->address()));
  client_->transport->Send(to_server_, std::string(1001, 'x'));
  EXPECT_TRUE(client_->events.WaitForState(to_server_, PeerState::kRevoked));
  EXPECT_TRUE(server_->events.messages().empty());
}

TEST_P(TransportTest, DisconnectRevokesOnBothSides) {
  Connect();
  client_->transport->Disconnect(to_server_);
  EXPECT_TRUE(client_->events.WaitForState(to_server_, PeerState::kRevoked));
  EXPECT_TRUE(server_->events.WaitForState(to_client_, PeerState::kRevoked));
  EXPECT_EQ(client_->transport->PathName(to_server_), "");
  // A gone peer is harmless.
  client_->transport->Send(to_server_, "lost");
  EXPECT_TRUE(testing::Fails(FlushAndWait(*client_->transport, to_server_, 1), absl::StatusCode::kUnavailable,
                             "not connected"));
}

TEST_P(TransportTest, APeerThatEndsIsRevokedAndComesBackAsAnother) {
  Connect();
  client_.reset();
  ASSERT_TRUE(server_->events.WaitForState(to_client_, PeerState::kRevoked));
  EXPECT_FALSE(server_->events.Has(to_client_, PeerState::kSilent));
  client_ = Make(Options());
  ASSERT_OK(ConnectAndWait(*client_->transport, server_->transport->address()));
  ASSERT_TRUE(server_->events.WaitForAccepted(2));
  EXPECT_NE(server_->events.accepted()[1], to_client_);
}

TEST_P(TransportTest, AQuietConnectionStaysAlive) {
  Connect();
  // Longer than it takes to be called silent; no condition could be waited for.
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  EXPECT_TRUE(client_->events.states().empty());
  EXPECT_TRUE(server_->events.states().empty());
}

TEST_P(TransportTest, AnIdleConnectionUsesNoCpu) {
  Connect();
  const auto cpu_seconds = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
  };
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_LT(cpu_seconds() - before, 0.5);  // two threads that spin would use 2
}

TEST_P(TransportTest, PostRunsTasksInTheirOrderOnTheIoThread) {
  Connect();
  std::vector<int> order;
  std::vector<std::thread::id> threads(3);
  Waiting<int> done;
  const auto task = [&](int i) {
    return [&, i] {
      order.push_back(i);
      threads[i] = std::this_thread::get_id();
      if (i == 2) done.Callback()(0);
    };
  };
  client_->transport->Post(absl::Milliseconds(60), task(2));
  client_->transport->Post(absl::Milliseconds(20), task(1));
  client_->transport->Post(absl::ZeroDuration(), task(0));
  ASSERT_TRUE(done.Wait());
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(threads[0], threads[1]);
  EXPECT_NE(threads[0], std::this_thread::get_id());
}

TEST_P(TransportTest, EndsWithWorkUnderWay) {
  for (int round = 0; round < 5; ++round) {
    Connect();
    const std::vector<std::byte> source = RandomBytes(kRegionBytes, round);
    const PutPiece all{.local = source.data(), .remote_offset = 0, .bytes = kRegionBytes};
    for (int i = 0; i < 20; ++i) client_->transport->Put(to_server_, i, {&all, 1});
    for (int i = 0; i < 20; ++i) client_->transport->Flush(to_server_, i, [](const absl::Status&) {});
    client_->transport->Send(to_server_, std::string(100000, 'x'));
    client_->transport->Post(absl::Hours(1), [] {});
    client_->transport->Connect(GetParam().nobody, [](const absl::StatusOr<PeerId>&) {});
    if (round % 2 == 0) {
      client_.reset();
    } else {
      server_.reset();
    }
    client_.reset();
  }
}

TEST_P(TransportTest, ConnectsAgainAndAgain) {
  server_ = Make(ListenOptions());
  client_ = Make(Options());
  for (size_t round = 0; round < 20; ++round) {
    ASSERT_OK_AND_ASSIGN(to_server_, ConnectAndWait(*client_->transport, server_->transport->address()));
    ASSERT_TRUE(server_->events.WaitForAccepted(round + 1));
    to_client_ = server_->events.accepted()[round];
    client_->transport->Send(to_server_, "ping");
    server_->transport->Send(to_client_, "pong");
    ASSERT_TRUE(server_->events.WaitForMessages(round + 1));
    ASSERT_TRUE(client_->events.WaitForMessages(round + 1));
    if (round % 2 == 0) {
      client_->transport->Disconnect(to_server_);
    } else {
      server_->transport->Disconnect(to_client_);
    }
    if (round % 3 == 0) continue;  // connects anew while the old connection still ends
    ASSERT_TRUE(client_->events.WaitForState(to_server_, PeerState::kRevoked));
    ASSERT_TRUE(server_->events.WaitForState(to_client_, PeerState::kRevoked));
  }
}

TEST_P(TransportTest, TwoTransportsCanHaveSeveralConnections) {
  Connect();
  ASSERT_OK_AND_ASSIGN(const PeerId second, ConnectAndWait(*client_->transport, server_->transport->address()));
  ASSERT_TRUE(server_->events.WaitForAccepted(2));
  client_->transport->Disconnect(to_server_);
  ASSERT_TRUE(server_->events.WaitForState(to_client_, PeerState::kRevoked));
  client_->transport->Send(second, "still here");
  ASSERT_TRUE(server_->events.WaitForMessages(1));
  EXPECT_EQ(server_->events.messages()[0], std::pair(server_->events.accepted()[1], std::string("still here")));
}

TEST_P(TransportTest, RefusesToConnectToItself) {
  server_ = Make(ListenOptions());
  EXPECT_FALSE(ConnectAndWait(*server_->transport, server_->transport->address()).ok());
  client_ = Make(Options());
  EXPECT_OK(ConnectAndWait(*client_->transport, server_->transport->address()));
}

TEST_P(TransportTest, RefusesAnAddressThatIsNone) {
  client_ = Make(Options());
  EXPECT_FALSE(ConnectAndWait(*client_->transport, "nonsense").ok());
  EXPECT_FALSE(ConnectAndWait(*client_->transport, "").ok());
}

TEST_P(TransportTest, ListensWhereItIsToldAndSaysWhenThatIsTaken) {
  server_ = Make(ListenOptions());
  TransportOptions same = Options();
  same.listen_address = server_->transport->address();
  const absl::StatusOr<std::unique_ptr<Transport>> second = Create(same);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(std::string(second.status().message()).find(same.listen_address), std::string::npos) << second.status();
}

TEST_P(TransportTest, NoCallbackRunsOnceTheTransportIsDestroyed) {
  Connect();
  server_->transport.reset();
  ASSERT_TRUE(client_->events.WaitForState(to_server_, PeerState::kRevoked));
  std::atomic<bool> destroyed = false;
  std::atomic<int> late = 0;
  const auto count = [&] { late += destroyed ? 1 : 0; };
  for (int i = 0; i < 100; ++i) {
    client_->transport->Post(absl::Milliseconds(i), count);
    client_->transport->Flush(to_server_, i, [&](const absl::Status&) { count(); });
    client_->transport->Connect(GetParam().nobody, [&](const absl::StatusOr<PeerId>&) { count(); });
  }
  client_->transport.reset();
  destroyed = true;
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  EXPECT_EQ(late, 0);
}

TEST_P(TransportTest, ManyPeersAtOnce) {
  const auto server = Make(ListenOptions());
  std::vector<std::unique_ptr<Node>> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(Make(Options()));
    ASSERT_OK_AND_ASSIGN(const PeerId peer, ConnectAndWait(*clients.back()->transport, server->transport->address()));
    clients.back()->transport->Send(peer, "client " + std::to_string(i));
  }
  ASSERT_TRUE(server->events.WaitForMessages(clients.size()));
  const size_t count = clients.size();
  clients.clear();
  EXPECT_TRUE(server->events.WaitUntil([&] { return server->events.states().size() >= count; }));
}

TEST(UcxTransportOptions, NonsenseIsRefusedByName) {
  TransportOptions good;
  good.secret = "secret";
  EXPECT_OK(CreateUcxTransport(good));
  const auto fails = [&](auto change, const char* name) {
    TransportOptions options = good;
    change(options);
    EXPECT_TRUE(testing::Fails(CreateUcxTransport(options), absl::StatusCode::kInvalidArgument, name));
  };
  fails([](auto& o) { o.secret = ""; }, "secret");
  fails([](auto& o) { o.path = "rdma"; }, "path");
  fails([](auto& o) { o.heartbeat_interval = absl::ZeroDuration(); }, "heartbeat_interval");
  fails([](auto& o) { o.silent_after = o.heartbeat_interval; }, "silent_after");
  fails([](auto& o) { o.peer_timeout = o.silent_after; }, "peer_timeout");
  fails([](auto& o) { o.connect_timeout = absl::ZeroDuration(); }, "connect_timeout");
  fails([](auto& o) { o.max_message_bytes = 0; }, "max_message_bytes");
}

}  // namespace
}  // namespace baton
