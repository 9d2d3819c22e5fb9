// SPDX-License-Identifier: Apache-2.0
// Peers that die or end while a connection with them is being set up, at random moments and often. UCX aborts the whole
// process when it is surprised: a failure here may be the end of this program.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kvtransfer/ucx/ucx_transport.h"
#include "peer_process.h"
#include "recording_events.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using testing::PeerProcess;
using testing::RecordingEvents;
using testing::Waiting;

constexpr char kSecret[] = "a secret of the test";
constexpr int kThreads = 4;
constexpr int kPeersPerThread = 32;

// Draws moments such that about half of them come before a connection is open, however fast the machine is just now.
class Moments {
 public:
  absl::Duration Draw() { return window_ * std::uniform_real_distribution<double>(0, 1)(random_); }
  void WasOpen(bool open) {
    window_ = std::clamp(window_ * (open ? 0.8 : 1.25), absl::Microseconds(50), absl::Seconds(1));
  }

 private:
  std::mt19937 random_{std::random_device()()};
  absl::Duration window_ = absl::Milliseconds(5);
};

// The parameter is the data path.
class SetupTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    TransportOptions options;
    options.path = GetParam();
    options.secret = kSecret;
    options.listen_address = "127.0.0.1:0";
    options.heartbeat_interval = absl::Milliseconds(20);
    absl::StatusOr<std::unique_ptr<Transport>> transport = CreateUcxTransport(options);
    ASSERT_OK(transport);
    transport_ = *std::move(transport);
    ASSERT_OK(transport_->AllocateRegion(4 << 20));
    ASSERT_OK(transport_->Start(&events_));
  }

  // A peer that connects to us. True if it did before its end.
  bool DisturbOneThatConnects(absl::Duration moment, bool kill) {
    PeerProcess peer({"write", GetParam(), kSecret, transport_->address()});
    EXPECT_NE(peer.WaitForLine("address "), "?");
    absl::SleepFor(moment);
    End(peer, kill);
    return peer.WaitForLine("connected ") == "OK";
  }

  // A peer that we connect to. True if we did before its end.
  bool DisturbOneWeConnectTo(absl::Duration moment, bool kill) {
    PeerProcess peer({"serve", GetParam(), kSecret});
    const auto connected = std::make_shared<Waiting<absl::StatusOr<PeerId>>>();
    transport_->Connect(peer.WaitForLine("address "), [connected, call = connected->Callback()](
                                                          absl::StatusOr<PeerId> result) { call(std::move(result)); });
    absl::SleepFor(moment);
    const bool open = connected->done() && connected->Get().ok();
    End(peer, kill);
    EXPECT_TRUE(connected->Wait()) << "every Connect gets an answer";
    if (connected->done() && connected->Get().ok()) {
      EXPECT_TRUE(events_.WaitForState(*connected->Get(), PeerState::kRevoked));
    }
    return open;
  }

  // A peer that ends in order does so at any moment.
  static void End(PeerProcess& peer, bool kill) {
    if (kill) {
      peer.Kill();
    } else {
      EXPECT_EQ(peer.End(), 0) << peer.Rest();
    }
  }

  RecordingEvents events_;
  std::unique_ptr<Transport> transport_;
};

INSTANTIATE_TEST_SUITE_P(Paths, SetupTest, ::testing::Values("auto", "tcp"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(SetupTest, APeersEndAtAnyMomentHarmsNobodyElse) {
  std::atomic<int> open = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Moments moments;
      for (int i = 0; i < kPeersPerThread; ++i) {
        const bool kill = i % 4 != 0;
        const bool was_open =
            t % 2 == 0 ? DisturbOneThatConnects(moments.Draw(), kill) : DisturbOneWeConnectTo(moments.Draw(), kill);
        moments.WasOpen(was_open);
        open += was_open ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  // Some came to the end of the set-up and some did not.
  EXPECT_GT(open, 0);
  EXPECT_LT(open, kThreads * kPeersPerThread);
  for (const PeerId peer : events_.accepted()) EXPECT_TRUE(events_.WaitForState(peer, PeerState::kRevoked));
  PeerProcess another({"write", GetParam(), kSecret, transport_->address()});
  EXPECT_EQ(another.WaitForLine("connected "), "OK");
  EXPECT_NE(another.WaitForLine("flushed"), "?");
}

}  // namespace
}  // namespace baton
