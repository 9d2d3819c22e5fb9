// SPDX-License-Identifier: Apache-2.0
// Processes in a virtual network that delays and loses packets and is cut in two, while processes die, stop and return.
// Needs root.
#include "chaos.h"

namespace baton::testing {
namespace {

constexpr int kSchedules = 1;
constexpr int kEvents = 100;

std::unique_ptr<VirtualNetwork> network;

void RunOver(const std::vector<std::string>& worker_flags) {
  if (network == nullptr) {
    absl::StatusOr<std::unique_ptr<VirtualNetwork>> created =
        VirtualNetwork::Create({"client", "router", "router1", "p0", "p1", "d0", "d1"});
    if (absl::IsPermissionDenied(created.status()) || absl::IsNotFound(created.status()) ||
        absl::IsUnavailable(created.status())) {
      GTEST_SKIP() << "no network of the test's own: " << created.status();
    }
    ASSERT_OK(created);
    network = *std::move(created);
  }
  const uint64_t dropped_before = network->counts().dropped;
  Chaos chaos({.worker_flags = worker_flags, .network = network.get()});
  chaos.Run(FromEnvironment("BATON_TEST_SEED", 1),
            static_cast<int>(FromEnvironment("BATON_TEST_SCHEDULES", kSchedules)), kEvents);
  EXPECT_GT(network->counts().dropped, dropped_before);
}

TEST(ChaosNetworkTest, PagesOverTcp) { RunOver({"--transport=tcp"}); }

// Cuts end connections, but not shared memory.
TEST(ChaosNetworkTest, PagesThroughSharedMemory) { RunOver({"--transport=shm"}); }

// Replayed tokens depend on every page's content.
TEST(ChaosNetworkTest, ReplayedPages) { RunOver({"--transport=tcp", "--device=replay", "--replay-step=5ms"}); }

}  // namespace
}  // namespace baton::testing
