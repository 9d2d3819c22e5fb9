// SPDX-License-Identifier: Apache-2.0
// The promises of every transport about puts and flushes.

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "transport_fixture.h"

namespace baton {
namespace {

using testing::ConnectAndWait;
using testing::FlushAndWait;
using testing::Waiting;

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

}  // namespace
}  // namespace baton
