// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/ucx/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kvtransfer/ucx/frame.h"
#include "kvtransfer/ucx/ucx_worker.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using testing::Fails;

// A host with two Ethernet interfaces and a two-port RDMA card behind the second.
const std::vector<NetworkResource> kHost = {
    {"tcp", "lo", 262144},         {"tcp", "eth0", 262144},       {"tcp", "eth1", 262144},
    {"rc_mlx5", "mlx5_0:1", 8256}, {"dc_mlx5", "mlx5_0:1", 8256}, {"ud_mlx5", "mlx5_0:1", 4088},
    {"dc_mlx5", "mlx5_0:2", 8256}, {"cuda_ipc", "cuda", 0},
};

std::string Chosen(const NetworkWish& wish, const std::vector<NetworkResource>& host = kHost) {
  const absl::StatusOr<NetworkChoice> choice = ChooseNetwork(host, wish);
  return choice.ok() ? choice->transports + "|" + choice->devices : choice.status().ToString();
}

TEST(ChooseNetworkTest, TakesWhatNeedsNoExchangeOfAddresses) {
  EXPECT_EQ(Chosen({}), "tcp,dc_mlx5,ud_mlx5|all");
  EXPECT_EQ(Chosen({}, {{"tcp", "eth0", 262144}}), "tcp|all");
  EXPECT_EQ(Chosen({.tcp_only = true}), "tcp|all");
}

TEST(ChooseNetworkTest, AnInterfaceBringsItsRdmaDevices) {
  EXPECT_EQ(Chosen({.interface = "eth0"}), "tcp|eth0");
  EXPECT_EQ(Chosen({.interface = "eth1", .rdma_devices = {"mlx5_0"}}), "tcp,dc_mlx5,ud_mlx5|eth1,mlx5_0:1,mlx5_0:2");
  EXPECT_EQ(Chosen({.interface = "eth1", .rdma_devices = {"mlx5_1"}}), "tcp|eth1");
  EXPECT_EQ(Chosen({.tcp_only = true, .interface = "eth1", .rdma_devices = {"mlx5_0"}}), "tcp|eth1");
}

TEST(ChooseNetworkTest, TheUserNarrowsTheChoiceAndTcpStays) {
  EXPECT_EQ(Chosen({.user_transports = "tcp"}), "tcp|all");
  EXPECT_EQ(Chosen({.user_transports = "posix,sysv"}), "tcp|all") << "shared memory alone reaches no other host";
  EXPECT_EQ(Chosen({.user_transports = "dc_x"}), "tcp,dc_mlx5|all");
  EXPECT_EQ(Chosen({.user_transports = "ud,sm"}), "tcp,ud_mlx5|all");
  EXPECT_EQ(Chosen({.user_transports = "ib"}), "tcp,dc_mlx5,ud_mlx5|all") << "RC has to be named";
  EXPECT_EQ(Chosen({.user_transports = "rc,tcp"}), "tcp,rc_mlx5|all");
  EXPECT_EQ(Chosen({.interface = "eth0", .user_devices = "eth1,mlx5_0:2"}), "tcp,dc_mlx5|eth1,mlx5_0:2");
}

TEST(ChooseNetworkTest, AFrameFitsEveryTransport) {
  ASSERT_OK_AND_ASSIGN(const NetworkChoice tcp, ChooseNetwork(kHost, {.tcp_only = true}));
  EXPECT_EQ(tcp.max_payload_bytes, kMaxPayloadBytes);
  ASSERT_OK_AND_ASSIGN(const NetworkChoice all, ChooseNetwork(kHost, {}));
  EXPECT_LT(all.max_payload_bytes + sizeof(FrameHeader), size_t{4088});
  EXPECT_GE(all.max_payload_bytes, kMinPayloadBytes);
  EXPECT_EQ(Chosen({}, {{"tcp", "eth0", 262144}, {"ud_verbs", "rxe0:1", 500}}), "tcp|all") << "too small for a frame";
}

TEST(ChooseNetworkTest, SaysWhatWasAskedForAndWhatThereIs) {
  EXPECT_TRUE(Fails(ChooseNetwork({{"tcp", "eth0", 262144}}, {.interface = "eth7"}),
                    absl::StatusCode::kFailedPrecondition,
                    "UCX finds no network transport on eth7, expected one of tcp on eth0"));
  EXPECT_TRUE(Fails(ChooseNetwork({}, {}), absl::StatusCode::kFailedPrecondition, "expected one of none"));
  EXPECT_TRUE(Fails(ChooseNetwork(kHost, {.user_devices = "mlx9"}), absl::StatusCode::kFailedPrecondition,
                    "with UCX_NET_DEVICES=mlx9"));
}

TEST(FindNetworkResourcesTest, FindsTheLoopbackWithMessagesThatHoldWholeFrames) {
  ConfigureUcxLibrary();
  ASSERT_OK_AND_ASSIGN(const std::vector<NetworkResource> found, FindNetworkResources());
  const auto loopback = std::find_if(found.begin(), found.end(),
                                     [](const NetworkResource& r) { return r.transport == "tcp" && r.device == "lo"; });
  ASSERT_NE(loopback, found.end());
  EXPECT_GE(loopback->max_message_bytes, kMaxPayloadBytes + sizeof(FrameHeader));
}

}  // namespace
}  // namespace baton
