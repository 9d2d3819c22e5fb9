// SPDX-License-Identifier: Apache-2.0
// UCX transports whose peer is another process that gets killed, stopped, restarted.

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "common/steady_time.h"
#include "kvtransfer/ucx/ucx_transport.h"
#include "peer_process.h"
#include "recording_events.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using testing::ConnectAndWait;
using testing::FlushAndWait;
using testing::PeerProcess;
using testing::RecordingEvents;
using testing::Waiting;

constexpr char kSecret[] = "a secret of the test";
constexpr size_t kRegionBytes = 4 << 20;

// The parameter is the data path.
class ProcessTest : public ::testing::TestWithParam<const char*> {
 protected:
  bool shm() const { return std::string(GetParam()) == "shm"; }

  void Start(absl::Duration peer_timeout, bool with_region = true) {
    TransportOptions options;
    options.path = GetParam();
    options.secret = kSecret;
    options.listen_address = "127.0.0.1:0";
    options.heartbeat_interval = absl::Milliseconds(20);
    options.silent_after = absl::Milliseconds(400);
    options.peer_timeout = peer_timeout;
    absl::StatusOr<std::unique_ptr<Transport>> transport = CreateUcxTransport(options);
    ASSERT_OK(transport);
    transport_ = *std::move(transport);
    if (with_region) {
      ASSERT_OK_AND_ASSIGN(memory_, transport_->AllocateRegion(kRegionBytes));
      std::memset(memory_.data, 0, memory_.bytes);
    }
    ASSERT_OK(transport_->Start(&events_));
  }

  // A child that puts into our region without end.
  void StartWriter() {
    child_ =
        std::make_unique<PeerProcess>(std::vector<std::string>{"write", GetParam(), kSecret, transport_->address()});
    ASSERT_EQ(child_->WaitForLine("connected "), "OK");
    child_->WaitForLine("flushed");
    ASSERT_TRUE(events_.WaitForAccepted(1));
    peer_ = events_.accepted().back();
    ASSERT_EQ(transport_->PathName(peer_), std::string("ucx:") + GetParam());
  }

  // A child that we put to.
  void StartReceiver() {
    child_ = std::make_unique<PeerProcess>(std::vector<std::string>{"serve", GetParam(), kSecret});
    address_ = child_->WaitForLine("address ");
    ASSERT_OK_AND_ASSIGN(peer_, ConnectAndWait(*transport_, address_));
  }

  // Puts and flushes without end, until a flush fails with what is returned.
  absl::Status PutUntilFailure() {
    while (true) {
      const PutPiece all{
          .local = static_cast<const std::byte*>(memory_.data), .remote_offset = 0, .bytes = memory_.bytes};
      transport_->Put(peer_, 1, {&all, 1});
      if (absl::Status status = FlushAndWait(*transport_, peer_, 1); !status.ok()) return status;
    }
  }

  std::string Snapshot() const { return {static_cast<const char*>(memory_.data), memory_.bytes}; }

  // After revoked nothing lands: the memory is ours alone.
  void ExpectNoMoreWrites() {
    const std::string before = Snapshot();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_TRUE(Snapshot() == before);
  }

  RecordingEvents events_;
  std::unique_ptr<PeerProcess> child_;
  std::string address_;  // of a receiver
  TransportMemory memory_;
  std::unique_ptr<Transport> transport_;
  PeerId peer_{};
};

INSTANTIATE_TEST_SUITE_P(Paths, ProcessTest, ::testing::Values("tcp", "shm"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(ProcessTest, AKilledWriterIsRevoked) {
  Start(absl::Seconds(30));
  StartWriter();
  child_->Kill();
  ASSERT_TRUE(events_.WaitForState(peer_, PeerState::kRevoked, absl::Seconds(10)));
  ExpectNoMoreWrites();
}

TEST_P(ProcessTest, PutsToAKilledReceiverFail) {
  Start(absl::Seconds(30));
  StartReceiver();
  Waiting<absl::Status> failed;
  std::thread writer([&] { failed.Callback()(PutUntilFailure()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  child_->Kill();
  EXPECT_TRUE(failed.Wait());
  writer.join();
  EXPECT_TRUE(events_.WaitForState(peer_, PeerState::kRevoked, absl::Seconds(10)));
}

TEST_P(ProcessTest, AStoppedPeerIsSilentAndComesBackAlive) {
  Start(absl::Seconds(60));
  StartWriter();
  child_->Stop();
  ASSERT_TRUE(events_.WaitForState(peer_, PeerState::kSilent));
  child_->Continue();
  ASSERT_TRUE(events_.WaitForState(peer_, PeerState::kAlive));
  EXPECT_FALSE(events_.Has(peer_, PeerState::kRevoked));
  transport_->Send(peer_, "hello");
  EXPECT_TRUE(events_.WaitForMessages(1));
}

TEST_P(ProcessTest, AWriterStoppedForLongIsRevokedOnlyWhenItCannotWriteAnyMore) {
  Start(absl::Milliseconds(800));
  StartWriter();
  child_->Stop();
  ASSERT_TRUE(events_.WaitForState(peer_, PeerState::kSilent));
  if (shm()) {
    ASSERT_TRUE(events_.WaitForState(peer_, PeerState::kGivenUp));
    // Its process could go on writing at any moment.
    EXPECT_FALSE(events_.WaitForState(peer_, PeerState::kRevoked, absl::Seconds(2)));
    child_->Continue();
    ASSERT_TRUE(events_.WaitForState(peer_, PeerState::kRevoked));
    ExpectNoMoreWrites();
  } else {
    ASSERT_TRUE(events_.WaitForState(peer_, PeerState::kRevoked));
    child_->Continue();
    ExpectNoMoreWrites();
  }
  EXPECT_NE(child_->WaitForLine("failed "), "?");
  EXPECT_NE(child_->WaitForLine("revoked "), "?");
  EXPECT_FALSE(events_.Has(peer_, PeerState::kAlive));
}

TEST_P(ProcessTest, AWriterKilledWhileStoppedIsRevoked) {
  Start(absl::Milliseconds(800));
  StartWriter();
  child_->Stop();
  ASSERT_TRUE(events_.WaitForState(peer_, PeerState::kSilent));
  EXPECT_EQ(events_.WaitForState(peer_, PeerState::kRevoked, shm() ? absl::Seconds(2) : absl::Seconds(10)), !shm());
  child_->Kill();
  EXPECT_TRUE(events_.WaitForState(peer_, PeerState::kRevoked, absl::Seconds(10)));
}

TEST_P(ProcessTest, FlushesToAStoppedReceiverFailInTime) {
  Start(absl::Milliseconds(800));
  StartReceiver();
  child_->Stop();
  const absl::Status status = PutUntilFailure();
  EXPECT_FALSE(status.ok());
  // tcp: we closed, so it is revoked. shm: it has our region mapped, too, and is only given up.
  EXPECT_EQ(events_.WaitForState(peer_, PeerState::kGivenUp, shm() ? absl::Seconds(10) : absl::ZeroDuration()), shm());
  EXPECT_EQ(events_.WaitForState(peer_, PeerState::kRevoked, shm() ? absl::Seconds(1) : absl::Seconds(10)), !shm());
  child_->Continue();
  EXPECT_TRUE(events_.WaitForState(peer_, PeerState::kRevoked));
  EXPECT_EQ(child_->End(), 0);
}

// Breaks every connection of this process.
void CutConnections() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    sockaddr_storage peer{};
    socklen_t bytes = sizeof(peer);
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &bytes) != 0) continue;
    if (peer.ss_family == AF_INET || peer.ss_family == AF_INET6) shutdown(fd, SHUT_RDWR);
  }
}

TEST_P(ProcessTest, ALostConnectionOfALivingWriterIsGivenUpUntilRevokedIsProven) {
  Start(absl::Seconds(30));
  StartWriter();
  CutConnections();
  if (shm()) {
    ASSERT_TRUE(events_.WaitForState(peer_, PeerState::kGivenUp));
    // Its process has our memory mapped.
    EXPECT_FALSE(events_.WaitForState(peer_, PeerState::kRevoked, absl::Milliseconds(500)));
    child_->Kill();
  }
  ASSERT_TRUE(events_.WaitForState(peer_, PeerState::kRevoked));
  EXPECT_EQ(events_.states().size(), shm() ? 2U : 1U);
  ExpectNoMoreWrites();
}

// Both goodbyes were lost with the connection.
TEST_P(ProcessTest, ANewConnectionProvesThatTheLostOneWasLetGo) {
  Start(absl::Seconds(30));
  StartReceiver();
  const PeerId lost = peer_;
  CutConnections();
  ASSERT_TRUE(events_.WaitForState(lost, shm() ? PeerState::kGivenUp : PeerState::kRevoked));
  ASSERT_OK_AND_ASSIGN(peer_, ConnectAndWait(*transport_, address_));
  EXPECT_TRUE(events_.WaitForState(lost, PeerState::kRevoked));
  EXPECT_NE(child_->WaitForLine("revoked "), "?");
  const PutPiece all{.local = static_cast<const std::byte*>(memory_.data), .remote_offset = 0, .bytes = memory_.bytes};
  transport_->Put(peer_, 1, {&all, 1});
  EXPECT_OK(FlushAndWait(*transport_, peer_, 1));
}

TEST_P(ProcessTest, ARestartedPeerIsANewOne) {
  Start(absl::Seconds(30));
  StartWriter();
  const PeerId first = peer_;
  child_->Kill();
  ASSERT_TRUE(events_.WaitForState(first, PeerState::kRevoked));
  StartWriter();
  ASSERT_TRUE(events_.WaitForAccepted(2));
  EXPECT_NE(events_.accepted()[1], first);
}

TEST_P(ProcessTest, BothSidesEndInOrder) {
  Start(absl::Seconds(30));
  StartWriter();
  EXPECT_EQ(child_->End(), 0);
  EXPECT_TRUE(events_.WaitForState(peer_, PeerState::kRevoked));
  StartReceiver();
  transport_.reset();
  EXPECT_NE(child_->WaitForLine("revoked "), "?");
  EXPECT_EQ(child_->End(), 0);
}

TEST_P(ProcessTest, EndsInTimeWhateverThePeerDoes) {
  for (const bool killed : {false, true}) {
    Start(absl::Seconds(30));
    StartReceiver();
    child_->Stop();
    const PutPiece all{
        .local = static_cast<const std::byte*>(memory_.data), .remote_offset = 0, .bytes = memory_.bytes};
    for (int i = 0; i < 50; ++i) {
      transport_->Put(peer_, 1, {&all, 1});
      transport_->Send(peer_, std::string(1 << 20, 'x'));
    }
    transport_->Flush(peer_, 1, [](const absl::Status&) {});
    if (killed) child_->Kill();
    const SteadyTime start = SteadyTime::Now();
    transport_.reset();
    EXPECT_LT(SteadyTime::Now() - start, absl::Seconds(15));
  }
}

TEST_P(ProcessTest, AMessageFloodToAPeerThatDoesNotReadIsCutOff) {
  Start(absl::Seconds(60));
  StartReceiver();
  child_->Stop();
  for (int i = 0; i < 200; ++i) transport_->Send(peer_, std::string(1 << 20, 'x'));
  const absl::Status status = FlushAndWait(*transport_, peer_, 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;  // given up already
  child_->Kill();
  ASSERT_TRUE(events_.WaitForState(peer_, PeerState::kRevoked));
  EXPECT_TRUE(testing::Fails(events_.WhyRevoked(peer_), absl::StatusCode::kResourceExhausted, "does not read"));
}

// The connection closes soon, because nobody can write to us; but the goodbye waits until the peer reads.
TEST_P(ProcessTest, ASlowPeerStillHearsWhyItIsLeft) {
  Start(absl::Seconds(60), /*with_region=*/false);
  StartReceiver();
  child_->Stop();
  for (int i = 0; i < 200; ++i) transport_->Send(peer_, std::string(1 << 20, 'x'));
  EXPECT_FALSE(FlushAndWait(*transport_, peer_, 1).ok());  // given up already
  child_->Continue();
  EXPECT_THAT(child_->WaitForLine("revoked "), ::testing::HasSubstr("the peer closed the connection: more than"));
}

struct Listening {
  std::string host;  // as the kernel prints it: "0100007F" is 127.0.0.1
  uint16_t port = 0;
};

// Where this process listens: the transport's own port and those that UCX opens.
std::vector<Listening> ListeningSockets() {
  std::set<std::string> ours;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    const std::string target = std::filesystem::read_symlink(entry.path(), ignored);
    if (target.rfind("socket:[", 0) == 0) ours.insert(target.substr(8, target.size() - 9));
  }
  std::vector<Listening> sockets;
  std::ifstream table("/proc/net/tcp");
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string slot, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
    fields >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> uid >> timeout >> inode;
    if (state != "0A" || ours.count(inode) == 0) continue;
    const size_t colon = local.find(':');
    sockets.push_back({local.substr(0, colon), static_cast<uint16_t>(std::stoi(local.substr(colon + 1), nullptr, 16))});
  }
  return sockets;
}

void SendOnNewConnection(uint16_t port, const std::string& bytes) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
  static_cast<void>(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0);
  close(fd);
}

TEST_P(ProcessTest, GarbageOnOpenPortsHarmsNobody) {
  Start(absl::Seconds(30));
  StartWriter();
  const std::vector<Listening> sockets = ListeningSockets();
  ASSERT_GE(sockets.size(), 2U);
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    std::string garbage(1 + random() % 5000, i % 4 == 0 ? '\xff' : '\0');
    if (i % 4 > 1) {
      for (char& byte : garbage) byte = static_cast<char>(random());
    }
    SendOnNewConnection(sockets[i % sockets.size()].port, garbage);
  }
  EXPECT_FALSE(events_.Has(peer_, PeerState::kRevoked));
  EXPECT_EQ(events_.accepted().size(), 1U);
  PeerProcess another({"write", GetParam(), kSecret, transport_->address()});
  EXPECT_EQ(another.WaitForLine("connected "), "OK");
}

TEST_P(ProcessTest, StrangersThatSayNothingDoNotKeepPeersOut) {
  Start(absl::Seconds(30));
  const auto port =
      static_cast<uint16_t>(std::stoi(transport_->address().substr(transport_->address().rfind(':') + 1)));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::vector<int> sockets;
  for (int i = 0; i < 200; ++i) {
    sockets.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(sockets.back(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
  }
  // Connections are dropped when their time is up; meanwhile peers are refused and may try again.
  std::string answer;
  for (const SteadyTime deadline = SteadyTime::Now() + testing::kPatience;
       answer != "OK" && SteadyTime::Now() < deadline;) {
    PeerProcess peer({"write", GetParam(), kSecret, transport_->address()});
    answer = peer.WaitForLine("connected ");
  }
  EXPECT_EQ(answer, "OK");
  for (const int fd : sockets) close(fd);
}

TEST(DeviceTest, UcxListensOnTheDeviceOfTheLocalHostOnly) {
  TransportOptions options;
  options.secret = kSecret;
  options.local_host = "127.0.0.1";
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transport> transport, CreateUcxTransport(options));
  const std::vector<Listening> sockets = ListeningSockets();
  EXPECT_FALSE(sockets.empty());
  for (const Listening& socket : sockets) EXPECT_EQ(socket.host, "0100007F");
}

TEST(DeviceTest, AHostThatIsNotOursIsAnError) {
  TransportOptions options;
  options.secret = kSecret;
  options.local_host = "203.0.113.1";  // set aside for documentation
  EXPECT_TRUE(testing::Fails(CreateUcxTransport(options), absl::StatusCode::kNotFound, "203.0.113.1"));
}

// A child with `path`, seen from a transport with path auto; `tls` limits what UCX may use in both.
absl::StatusOr<std::string> PathBetween(const std::string& our_path, const std::string& their_path, const char* tls) {
  if (tls != nullptr) setenv("UCX_TLS", tls, 1);  // NOLINT(concurrency-mt-unsafe): no other thread runs yet
  TransportOptions options;
  options.path = our_path;
  options.secret = kSecret;
  RecordingEvents events;
  absl::StatusOr<std::unique_ptr<Transport>> transport = CreateUcxTransport(options);
  PeerProcess child({"serve", their_path, kSecret});
  const std::string address = child.WaitForLine("address ");
  unsetenv("UCX_TLS");  // NOLINT(concurrency-mt-unsafe)
  if (!transport.ok()) return transport.status();
  if (const auto memory = (*transport)->AllocateRegion(kRegionBytes); !memory.ok()) return memory.status();
  if (absl::Status status = (*transport)->Start(&events); !status.ok()) return status;
  const absl::StatusOr<PeerId> peer = ConnectAndWait(**transport, address);
  if (!peer.ok()) return peer.status();
  return (*transport)->PathName(*peer);
}

TEST(PathTest, AutoIsSharedMemoryOnOneHost) { EXPECT_EQ(PathBetween("auto", "auto", nullptr).value_or(""), "ucx:shm"); }

TEST(PathTest, AutoIsTcpIfEitherSideWantsIt) {
  EXPECT_EQ(PathBetween("auto", "tcp", nullptr).value_or(""), "ucx:tcp");
  EXPECT_EQ(PathBetween("tcp", "auto", nullptr).value_or(""), "ucx:tcp");
}

TEST(PathTest, AutoIsTcpWhereUcxHasNoSharedMemory) {
  EXPECT_EQ(PathBetween("auto", "auto", "tcp").value_or(""), "ucx:tcp");
}

TEST(PathTest, SharedMemoryThatCannotBeHadIsAnError) {
  EXPECT_TRUE(testing::Fails(PathBetween("shm", "tcp", nullptr), absl::StatusCode::kFailedPrecondition, "shm"));
  EXPECT_TRUE(testing::Fails(PathBetween("shm", "auto", "tcp"), absl::StatusCode::kFailedPrecondition, "shm"));
}

}  // namespace
}  // namespace baton
