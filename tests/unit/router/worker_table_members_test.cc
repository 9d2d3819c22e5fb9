// SPDX-License-Identifier: Apache-2.0
// Workers that join and leave a table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "router/worker_table.h"
#include "tests/status_matchers.h"
#include "worker_table_fixture.h"

namespace baton::router {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class MembersTest : public WorkerTableTest {
 protected:
  MembersTest() : WorkerTableTest({"a:1", "b:2"}) {}

  std::vector<std::string> Addresses() {
    v1::GetStatusResponse response;
    table_.Describe(now_, response);
    std::vector<std::string> addresses;
    for (const v1::WorkerInfo& worker : response.workers()) addresses.push_back(worker.address());
    return addresses;
  }
  // Lets the time pass for which an unlisted worker is kept. Both workers go on reporting.
  void Keep() {
    for (absl::Duration passed; passed < WorkerTable::kForgetDelay; passed += absl::Seconds(1)) {
      now_ += absl::Seconds(1);
      Hear(0, StatusOf("p1", v1::WORKER_ROLE_PREFILL));
      Hear(1, StatusOf("d1", v1::WORKER_ROLE_DECODE));
    }
  }
  void SetMembers(const std::vector<std::string>& addresses) { table_.SetMembers(now_, addresses); }

  uint64_t probe_ = 0;
};

TEST_F(MembersTest, ANewAddressJoinsAndIsConnected) {
  EXPECT_THAT(Advance().joined, ElementsAre(Pair(0, "a:1"), Pair(1, "b:2")));
  SetMembers({"c:3", "a:1", "c:3", "b:2"});
  const WorkerTable::Effects effects = Advance();
  EXPECT_THAT(effects.joined, ElementsAre(Pair(2, "c:3"))) << "once, though listed twice";
  EXPECT_THAT(effects.connect, ElementsAre(2));
  EXPECT_THAT(Addresses(), ElementsAre("a:1", "b:2", "c:3"));
}

TEST_F(MembersTest, AWorkerThatJoinsIsPaired) {
  BringUpPair();
  SetMembers({"a:1", "b:2", "c:3"});
  Hear(2, StatusOf("d2", v1::WORKER_ROLE_DECODE));
  EXPECT_EQ(ProbeAll(absl::OkStatus()), 1);
  EXPECT_EQ(table_.ready_pairs(), 2u);
}

TEST_F(MembersTest, AWorkerThatIsNotListedGetsNoRequestAndKeepsItsOwn) {
  BringUpPair();
  idle_ = false;
  SetMembers({"a:1"});
  const WorkerTable::Effects effects = Advance();
  EXPECT_THAT(effects.lost, IsEmpty());
  EXPECT_THAT(effects.forgotten, IsEmpty());
  EXPECT_EQ(StateOf(1), "draining");
  EXPECT_EQ(Place().kind, PlacementResult::Kind::kNoneReady);
  EXPECT_EQ(table_.ready_pairs(), 0u);
}

TEST_F(MembersTest, AWorkerThatIsNotListedIsForgottenOnceIdle) {
  BringUpPair();
  idle_ = false;
  SetMembers({"a:1"});
  Advance();
  idle_ = true;
  EXPECT_THAT(Advance().forgotten, IsEmpty()) << "a request that was placed before may not have called yet";
  Keep();
  const WorkerTable::Effects effects = Advance();
  EXPECT_THAT(effects.forgotten, ElementsAre(1));
  ASSERT_EQ(effects.lost.size(), 1u);
  EXPECT_EQ(effects.lost[0].key.id, "d1");
  EXPECT_THAT(Addresses(), ElementsAre("a:1"));
  EXPECT_THAT(Advance().forgotten, IsEmpty());
}

TEST_F(MembersTest, AWorkerThatIsListedAgainInTimeServesAgain) {
  BringUpPair();
  idle_ = false;
  SetMembers({"a:1"});
  Advance();
  SetMembers({"a:1", "b:2"});
  const WorkerTable::Effects again = Advance();
  EXPECT_THAT(again.joined, IsEmpty()) << "the table still knows the worker";
  ASSERT_EQ(again.probe.size(), 1u);
  probe_ = again.probe[0].pair;
  Keep();
  idle_ = true;
  EXPECT_THAT(Advance().forgotten, IsEmpty());
  EXPECT_EQ(PairOf("p1", "d1").state(), "probing");
  table_.OnProbed(now_, probe_, absl::OkStatus());
  EXPECT_EQ(Place().kind, PlacementResult::Kind::kPlaced);
}

TEST_F(MembersTest, ALostWorkerThatIsNotListedIsForgottenWithItsRequests) {
  BringUpPair();
  idle_ = false;
  SetMembers({"a:1"});
  Advance();
  now_ += kPeerTimeout + absl::Seconds(1);
  Hear(0, StatusOf("p1", v1::WORKER_ROLE_PREFILL));
  const WorkerTable::Effects effects = Advance();
  ASSERT_EQ(effects.lost.size(), 1u);
  EXPECT_EQ(effects.lost[0].key.id, "d1");
  EXPECT_THAT(Advance().forgotten, ElementsAre(1));
}

TEST_F(MembersTest, AnAddressThatNeverAnsweredIsForgottenAtOnce) {
  idle_ = false;
  SetMembers({"b:2"});
  const WorkerTable::Effects effects = Advance();
  EXPECT_THAT(effects.forgotten, ElementsAre(0));
  EXPECT_THAT(effects.connect, ElementsAre(1));
}

TEST_F(MembersTest, NewsOfAForgottenWorkerIsIgnoredAndItsIndexIsNotUsedAgain) {
  BringUpPair();
  SetMembers({"a:1"});
  Keep();
  Advance();
  SetMembers({"a:1", "b:2"});
  EXPECT_THAT(Advance().joined, ElementsAre(Pair(2, "b:2")));
  Hear(1, StatusOf("d1", v1::WORKER_ROLE_DECODE));
  table_.OnStreamEnded(now_, 1, absl::UnavailableError("gone"));
  table_.OnPages({1, 1}, {});
  table_.OnPagesEnded(now_, {1, 1}, absl::UnavailableError("gone"));
  EXPECT_THAT(Addresses(), ElementsAre("a:1", "b:2"));
  EXPECT_EQ(StateOf(1), "connecting") << "only the new index counts";
  EXPECT_EQ(table_.ready_pairs(), 0u);
}

TEST_F(MembersTest, TheModelOfWorkersThatAllLeftIsKnown) {
  BringUpPair();
  v1::WorkerStatus other = StatusOf("b1", v1::WORKER_ROLE_BOTH);
  other.mutable_model()->set_name("other");
  SetMembers({"a:1", "b:2", "c:3"});
  Hear(2, other);
  ProbeAll(absl::OkStatus());
  ASSERT_TRUE(table_.FindModel("other").ok());
  SetMembers({"a:1", "b:2"});
  Keep();
  EXPECT_THAT(Advance().forgotten, ElementsAre(2));
  EXPECT_EQ(table_.FindModel("other").status().code(), absl::StatusCode::kUnavailable) << "the workers may come back";
  EXPECT_EQ(table_.FindModel("nothing").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(MembersTest, AWorkerThatReturnsAtAnotherAddressIsNoTwin) {
  Hear(1, StatusOf("d1", v1::WORKER_ROLE_DECODE));
  table_.OnStreamEnded(now_, 1, absl::UnavailableError("gone"));
  SetMembers({"a:1", "b:2", "c:3"});
  Advance();
  Hear(2, StatusOf("d1", v1::WORKER_ROLE_DECODE, 2));
  for (const WorkerTable::Event& event : Advance().events) EXPECT_NE(event.name, "worker.same_id");
}

TEST_F(MembersTest, AMigrationAvoidsAWorkerThatIsNotListed) {
  v1::WorkerStatus status = StatusOf("d1", v1::WORKER_ROLE_DECODE);
  status.set_handoff_address("there:1");
  Hear(1, status);
  const PlacementQuery query{"m", "f1", "n1", 10, 20, {}, {}, 0, /*migrates=*/true};
  EXPECT_EQ(table_.Place(now_, query).kind, PlacementResult::Kind::kPlaced);
  idle_ = false;
  SetMembers({"a:1"});
  EXPECT_NE(table_.Place(now_, query).kind, PlacementResult::Kind::kPlaced);
}

}  // namespace
}  // namespace baton::router
