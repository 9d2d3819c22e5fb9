// SPDX-License-Identifier: Apache-2.0
#include "worker/role_machine.h"

#include "tests/status_matchers.h"

namespace baton {
namespace {

using ::baton::testing::Fails;
using Step = RoleMachine::Step;

constexpr auto kPrefill = v1::WORKER_ROLE_PREFILL;
constexpr auto kDecode = v1::WORKER_ROLE_DECODE;
constexpr auto kBoth = v1::WORKER_ROLE_BOTH;
constexpr auto kRefused = absl::StatusCode::kFailedPrecondition;

class RoleMachineTest : public ::testing::Test {
 protected:
  static RoleMachine Machine(v1::WorkerRole role) {
    return {SteadyTime(),
            role,
            {.possible = {kPrefill, kDecode, kBoth},
             .why_no_other = "",
             .cooldown = absl::Seconds(20),
             .timeout = absl::Seconds(5)}};
  }
  static SteadyTime At(int seconds) { return SteadyTime() + absl::Seconds(seconds); }
};

TEST_F(RoleMachineTest, EachRoleHasItsRoutes) {
  EXPECT_EQ(Machine(kPrefill).open_routes(), Routes::None().With(Route::kHandOver));
  EXPECT_EQ(Machine(kDecode).open_routes(), Routes::None().With(Route::kReceive));
  EXPECT_EQ(Machine(kBoth).open_routes(), Routes::None().With(Route::kReceive).With(Route::kLocal));
}

TEST_F(RoleMachineTest, AChangeClosesAllRoutesUntilTheLastAttemptHasLeft) {
  for (const auto& [from, to] :
       {std::pair(kDecode, kPrefill), {kBoth, kPrefill}, {kPrefill, kDecode}, {kPrefill, kBoth}}) {
    RoleMachine machine = Machine(from);
    ASSERT_OK(machine.Begin(At(1), {.from = from, .to = to}));
    EXPECT_TRUE(machine.switching());
    EXPECT_EQ(machine.role(), from);
    EXPECT_EQ(machine.open_routes(), Routes::None());
    EXPECT_EQ(machine.Facts(At(1)).switching_to(), to);
    EXPECT_EQ(machine.Advance(At(2), /*is_empty=*/false), Step::kNone);
    EXPECT_EQ(machine.Advance(At(3), /*is_empty=*/true), Step::kChanged);
    EXPECT_EQ(machine.role(), to);
    EXPECT_EQ(machine.open_routes(), RoutesOf(to));
    const v1::RoleFacts facts = machine.Facts(At(10));
    EXPECT_EQ(facts.switching_to(), v1::WORKER_ROLE_UNSPECIFIED);
    EXPECT_EQ(facts.held_seconds(), 7);
    EXPECT_EQ(facts.changes(), 1u);
  }
}

TEST_F(RoleMachineTest, DecodeAndBothChangeIntoEachOtherAtOnce) {
  RoleMachine machine = Machine(kDecode);
  ASSERT_OK(machine.Begin(At(1), {.to = kBoth}));
  EXPECT_FALSE(machine.switching());
  EXPECT_EQ(machine.open_routes(), RoutesOf(kBoth));
  ASSERT_OK(machine.Begin(At(30), {.to = kDecode}));
  EXPECT_EQ(machine.role(), kDecode);
}

TEST_F(RoleMachineTest, AttemptsThatOutlastTheDrainKeepTheRole) {
  RoleMachine machine = Machine(kDecode);
  ASSERT_OK(machine.Begin(At(0), {.to = kPrefill}));
  EXPECT_EQ(machine.Advance(At(4), false), Step::kNone);
  EXPECT_EQ(machine.Advance(At(5), false), Step::kGivenUp);
  EXPECT_EQ(machine.role(), kDecode);
  EXPECT_EQ(machine.open_routes(), RoutesOf(kDecode));
  EXPECT_EQ(machine.Facts(At(5)).last_failure(),
            "attempts still ran 5 s after the change from decode to prefill began (drain-timeout)");
  EXPECT_TRUE(Fails(machine.Begin(At(6), {.to = kPrefill}), kRefused, "can begin in 19 s"));
  ASSERT_OK(machine.Begin(At(25), {.to = kPrefill}));
  EXPECT_EQ(machine.Advance(At(26), true), Step::kChanged);
  EXPECT_EQ(machine.Facts(At(26)).last_failure(), "");
}

TEST_F(RoleMachineTest, AForcedChangeEndsThemOnceAndWaitsForTheirEnd) {
  RoleMachine machine = Machine(kDecode);
  ASSERT_OK(machine.Begin(At(0), {.to = kPrefill, .force = true}));
  EXPECT_EQ(machine.Advance(At(5), false), Step::kEndAttempts);
  EXPECT_EQ(machine.Advance(At(6), false), Step::kNone);
  EXPECT_EQ(machine.Advance(At(9), false), Step::kNone);
  EXPECT_EQ(machine.Advance(At(10), true), Step::kChanged);
}

TEST_F(RoleMachineTest, AForcedChangeIsGivenUpIfAnAttemptDoesNotLeave) {
  RoleMachine machine = Machine(kDecode);
  ASSERT_OK(machine.Begin(At(0), {.to = kPrefill, .force = true}));
  EXPECT_EQ(machine.Advance(At(8), false), Step::kEndAttempts) << "a late call";
  EXPECT_EQ(machine.Advance(At(12), false), Step::kNone);
  EXPECT_EQ(machine.Advance(At(13), false), Step::kGivenUp);
  EXPECT_FALSE(machine.switching());
  EXPECT_EQ(machine.open_routes(), RoutesOf(kDecode));
  EXPECT_EQ(machine.Facts(At(13)).last_failure(),
            "attempts still ran 5 s after the forced change from decode to prefill had ended the attempts");
  ASSERT_OK(machine.Begin(At(14), {.to = kPrefill, .force = true}));
  EXPECT_EQ(machine.Advance(At(15), false), Step::kNone) << "the times count anew";
  EXPECT_EQ(machine.Advance(At(19), false), Step::kEndAttempts);
}

TEST_F(RoleMachineTest, ImpossibleChangesAreRefusedWithTheReason) {
  RoleMachine machine = Machine(kPrefill);
  EXPECT_TRUE(Fails(machine.Begin(At(0), {}), absl::StatusCode::kInvalidArgument, "to is 0, expected"));
  EXPECT_TRUE(Fails(machine.Begin(At(0), {.from = static_cast<v1::WorkerRole>(99), .to = kBoth}), kRefused,
                    "has role prefill, the caller expected 99"));
  EXPECT_EQ(RoleName(static_cast<v1::WorkerRole>(99)), "99") << "as a log line tells it";
  EXPECT_TRUE(Fails(machine.Begin(At(0), {.to = kPrefill}), kRefused, "the worker has role prefill"));
  EXPECT_TRUE(Fails(machine.Begin(At(0), {.from = kDecode, .to = kBoth}), kRefused,
                    "has role prefill, the caller expected decode"));
  ASSERT_OK(machine.Begin(At(0), {.from = kPrefill, .to = kBoth}));
  EXPECT_TRUE(
      Fails(machine.Begin(At(0), {.to = kDecode, .force = true}), kRefused, "already switches from prefill to both"));
}

TEST_F(RoleMachineTest, ASecondChangeWaitsForTheCooldownUnlessForced) {
  RoleMachine machine = Machine(kPrefill);
  ASSERT_OK(machine.Begin(At(0), {.to = kDecode})) << "the first change waits for nothing";
  EXPECT_EQ(machine.Advance(At(3), true), Step::kChanged);
  EXPECT_TRUE(Fails(machine.Begin(At(22), {.to = kPrefill}), kRefused,
                    "was 19 s ago, and the next can begin in 1 s (role-cooldown)"));
  EXPECT_OK(machine.Begin(At(22), {.to = kPrefill, .force = true}));
}

TEST_F(RoleMachineTest, AWorkerWithoutASecretSaysWhyItKeepsItsRole) {
  RoleMachine machine(SteadyTime(), kBoth, {.possible = {kBoth}, .why_no_other = "it has no secret"});
  EXPECT_TRUE(Fails(machine.Begin(At(0), {.to = kPrefill, .force = true}), kRefused,
                    "cannot take role prefill: it has no secret"));
}

TEST_F(RoleMachineTest, AProcessThatEndsChangesNothingMore) {
  RoleMachine machine = Machine(kDecode);
  ASSERT_OK(machine.Begin(At(0), {.to = kPrefill}));
  machine.Stop();
  EXPECT_EQ(machine.Advance(At(9), true), Step::kNone);
  EXPECT_EQ(machine.role(), kDecode);
  EXPECT_TRUE(Fails(machine.Begin(At(60), {.to = kBoth}), kRefused, "process ends"));
}

TEST_F(RoleMachineTest, TheReasonOfAClosedRouteNamesTheRole) {
  RoleMachine machine = Machine(kDecode);
  EXPECT_EQ(machine.WhyClosed(), "the worker has role decode and takes no work of another role");
  ASSERT_OK(machine.Begin(At(0), {.to = kPrefill}));
  EXPECT_EQ(machine.WhyClosed(), "the worker switches from decode to prefill and takes no new work");
}

}  // namespace
}  // namespace baton
