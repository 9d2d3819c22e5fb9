// SPDX-License-Identifier: Apache-2.0
#include "router/balance.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace baton::router {
namespace {

// The load of a role, from 0 to 1 and above; see BalancePolicy.
struct Loads {
  double prefill = 0;
  double decode = 0;
};
constexpr Loads kDecodePressed{.prefill = 0.1, .decode = 1};
constexpr Loads kPrefillPressed{.prefill = 1.5, .decode = 0.1};
constexpr Loads kCalm{.prefill = 0.7, .decode = 0.7};

class BalanceTest : public ::testing::Test {
 protected:
  BalanceFacts Facts(const Loads& loads) const {
    BalanceFacts facts;
    for (int i = 0; i < prefills_; ++i) {
      facts.prefill.workers.push_back({.id = absl::StrCat("p", i),
                                       .can_change = can_change_,
                                       .queued_seconds = loads.prefill * 0.5,  // queue_target is 500 ms
                                       .is_busy = false,
                                       .gave_up = gave_up_ == absl::StrCat("p", i)});
    }
    for (int i = 0; i < decodes_; ++i) {
      facts.decode.workers.push_back({.id = absl::StrCat("d", i),
                                      .can_change = can_change_,
                                      .slots_used = loads.decode,
                                      .pages_used = 0,
                                      .step_share = 0,
                                      .is_busy = true,
                                      .gave_up = gave_up_ == absl::StrCat("d", i)});
    }
    facts.unsettled = unsettled_;
    return facts;
  }
  BalanceDecision Decide(const Loads& loads) {
    now_ = now_ + absl::Milliseconds(500);
    return policy_->Decide(now_, Facts(loads));
  }
  // Returns the first change within `time`, and how long it took in `took_`.
  std::optional<RoleSwitch> Run(const Loads& loads, absl::Duration time) {
    for (absl::Duration ran; ran < time; ran += absl::Milliseconds(500)) {
      BalanceDecision decision = Decide(loads);
      took_ = ran;
      if (decision.change) return decision.change;
    }
    return std::nullopt;
  }
  static BalanceRules Rules() { return {.after = absl::Seconds(10), .period = absl::Seconds(60)}; }

  int prefills_ = 3;
  int decodes_ = 3;
  bool can_change_ = true;
  bool unsettled_ = false;
  std::string gave_up_;  // a worker
  SteadyTime now_;
  absl::Duration took_;
  std::optional<BalancePolicy> policy_{Rules()};
};

TEST_F(BalanceTest, ALastingPressureMovesTheWorkerWithTheGreatestIdFromTheOtherRole) {
  const std::optional<RoleSwitch> change = Run(kDecodePressed, absl::Seconds(30));
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->worker, "p2");
  EXPECT_EQ(change->from, v1::WORKER_ROLE_PREFILL);
  EXPECT_EQ(change->to, v1::WORKER_ROLE_DECODE);
  EXPECT_GE(took_, absl::Seconds(10));
  EXPECT_LE(took_, absl::Seconds(15));
}

TEST_F(BalanceTest, PrefillIsHelpedInTheSameWay) {
  const std::optional<RoleSwitch> change = Run(kPrefillPressed, absl::Seconds(30));
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->worker, "d2");
  EXPECT_EQ(change->from, v1::WORKER_ROLE_DECODE);
  EXPECT_EQ(change->to, v1::WORKER_ROLE_PREFILL);
}

TEST_F(BalanceTest, ALoadThatGoesUpAndDownWithinTheTimeChangesNothing) {
  for (int i = 0; i < 60; ++i) {
    EXPECT_FALSE(Run(kDecodePressed, absl::Seconds(6))) << i;
    EXPECT_FALSE(Run(kCalm, absl::Seconds(6))) << i;
  }
}

TEST_F(BalanceTest, ASingleReportAfterAPauseDoesNotCount) {
  EXPECT_FALSE(Run(kDecodePressed, absl::Seconds(8)));
  EXPECT_FALSE(Run({.prefill = 1, .decode = 1}, absl::Seconds(4)));
  EXPECT_FALSE(Run(kDecodePressed, absl::Seconds(8))) << "the time begins anew";
}

TEST_F(BalanceTest, TwoPressedRolesKeepTheirWorkers) {
  EXPECT_FALSE(Run({.prefill = 1, .decode = 1}, absl::Minutes(5)));
}

TEST_F(BalanceTest, ARoleThatWouldBePressedWithAWorkerLessKeepsIts) {
  // 0.45 of three workers is 0.675 of two.
  EXPECT_FALSE(Run({.prefill = 0.45, .decode = 1}, absl::Minutes(5)));
  EXPECT_TRUE(Run({.prefill = 0.35, .decode = 1}, absl::Minutes(5)));
}

TEST_F(BalanceTest, AChangeFollowsAnotherAfterThePeriodOnly) {
  ASSERT_TRUE(Run(kDecodePressed, absl::Seconds(30)));
  prefills_ = 2;
  decodes_ = 4;
  EXPECT_FALSE(Run(kDecodePressed, absl::Seconds(59)));
  EXPECT_TRUE(Run(kDecodePressed, absl::Seconds(2)));
}

TEST_F(BalanceTest, AfterAChangeTheSameLoadDoesNotCallForTheReversal) {
  ASSERT_TRUE(Run(kDecodePressed, absl::Seconds(30)));
  prefills_ = 2;
  decodes_ = 4;
  EXPECT_FALSE(Run({.prefill = 0.15, .decode = 0.75}, absl::Minutes(10)));
}

TEST_F(BalanceTest, AChangeThatAnotherRouterAskedForDelaysThisOnes) {
  unsettled_ = true;
  EXPECT_FALSE(Run(kDecodePressed, absl::Minutes(3)));
  unsettled_ = false;
  EXPECT_TRUE(Run(kDecodePressed, absl::Seconds(2)));
}

TEST_F(BalanceTest, TheMinimumOfEachRoleStays) {
  prefills_ = 1;
  EXPECT_FALSE(Run(kDecodePressed, absl::Minutes(3)));
  prefills_ = 3;
  decodes_ = 1;
  EXPECT_FALSE(Run(kPrefillPressed, absl::Minutes(3)));
  BalanceRules rules = Rules();
  rules.min_prefill = 3;
  policy_.emplace(rules);
  decodes_ = 3;
  EXPECT_FALSE(Run(kDecodePressed, absl::Minutes(3)));
}

TEST_F(BalanceTest, TheMinimumOfDecodeWorkersStays) {
  BalanceRules rules = Rules();
  rules.min_decode = 3;
  policy_.emplace(rules);
  EXPECT_FALSE(Run(kPrefillPressed, absl::Minutes(3)));
}

TEST_F(BalanceTest, ARoleThatIsNotPressedGetsNoHelp) {
  EXPECT_FALSE(Run({.prefill = 0.8, .decode = 0.1}, absl::Minutes(3)));
  EXPECT_FALSE(Run({.prefill = 0.1, .decode = 0.8}, absl::Minutes(3)));
}

TEST_F(BalanceTest, ANoisyPressureCountsByItsMean) {
  std::optional<RoleSwitch> change;
  for (int i = 0; i < 60 && !change; ++i) change = Decide({.prefill = i % 2 == 0 ? 2.4 : 0.0, .decode = 0.1}).change;
  EXPECT_TRUE(change.has_value());
}

TEST_F(BalanceTest, AWorkerThatCannotChangeStays) {
  can_change_ = false;
  EXPECT_FALSE(Run(kDecodePressed, absl::Minutes(3)));
}

TEST_F(BalanceTest, AWorkerThatRefusedIsPassedOverForTenPeriods) {
  std::vector<std::string> asked;
  for (int i = 0; i < 4; ++i) {
    const std::optional<RoleSwitch> change = Run(kDecodePressed, absl::Minutes(12));
    ASSERT_TRUE(change.has_value()) << i;
    asked.push_back(change->worker);
    policy_->OnRefused(now_, *change);
  }
  EXPECT_EQ(asked, (std::vector<std::string>{"p2", "p1", "p0", "p2"}));
  EXPECT_GE(took_, absl::Minutes(7)) << "two periods went by for p1 and p0";
}

TEST_F(BalanceTest, ARefusalCountsInTheRoleThatTheWorkerHad) {
  policy_->OnRefused(now_, {.worker = "d2", .from = v1::WORKER_ROLE_PREFILL, .to = v1::WORKER_ROLE_DECODE});
  const std::optional<RoleSwitch> change = Run(kPrefillPressed, absl::Seconds(30));
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->worker, "d2");
}

TEST_F(BalanceTest, AWorkerThatGaveUpIsPassedOverOncePerFailure) {
  gave_up_ = "d2";
  std::optional<RoleSwitch> change = Run(kPrefillPressed, absl::Seconds(30));
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->worker, "d1");
  Run(kCalm, absl::Minutes(10));
  change = Run(kPrefillPressed, absl::Seconds(30));
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->worker, "d2") << "the failure is old";
  gave_up_.clear();
  Decide(kPrefillPressed);
  gave_up_ = "d2";
  change = Run(kPrefillPressed, absl::Seconds(90));
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->worker, "d1") << "d2 has failed again";
}

TEST_F(BalanceTest, ARoleWithTooFewWorkersIsPressed) {
  prefills_ = 0;
  std::optional<RoleSwitch> change = Run({.decode = 0.1}, absl::Minutes(3));
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->worker, "d2");
  EXPECT_GE(took_, absl::Seconds(10));
  policy_.emplace(Rules());
  prefills_ = 3;
  decodes_ = 0;
  change = Run({.prefill = 0.1}, absl::Minutes(3));
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->worker, "p2");
  policy_.emplace(Rules());
  EXPECT_FALSE(Run({.prefill = 0.8}, absl::Minutes(3))) << "two prefill workers would be pressed";
  prefills_ = 1;
  EXPECT_FALSE(Run({}, absl::Minutes(3))) << "the minimum of the other role stays";
}

TEST_F(BalanceTest, BusyPrefillWorkersCountWithoutAQueue) {
  BalanceFacts facts = Facts({});
  for (PrefillLoad& worker : facts.prefill.workers) worker.is_busy = true;
  EXPECT_EQ(policy_->Decide(now_, facts).prefill_pressure, 1);
}

TEST_F(BalanceTest, TheScarcestOfSlotsPagesAndStepTimeCounts) {
  BalanceFacts facts = Facts({});
  facts.decode.workers.resize(1);
  DecodeLoad& worker = facts.decode.workers[0];
  worker.slots_used = 0.2;
  worker.pages_used = 0.5;
  worker.step_share = 0.4;
  EXPECT_EQ(BalancePolicy(Rules()).Decide(now_, facts).decode_pressure, 0.5);
  worker.step_share = 0.8;
  EXPECT_EQ(BalancePolicy(Rules()).Decide(now_, facts).decode_pressure, 0.8);
  worker.is_busy = false;
  EXPECT_EQ(BalancePolicy(Rules()).Decide(now_, facts).decode_pressure, 0.5) << "the figure is of former steps";
}

TEST_F(BalanceTest, WantedWorkersWouldHaveTheTargetPressure) {
  const BalanceDecision decision = Decide({.prefill = 0.3, .decode = 0.9});
  EXPECT_EQ(decision.wanted_prefill, 2);  // 3 * 0.3 / 0.75 = 1.2
  EXPECT_EQ(decision.wanted_decode, 4);   // 3 * 0.9 / 0.75 = 3.6
}

TEST_F(BalanceTest, WantedWorkersAtMostDoubleAndKeepTheMinimum) {
  const BalanceDecision decision = Decide({.prefill = 100, .decode = 0});
  EXPECT_EQ(decision.wanted_prefill, 6);
  EXPECT_EQ(decision.wanted_decode, 1);
}

TEST_F(BalanceTest, WantedWorkersDoNotFlapAroundALimit) {
  Decide({.prefill = 0, .decode = 0.76});  // 3.04: four
  int wanted = 4;
  for (int i = 0; i < 100; ++i) {
    const int next = Decide({.prefill = 0, .decode = i % 2 == 0 ? 0.72 : 0.78}).wanted_decode;
    EXPECT_EQ(next, wanted);
    wanted = next;
  }
  EXPECT_FALSE(Run({.prefill = 0.7, .decode = 0.4}, absl::Seconds(30)));
  EXPECT_EQ(Decide({.prefill = 0, .decode = 0.4}).wanted_decode, 2) << "a load well below counts";
}

TEST_F(BalanceTest, WithoutWorkersTheMinimumIsWanted) {
  prefills_ = decodes_ = 0;
  BalanceDecision decision = Decide({});
  EXPECT_EQ(decision.wanted_prefill, 0) << "workers of role both may do";
  EXPECT_EQ(decision.wanted_decode, 1);
  decodes_ = 1;
  EXPECT_EQ(Decide({}).wanted_prefill, 1) << "a worker of role decode needs one";
}

}  // namespace
}  // namespace baton::router
