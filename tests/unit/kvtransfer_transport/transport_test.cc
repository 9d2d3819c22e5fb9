// SPDX-License-Identifier: Apache-2.0
// The promises of every transport, tested over each transport with both ends in one process.

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kvtransfer/ucx/ucx_transport.h"
#include "recording_events.h"
#include "tests/inproc/inproc_transport.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using testing::ConnectAndWait;
using testing::FlushAndWait;
using testing::RecordingEvents;
using testing::Waiting;

constexpr size_t kRegionBytes = 8 << 20;

struct Kind {
  const char* name;
  const char* kind;
  const char* path;
  const char* listen;
  const char* nobody;  // an address where nobody listens
  const char* path_name;
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

// A transport with a region and its events.
struct Node {
  RecordingEvents events;
  std::byte* region = nullptr;
  std::unique_ptr<Transport> transport;  // ends first
};

class TransportTest : public ::testing::TestWithParam<Kind> {
 protected:
  TransportOptions Options() {
    TransportOptions options;
    options.path = GetParam().path;
    options.secret = "a secret of the test";
    options.heartbeat_interval = absl::Milliseconds(20);
    options.max_message_bytes = 1 << 20;
    options.prefault = true;
    return options;
  }
  TransportOptions ListenOptions() {
    TransportOptions options = Options();
    options.listen_address = GetParam().listen;
    return options;
  }
  static absl::StatusOr<std::unique_ptr<Transport>> Create(const TransportOptions& options) {
    if (std::string(GetParam().kind) == "inproc") return InprocTransport::Create(options);
    return CreateUcxTransport(options);
  }
  static std::unique_ptr<Node> Make(const TransportOptions& options, bool with_region = true) {
    auto node = std::make_unique<Node>();
    absl::StatusOr<std::unique_ptr<Transport>> transport = Create(options);
    EXPECT_OK(transport);
    node->transport = *std::move(transport);
    if (with_region) {
      const absl::StatusOr<TransportMemory> memory = node->transport->AllocateRegion(kRegionBytes);
      EXPECT_OK(memory);
      node->region = static_cast<std::byte*>(memory->data);
      std::memset(node->region, 0, kRegionBytes);
    }
    EXPECT_OK(node->transport->Start(&node->events));
    return node;
  }

  // Two connected nodes: `client_` put to `server_`.
  void Connect() {
    server_ = Make(ListenOptions());
    client_ = Make(Options());
    ASSERT_OK_AND_ASSIGN(to_server_, ConnectAndWait(*client_->transport, server_->transport->address()));
    ASSERT_TRUE(server_->events.WaitForAccepted(1));
    to_client_ = server_->events.accepted()[0];
  }

  bool ReceiverWrites() const { return std::string(GetParam().path_name) != "ucx:shm"; }

  std::unique_ptr<Node> server_;
  std::unique_ptr<Node> client_;
  PeerId to_server_{};
  PeerId to_client_{};
};

INSTANTIATE_TEST_SUITE_P(All, TransportTest,
                         ::testing::Values(Kind{"inproc", "inproc", "auto", "inproc:", "inproc:nobody", "inproc"},
                                           Kind{"ucx_tcp", "ucx", "tcp", "127.0.0.1:0", "127.0.0.1:1", "ucx:tcp"},
                                           Kind{"ucx_shm", "ucx", "shm", "127.0.0.1:0", "127.0.0.1:1", "ucx:shm"}),
                         [](const auto& info) { return std::string(info.param.name); });

std::vector<std::byte> RandomBytes(size_t count, uint32_t seed) {
  std::vector<std::byte> bytes(count);
  std::mt19937 random(seed);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

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

TEST_P(TransportTest, FlushedPutsAreInThePeersMemory) {
  Connect();
  const std::vector<std::byte> source = RandomBytes(kRegionBytes, 1);
  // Many pieces of many sizes, scattered, in several puts of two streams.
  std::vector<PutPiece> pieces;
  std::mt19937 random(2);
  for (size_t at = 0; at < kRegionBytes;) {
    const size_t bytes = std::min<size_t>(kRegionBytes - at, 1 + random() % 300000);
    pieces.push_back({.local = source.data() + at, .remote_offset = at, .bytes = bytes});
    at += bytes;
  }
  std::shuffle(pieces.begin(), pieces.end(), random);
  const size_t half = pieces.size() / 2;
  client_->transport->Put(to_server_, 7, {pieces.data(), half});
  client_->transport->Put(to_server_, 8, {pieces.data() + half, pieces.size() - half});
  EXPECT_OK(FlushAndWait(*client_->transport, to_server_, 7));
  for (size_t i = 0; i < half; ++i) {
    ASSERT_EQ(std::memcmp(server_->region + pieces[i].remote_offset, pieces[i].local, pieces[i].bytes), 0) << i;
  }
  EXPECT_OK(FlushAndWait(*client_->transport, to_server_, 8));
  EXPECT_EQ(std::memcmp(server_->region, source.data(), kRegionBytes), 0);
}

TEST_P(TransportTest, PutsWorkBothWaysAtOnce) {
  Connect();
  const std::vector<std::byte> source = RandomBytes(kRegionBytes, 3);
  const PutPiece all{.local = source.data(), .remote_offset = 0, .bytes = kRegionBytes};
  client_->transport->Put(to_server_, 1, {&all, 1});
  server_->transport->Put(to_client_, 1, {&all, 1});
  EXPECT_OK(FlushAndWait(*client_->transport, to_server_, 1));
  EXPECT_OK(FlushAndWait(*server_->transport, to_client_, 1));
  EXPECT_EQ(std::memcmp(server_->region, source.data(), kRegionBytes), 0);
  EXPECT_EQ(std::memcmp(client_->region, source.data(), kRegionBytes), 0);
}

TEST_P(TransportTest, AShortStreamDoesNotWaitForALongOne) {
  if (std::string(GetParam().kind) == "inproc") GTEST_SKIP() << "a put in process is one copy: there is no queue";
  Connect();
  const std::vector<std::byte> source = RandomBytes(kRegionBytes, 3);
  const std::vector<PutPiece> half_a_gigabyte(64, {.local = source.data(), .remote_offset = 0, .bytes = kRegionBytes});
  const PutPiece little{.local = source.data(), .remote_offset = 0, .bytes = 65536};
  Waiting<absl::Status> long_one;
  client_->transport->Put(to_server_, 1, half_a_gigabyte);
  client_->transport->Flush(to_server_, 1, long_one.Callback());
  client_->transport->Put(to_server_, 2, {&little, 1});
  EXPECT_OK(FlushAndWait(*client_->transport, to_server_, 2));
  EXPECT_FALSE(long_one.done());
  ASSERT_TRUE(long_one.Wait());
  EXPECT_OK(long_one.Get());
}

TEST_P(TransportTest, AStreamCanBeUsedAgainAfterItsFlush) {
  Connect();
  for (int round = 0; round < 20; ++round) {
    const std::vector<std::byte> source = RandomBytes(100000, round);
    const PutPiece piece{.local = source.data(), .remote_offset = 64, .bytes = source.size()};
    client_->transport->Put(to_server_, 5, {&piece, 1});
    ASSERT_OK(FlushAndWait(*client_->transport, to_server_, 5));
    ASSERT_EQ(std::memcmp(server_->region + 64, source.data(), source.size()), 0);
  }
}

TEST_P(TransportTest, FlushOfAnUnusedStreamIsDoneAtOnce) {
  Connect();
  EXPECT_OK(FlushAndWait(*client_->transport, to_server_, 42));
}

TEST_P(TransportTest, PutsOutsideOfTheRegionFailAndWriteNothing) {
  Connect();
  const std::vector<std::byte> source = RandomBytes(4096, 1);
  for (const uint64_t offset : {kRegionBytes - 4095, kRegionBytes, ~uint64_t{0} - 100}) {
    const PutPiece piece{.local = source.data(), .remote_offset = offset, .bytes = source.size()};
    client_->transport->Put(to_server_, 1, {&piece, 1});
    EXPECT_FALSE(FlushAndWait(*client_->transport, to_server_, 1).ok());
    if (client_->events.Has(to_server_, PeerState::kRevoked)) break;  // the receiver refused and disconnected
  }
  EXPECT_TRUE(
      std::all_of(server_->region, server_->region + kRegionBytes, [](std::byte b) { return b == std::byte{0}; }));
}

TEST_P(TransportTest, AWriteThatIsNotAllowedDisconnectsItsWriter) {
  if (!ReceiverWrites()) GTEST_SKIP() << "the writer writes by itself";
  Connect();
  server_->events.set_allow_write(
      [](PeerId, StreamId stream, uint64_t offset, uint64_t) { return stream == 1 && offset < 8192; });
  const std::vector<std::byte> source = RandomBytes(4096, 1);
  const PutPiece allowed{.local = source.data(), .remote_offset = 4096, .bytes = 4096};
  client_->transport->Put(to_server_, 1, {&allowed, 1});
  ASSERT_OK(FlushAndWait(*client_->transport, to_server_, 1));
  const PutPiece forbidden{.local = source.data(), .remote_offset = 8192, .bytes = 4096};
  client_->transport->Put(to_server_, 1, {&forbidden, 1});
  EXPECT_FALSE(FlushAndWait(*client_->transport, to_server_, 1).ok());
  ASSERT_TRUE(server_->events.WaitForState(to_client_, PeerState::kRevoked));
  EXPECT_TRUE(testing::Fails(server_->events.WhyRevoked(to_client_), absl::StatusCode::kPermissionDenied, "8192"));
  EXPECT_EQ(server_->region[8192], std::byte{0});
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

TEST_P(TransportTest, AWriterNeedsNoRegionOfItsOwn) {
  server_ = Make(ListenOptions());
  client_ = Make(Options(), /*with_region=*/false);
  const std::vector<std::byte> source = RandomBytes(100000, 1);
  const PutPiece piece{.local = source.data(), .remote_offset = 0, .bytes = source.size()};
  for (size_t round = 0; round < 5; ++round) {
    ASSERT_OK_AND_ASSIGN(to_server_, ConnectAndWait(*client_->transport, server_->transport->address()));
    ASSERT_TRUE(server_->events.WaitForAccepted(round + 1));
    to_client_ = server_->events.accepted()[round];
    EXPECT_EQ(client_->transport->PathName(to_server_), GetParam().path_name);
    std::memset(server_->region, 0, kRegionBytes);
    client_->transport->Put(to_server_, 1, {&piece, 1});
    ASSERT_OK(FlushAndWait(*client_->transport, to_server_, 1));
    EXPECT_EQ(std::memcmp(server_->region, source.data(), source.size()), 0);
    client_->transport->Disconnect(to_server_);
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
