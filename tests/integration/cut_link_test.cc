// SPDX-License-Identifier: Apache-2.0
// The connection of a prefill and a decode worker is cut while both workers live, share memory and reach the router.
// Needs root, for a virtual network.
#include <atomic>
#include <future>

#include "cluster_test.h"
#include "common/steady_time.h"
#include "virtual_network.h"

namespace baton::testing {
namespace {

std::unique_ptr<VirtualNetwork> network;

class CutLinkTest : public ClusterTest {
 protected:
  static void SetUpTestSuite() {
    absl::StatusOr<std::unique_ptr<VirtualNetwork>> created = VirtualNetwork::Create({"client", "router", "p0", "d0"});
    unavailable_ = created.status();
    if (!created.ok()) return;
    network = *std::move(created);
    StartCluster({.workers = {Prefill("p0"), Decode("d0", {"--max-sequences=1"})},
                  .worker_flags = {"--device=replay", "--replay-step=20ms", "--transport=shm", "--silent-after=500ms",
                                   "--peer-timeout=1500ms"},
                  .network = network.get()});
  }

  void SetUp() override {
    if (absl::IsPermissionDenied(unavailable_) || absl::IsNotFound(unavailable_) || absl::IsUnavailable(unavailable_)) {
      GTEST_SKIP() << "no network of the test's own: " << unavailable_;
    }
    ASSERT_OK(unavailable_);
    ClusterTest::SetUp();
  }

  static std::future<Reply> Send(const v1::GenerateRequest& request, const CallOptions& options = {}) {
    return std::async(std::launch::async, [request, options] { return Generate(request, options); });
  }

  static inline absl::Status unavailable_;
};

// Pages to which the lost writer may still write stay in quarantine, and no request waits for them. Running sequences
// continue.
TEST_F(CutLinkTest, ARequestThatWaitsForTheOtherSideFailsInTime) {
  std::atomic<int> chunks{0};
  std::future<Reply> running =
      Send(GreedyRequest("One", 600), {.timeout = 10 * kPatience, .on_chunk = [&](const v1::Chunk&) { ++chunks; }});
  const SteadyTime busy_by = SteadyTime::Now() + kPatience;
  while (chunks < 5 && SteadyTime::Now() < busy_by) absl::SleepFor(absl::Milliseconds(10));
  ASSERT_GE(chunks, 5) << "nothing runs";
  std::future<Reply> waiting = Send(GreedyRequest("Two", 5), {.timeout = 10 * kPatience});
  ASSERT_OK(cluster_->WaitFor("a reservation waits for the only slot", [](const v1::GetStatusResponse&) {
    const absl::StatusOr<v1::WorkerStatus> status = cluster_->WorkerStatus("d0");
    return status.ok() && status->load().waiting_requests() > 0;
  }));

  network->Cut("p0", "d0");
  network->Cut("d0", "p0");
  ASSERT_EQ(waiting.wait_for(absl::ToChronoSeconds(kPatience)), std::future_status::ready) << "it hangs";
  EXPECT_TRUE(Refused(waiting.get(), grpc::StatusCode::UNAVAILABLE, ""));
  EXPECT_TRUE(Succeeded(running.get()));

  network->Heal();
  EXPECT_OK(cluster_->WaitReady());
  EXPECT_TRUE(Succeeded(Generate(GreedyRequest("Three", 5))));
}

}  // namespace
}  // namespace baton::testing
