// SPDX-License-Identifier: Apache-2.0
// Workers whose role changes.
#include <gmock/gmock.h>

#include "tests/status_matchers.h"
#include "worker_table_fixture.h"

namespace baton::router {
namespace {

using baton::testing::Fails;
constexpr auto kRefused = absl::StatusCode::kFailedPrecondition;

v1::WorkerStatus CanChange(v1::WorkerStatus status) {
  for (const auto role : {v1::WORKER_ROLE_PREFILL, v1::WORKER_ROLE_DECODE, v1::WORKER_ROLE_BOTH}) {
    status.mutable_role_facts()->add_possible(role);
  }
  return status;
}

v1::WorkerStatus Switching(v1::WorkerStatus status, v1::WorkerRole to) {
  status.set_state(v1::WORKER_STATE_SWITCHING);
  status.mutable_role_facts()->set_switching_to(to);
  return status;
}

class WorkerTableRolesTest : public WorkerTableTest {
 protected:
  const v1::WorkerStatus p1_ = CanChange(StatusOf("p1", v1::WORKER_ROLE_PREFILL));
  const v1::WorkerStatus p2_ = CanChange(StatusOf("p2", v1::WORKER_ROLE_PREFILL));
  const v1::WorkerStatus d1_ = CanChange(StatusOf("d1", v1::WORKER_ROLE_DECODE));
  const v1::WorkerStatus d2_ = CanChange(StatusOf("d2", v1::WORKER_ROLE_DECODE));

  void BringUpFour() {
    Hear(0, p1_);
    Hear(1, d1_);
    Hear(2, p2_);
    Hear(3, d2_);
    Advance();
    table_.OnAssets(now_, "f1", AssetsNamed("f1"));
    ProbeAll(absl::OkStatus());
  }
  v1::WorkerInfo InfoOf(int worker) {
    v1::GetStatusResponse response;
    table_.Describe(now_, response);
    return response.workers(worker);
  }
};

TEST_F(WorkerTableRolesTest, AWorkerThatSwitchesGetsNothingAndComesBackInItsNewRole) {
  BringUpFour();
  EXPECT_EQ(table_.ready_pairs(), 4u);
  Hear(3, Switching(d2_, v1::WORKER_ROLE_PREFILL));
  Advance();
  EXPECT_EQ(StateOf(3), "switching");
  EXPECT_EQ(InfoOf(3).detail(), "from decode to prefill");
  EXPECT_EQ(table_.workers_by_state().at("switching"), 1);
  EXPECT_EQ(table_.ready_pairs(), 2u);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(Place().placement.decode.key.id, "d1");

  v1::WorkerStatus prefill = CanChange(StatusOf("d2", v1::WORKER_ROLE_PREFILL));
  prefill.mutable_role_facts()->set_changes(1);
  Hear(3, prefill);
  EXPECT_EQ(ProbeAll(absl::OkStatus()), 1) << "d2 and d1";
  EXPECT_EQ(PairOf("d2", "d1").state(), "ready");
  EXPECT_EQ(table_.ready_pairs(), 3u);
  EXPECT_EQ(InfoOf(3).role_changes(), 1u);
}

TEST_F(WorkerTableRolesTest, AChangeWithoutAReportBetweenIsSeen) {
  BringUpFour();
  Hear(3, CanChange(StatusOf("d2", v1::WORKER_ROLE_BOTH)));
  const int probed = ProbeAll(absl::OkStatus());
  EXPECT_EQ(probed, 3) << "with p1, p2 and itself";
  EXPECT_EQ(PairOf("d2", "d2").state(), "ready");
}

TEST_F(WorkerTableRolesTest, WhileTheOnlyDecodeWorkerSwitchesTheModelIsKnown) {
  BringUpPair();
  Hear(1, Switching(d1_, v1::WORKER_ROLE_PREFILL));
  Advance();
  EXPECT_OK(table_.FindModel("m"));
  EXPECT_EQ(Place().kind, PlacementResult::Kind::kNoneReady);
}

TEST_F(WorkerTableRolesTest, AnOrderNamesTheWorkerAndItsRole) {
  BringUpFour();
  ASSERT_OK_AND_ASSIGN(const WorkerTable::RoleOrder order, table_.OrderRole(now_, "d2", "prefill", false));
  EXPECT_EQ(order.worker, 3u);
  EXPECT_EQ(order.from, v1::WORKER_ROLE_DECODE);
  EXPECT_EQ(order.to, v1::WORKER_ROLE_PREFILL);
}

TEST_F(WorkerTableRolesTest, TheLastWorkerOfARoleStaysUnlessForced) {
  BringUpFour();
  Hear(3, Switching(d2_, v1::WORKER_ROLE_PREFILL));
  EXPECT_TRUE(Fails(table_.OrderRole(now_, "d1", "prefill", false), kRefused,
                    "worker d1 is the last serving worker of model m and its numerics id that decodes"));
  ASSERT_OK_AND_ASSIGN(const WorkerTable::RoleOrder forced, table_.OrderRole(now_, "d1", "prefill", true));
  table_.OnOrderEnded(now_, forced, absl::FailedPreconditionError("refused"));
  EXPECT_OK(table_.OrderRole(now_, "d1", "both", false)) << "it goes on to decode";
  v1::WorkerStatus stranger = p2_;
  stranger.mutable_model()->set_numerics_id("n2");
  Hear(2, stranger);
  EXPECT_TRUE(Fails(table_.OrderRole(now_, "p1", "decode", false), kRefused, "that computes prompts"));
  Hear(1, CanChange(StatusOf("d1", v1::WORKER_ROLE_BOTH)));
  EXPECT_OK(table_.OrderRole(now_, "p1", "decode", false)) << "d1 computes prompts, too";
}

TEST_F(WorkerTableRolesTest, OfTwoOrdersOneLeavesTheLastWorkerOfARole) {
  BringUpFour();
  ASSERT_OK_AND_ASSIGN(const WorkerTable::RoleOrder first, table_.OrderRole(now_, "p1", "decode", false));
  EXPECT_TRUE(table_.balance_facts(absl::Seconds(60)).at("m").unsettled);
  const auto second = [&] { return table_.OrderRole(now_, "p2", "decode", false); };
  EXPECT_TRUE(Fails(second(), kRefused, "worker p2 is the last serving worker"));
  Hear(0, p1_);
  EXPECT_TRUE(Fails(second(), kRefused, "worker p2 is the last serving worker")) << "a report of before";
  table_.OnOrderEnded(now_, first, absl::OkStatus());
  EXPECT_TRUE(Fails(second(), kRefused, "worker p2 is the last serving worker")) << "begun, and not reported";
  Hear(0, Switching(p1_, v1::WORKER_ROLE_DECODE));
  EXPECT_TRUE(Fails(second(), kRefused, "worker p2 is the last serving worker"));
  Hear(0, p1_);
  EXPECT_OK(second()) << "p1 has kept its role";
}

TEST_F(WorkerTableRolesTest, AnOrderThatFailedIsForgotten) {
  BringUpFour();
  ASSERT_OK_AND_ASSIGN(const WorkerTable::RoleOrder first, table_.OrderRole(now_, "p1", "decode", false));
  table_.OnOrderEnded(now_, first, absl::FailedPreconditionError("role-cooldown"));
  EXPECT_FALSE(table_.balance_facts(absl::Seconds(60)).at("m").unsettled);
  EXPECT_OK(table_.OrderRole(now_, "p2", "decode", false));
}

TEST_F(WorkerTableRolesTest, AnOrderWithoutAnAnswerCountsForSomeTime) {
  BringUpFour();
  ASSERT_OK_AND_ASSIGN(const WorkerTable::RoleOrder first, table_.OrderRole(now_, "p1", "decode", false));
  table_.OnOrderEnded(now_, first, absl::DeadlineExceededError("no answer"));
  EXPECT_TRUE(Fails(table_.OrderRole(now_, "p2", "decode", false), kRefused, "last serving worker"));
  now_ = now_ + WorkerTable::kOrderDelay;
  EXPECT_OK(table_.OrderRole(now_, "p2", "decode", false));
}

TEST_F(WorkerTableRolesTest, OpenOrdersAreBounded) {
  BringUpFour();
  for (size_t i = 0; i < WorkerTable::kMaxOrders; ++i) ASSERT_OK(table_.OrderRole(now_, "p1", "both", false));
  EXPECT_TRUE(Fails(table_.OrderRole(now_, "p1", "both", false), absl::StatusCode::kResourceExhausted,
                    "64 changes of roles have not begun yet"));
  now_ = now_ + WorkerTable::kOrderCallTimeout + WorkerTable::kOrderDelay;
  EXPECT_OK(table_.OrderRole(now_, "p1", "both", false));
}

TEST_F(WorkerTableRolesTest, MistakesAreNamed) {
  BringUpFour();
  EXPECT_TRUE(Fails(table_.OrderRole(now_, "d9", "prefill", false), absl::StatusCode::kNotFound,
                    "worker_id: \"d9\" is no worker of this router; expected one of d1, d2, p1, p2"));
  EXPECT_TRUE(Fails(table_.OrderRole(now_, "d1", "", false), absl::StatusCode::kInvalidArgument,
                    "role: \"\", expected prefill, decode or both"));
  table_.OnStreamEnded(now_, 1, absl::UnavailableError("gone"));
  EXPECT_TRUE(Fails(table_.OrderRole(now_, "d1", "prefill", true), absl::StatusCode::kUnavailable,
                    "worker d1 is connecting: no status: gone"));
  Hear(3, StatusOf("d2", v1::WORKER_ROLE_DECODE));
  EXPECT_TRUE(Fails(table_.OrderRole(now_, "d2", "prefill", true), kRefused, "which changes no roles"));
}

TEST_F(WorkerTableRolesTest, TheLoadIsByRole) {
  v1::WorkerStatus p1 = p1_;
  p1.mutable_load()->set_waiting_tokens(1500);
  p1.mutable_load()->set_blocked_tokens(1000);
  p1.mutable_load()->set_prefill_tokens_per_second(1000);
  v1::WorkerStatus d1 = d1_;
  d1.mutable_load()->set_running_sequences(1);
  d1.mutable_load()->set_waiting_reservations(1);
  d1.mutable_load()->set_waiting_requests(5);  // most wait for a prefill worker
  d1.mutable_load()->set_pages_used(30);
  d1.mutable_load()->set_step_seconds(0.02);
  d1.mutable_load()->set_tpot_slo_seconds(0.05);
  d1.mutable_role_facts()->set_last_failure("attempts still ran");
  Hear(0, p1);
  Hear(1, d1);
  Hear(2, CanChange(StatusOf("b1", v1::WORKER_ROLE_BOTH)));
  Hear(3, Switching(d2_, v1::WORKER_ROLE_PREFILL));
  Advance();
  const BalanceFacts facts = table_.balance_facts(absl::Seconds(60)).at("m");
  ASSERT_EQ(facts.prefill.workers.size(), 1u);
  EXPECT_EQ(facts.prefill.workers[0].id, "p1");
  EXPECT_DOUBLE_EQ(facts.prefill.workers[0].queued_seconds, 0.5);
  EXPECT_TRUE(facts.prefill.workers[0].is_busy);
  ASSERT_EQ(facts.decode.workers.size(), 2u) << "a worker that switches has no role to serve";
  EXPECT_DOUBLE_EQ(facts.decode.workers[0].slots_used, 0.25);
  EXPECT_DOUBLE_EQ(facts.decode.workers[0].pages_used, 0.3);
  EXPECT_DOUBLE_EQ(facts.decode.workers[0].step_share, 0.4);
  EXPECT_TRUE(facts.decode.workers[0].can_change);
  EXPECT_TRUE(facts.decode.workers[0].gave_up);
  EXPECT_FALSE(facts.prefill.workers[0].gave_up);
  EXPECT_FALSE(facts.decode.workers[1].can_change) << "a worker of role both stays";
  EXPECT_TRUE(facts.unsettled);
}

TEST_F(WorkerTableRolesTest, ARecentChangeUnsettlesAFreshStartDoesNot) {
  v1::WorkerStatus d1 = d1_;
  d1.mutable_role_facts()->set_held_seconds(5);
  Hear(1, d1);
  EXPECT_FALSE(table_.balance_facts(absl::Seconds(60)).at("m").unsettled);
  d1.mutable_role_facts()->set_changes(1);
  Hear(1, d1);
  EXPECT_TRUE(table_.balance_facts(absl::Seconds(60)).at("m").unsettled);
  EXPECT_FALSE(table_.balance_facts(absl::Seconds(5)).at("m").unsettled);
}

}  // namespace
}  // namespace baton::router
