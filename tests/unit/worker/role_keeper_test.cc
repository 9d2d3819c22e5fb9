// SPDX-License-Identifier: Apache-2.0
#include "worker/role_keeper.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/status_matchers.h"

namespace baton {
namespace {

using ::baton::testing::Fails;
using ::testing::ElementsAre;

class RoleKeeperTest : public ::testing::Test {
 protected:
  RoleKeeperTest() {
    keeper_.SetHooks({.start_draining = [this] { calls_.emplace_back("start draining"); },
                      .stop_draining = [this] { calls_.emplace_back("stop draining"); },
                      .end_attempts = [this] { calls_.emplace_back("end attempts"); },
                      .take_role = [this](v1::WorkerRole role) { calls_.push_back("take " + RoleName(role)); }});
  }
  v1::WorkerStatus Status() const {
    v1::WorkerStatus status;
    keeper_.Describe(status);
    return status;
  }
  static RoleMachine::Rules Rules() {
    return {.possible = {v1::WORKER_ROLE_PREFILL, v1::WORKER_ROLE_DECODE, v1::WORKER_ROLE_BOTH},
            .why_no_other = "",
            .cooldown = absl::ZeroDuration(),
            .timeout = absl::Hours(1)};
  }

  AttemptGate gate_{4};
  RoleKeeper keeper_{v1::WORKER_ROLE_DECODE, Rules(), &gate_};
  std::vector<std::string> calls_;
};

TEST_F(RoleKeeperTest, AChangeDrainsThenTakesTheRoleThenOpensItsRoutes) {
  ASSERT_OK_AND_ASSIGN(auto running, gate_.Enter(Route::kReceive));
  EXPECT_EQ(Status().state(), v1::WORKER_STATE_SERVING);
  ASSERT_OK(keeper_.Begin({.to = v1::WORKER_ROLE_PREFILL, .reason = "test"}));
  EXPECT_EQ(Status().state(), v1::WORKER_STATE_SWITCHING);
  EXPECT_EQ(Status().role(), v1::WORKER_ROLE_DECODE);
  EXPECT_TRUE(Fails(gate_.Enter(Route::kReceive), absl::StatusCode::kUnavailable, "switches from decode to prefill"));
  EXPECT_TRUE(Fails(gate_.Enter(Route::kHandOver), absl::StatusCode::kUnavailable, "switches from decode to prefill"));
  EXPECT_FALSE(keeper_.Advance());
  running.reset();
  EXPECT_TRUE(keeper_.Advance());
  EXPECT_FALSE(keeper_.Advance());
  EXPECT_THAT(calls_, ElementsAre("start draining", "take prefill", "stop draining"));
  EXPECT_EQ(Status().state(), v1::WORKER_STATE_SERVING);
  EXPECT_EQ(Status().role(), v1::WORKER_ROLE_PREFILL);
  EXPECT_OK(gate_.Enter(Route::kHandOver));
  EXPECT_TRUE(Fails(gate_.Enter(Route::kReceive), absl::StatusCode::kUnavailable, "has role prefill"));
}

TEST_F(RoleKeeperTest, AnAttemptThatRunsDoesNotDelayAChangeToBoth) {
  ASSERT_OK_AND_ASSIGN(const auto running, gate_.Enter(Route::kReceive));
  ASSERT_OK(keeper_.Begin({.to = v1::WORKER_ROLE_BOTH, .reason = "test"}));
  EXPECT_THAT(calls_, ElementsAre("take both"));
  EXPECT_OK(gate_.Enter(Route::kLocal));
}

TEST_F(RoleKeeperTest, ARefusedChangeLeavesEverything) {
  EXPECT_TRUE(Fails(keeper_.Begin({.to = v1::WORKER_ROLE_DECODE, .reason = "test"}),
                    absl::StatusCode::kFailedPrecondition, "has role decode"));
  EXPECT_THAT(calls_, ElementsAre());
  EXPECT_OK(gate_.Enter(Route::kReceive));
}

}  // namespace
}  // namespace baton
