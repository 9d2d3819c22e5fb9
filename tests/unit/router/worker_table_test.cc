// SPDX-License-Identifier: Apache-2.0
#include "router/worker_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/status_matchers.h"
#include "worker_table_fixture.h"

namespace baton::router {
namespace {

using testing::Fails;

TEST_F(WorkerTableTest, ConnectsToEveryAddressOnceAndAgainAfterABackoff) {
  EXPECT_EQ(Advance().connect, (std::vector<size_t>{0, 1, 2, 3}));
  EXPECT_TRUE(Advance().connect.empty());
  table_.OnStreamEnded(now_, 2, absl::UnavailableError("refused"));
  EXPECT_TRUE(Advance().connect.empty());
  EXPECT_EQ(Advance(absl::Seconds(1)).connect, (std::vector<size_t>{2}));
  EXPECT_EQ(StateOf(2), "connecting");
}

TEST_F(WorkerTableTest, AChatTemplateThatIsNotSupportedIsReported) {
  const auto reports = [&](std::string_view chat_template) {
    auto assets = std::make_shared<ModelAssets>();
    assets->templates = PromptTemplates(chat_template, "");
    table_.OnAssets(now_, "f1", assets);
    std::vector<std::string> details;
    for (const WorkerTable::Event& event : Advance().events) {
      if (event.name == "model.chat_refused") details.push_back(event.detail);
    }
    return details;
  };
  EXPECT_THAT(reports(""), ::testing::IsEmpty());
  EXPECT_THAT(reports("{{ messages }}"), ::testing::IsEmpty());
  EXPECT_THAT(reports("{{ x|xmlattr }}"), ::testing::ElementsAre(::testing::HasSubstr("line 1")));
}

TEST_F(WorkerTableTest, TwoWorkersOfOneIdAreReportedOncePerStart) {
  const auto reports = [](const WorkerTable::Effects& effects) {
    std::vector<std::string> details;
    for (const WorkerTable::Event& event : effects.events) {
      if (event.name == "worker.same_id") details.push_back(event.detail);
    }
    return details;
  };
  Hear(0, StatusOf("w", v1::WORKER_ROLE_PREFILL));
  Hear(1, StatusOf("other", v1::WORKER_ROLE_DECODE));
  EXPECT_TRUE(reports(Advance()).empty());
  Hear(2, StatusOf("w", v1::WORKER_ROLE_DECODE, 2));
  const std::vector<std::string> first = reports(Advance());
  ASSERT_EQ(first.size(), 1u);
  EXPECT_NE(first[0].find("a:1"), std::string::npos) << first[0];
  EXPECT_NE(first[0].find("c:3"), std::string::npos) << first[0];
  Hear(0, StatusOf("w", v1::WORKER_ROLE_PREFILL));
  Hear(2, StatusOf("w", v1::WORKER_ROLE_DECODE, 2));
  EXPECT_TRUE(reports(Advance()).empty()) << "said already";
  Hear(2, StatusOf("w", v1::WORKER_ROLE_DECODE, 3));
  EXPECT_EQ(reports(Advance()).size(), 1u) << "a new start";
  Advance(2 * kPeerTimeout);
  Hear(2, StatusOf("w", v1::WORKER_ROLE_DECODE, 3));
  EXPECT_TRUE(reports(Advance()).empty()) << "the other is lost";
}

TEST_F(WorkerTableTest, ASilentWorkerIsLostAndItsPairProbedAnewWhenItIsHeardAgain) {
  BringUpPair();
  now_ += kPeerTimeout / 2;
  Hear(1, StatusOf("d1", v1::WORKER_ROLE_DECODE));
  const WorkerTable::Effects effects = Advance(kPeerTimeout / 2 + absl::Milliseconds(1));
  ASSERT_EQ(effects.lost.size(), 1u);
  EXPECT_EQ(effects.lost[0].key.id, "p1");
  EXPECT_EQ(StateOf(0), "lost");
  EXPECT_FALSE(table_.ready());
  EXPECT_EQ(Place().kind, PlacementResult::Kind::kNoneLive);
  EXPECT_TRUE(Advance().lost.empty()) << "lost once";

  Hear(0, StatusOf("p1", v1::WORKER_ROLE_PREFILL));
  EXPECT_FALSE(table_.ready());
  EXPECT_EQ(ProbeAll(absl::OkStatus()), 1);
  EXPECT_TRUE(table_.ready());
}

TEST_F(WorkerTableTest, ABrokenStreamIsNotYetALoss) {
  BringUpPair();
  table_.OnStreamEnded(now_, 1, absl::UnavailableError("reset"));
  EXPECT_TRUE(Advance().lost.empty());
  EXPECT_EQ(StateOf(1), "connecting");
  EXPECT_EQ(Place().kind, PlacementResult::Kind::kNoneReady) << "nothing new is sent there";
  Hear(1, StatusOf("d1", v1::WORKER_ROLE_DECODE));
  EXPECT_EQ(Place().kind, PlacementResult::Kind::kPlaced) << "the same process: no new probe";
}

TEST_F(WorkerTableTest, ARestartedWorkerIsANewOneAndTouchesNobodyElse) {
  BringUpPair();
  Hear(2, StatusOf("d2", v1::WORKER_ROLE_DECODE));
  EXPECT_EQ(ProbeAll(absl::OkStatus()), 1);
  Hear(1, StatusOf("d1", v1::WORKER_ROLE_DECODE, /*epoch=*/2));
  const WorkerTable::Effects effects = Advance();
  ASSERT_EQ(effects.lost.size(), 1u);
  EXPECT_EQ(effects.lost[0].key, (WorkerKey{"d1", 1}));
  ASSERT_EQ(effects.probe.size(), 1u) << "only its own pair";
  EXPECT_EQ(effects.probe[0].decode.key, (WorkerKey{"d1", 2}));
  EXPECT_EQ(PairOf("p1", "d2").state(), "ready");
}

TEST_F(WorkerTableTest, ADrainingWorkerGetsNothingNew) {
  BringUpPair();
  v1::WorkerStatus draining = StatusOf("d1", v1::WORKER_ROLE_DECODE);
  draining.set_state(v1::WORKER_STATE_DRAINING);
  Hear(1, draining);
  EXPECT_EQ(StateOf(1), "draining");
  EXPECT_NE(Place().kind, PlacementResult::Kind::kPlaced);
  EXPECT_FALSE(table_.ready());
}

TEST_F(WorkerTableTest, ARequestWaitsForTheSuccessorOfAWorkerThatDrains) {
  BringUpPair();
  const uint32_t limit = table_.FindModel("m")->limits.max_sequence_tokens;
  v1::WorkerStatus draining = StatusOf("d1", v1::WORKER_ROLE_DECODE);
  draining.set_state(v1::WORKER_STATE_DRAINING);
  Hear(1, draining);
  Advance();
  ASSERT_OK_AND_ASSIGN(const ServedModel model, table_.FindModel("m"));
  EXPECT_NE(model.assets, nullptr);
  EXPECT_EQ(model.limits.max_sequence_tokens, limit) << "prompts are still checked";
  const PlacementResult waiting = Place();
  EXPECT_EQ(waiting.kind, PlacementResult::Kind::kNoneReady);
  EXPECT_THAT(waiting.detail, ::testing::HasSubstr("d1 is draining"));
  EXPECT_EQ(Place({}, "n2").kind, PlacementResult::Kind::kNoneLive) << "the successor has other numerics";

  Hear(2, StatusOf("d2", v1::WORKER_ROLE_DECODE));
  EXPECT_EQ(ProbeAll(absl::OkStatus()), 1);
  EXPECT_EQ(Place().kind, PlacementResult::Kind::kPlaced);
  Advance(2 * kPeerTimeout);
  EXPECT_EQ(Place().kind, PlacementResult::Kind::kNoneLive) << "d1 has gone, and everybody else is lost";
}

TEST_F(WorkerTableTest, AssetsThatCannotBeHadAreTriedAgain) {
  Hear(0, StatusOf("d1", v1::WORKER_ROLE_BOTH));
  EXPECT_EQ(Advance().fetch.size(), 1u);
  table_.OnAssets(now_, "f1", absl::DataLossError("wrong fingerprint"));
  EXPECT_TRUE(Advance().fetch.empty());
  EXPECT_EQ(Advance(absl::Seconds(2)).fetch.size(), 1u);
  EXPECT_TRUE(Fails(table_.FindModel("m"), absl::StatusCode::kUnavailable, "wrong fingerprint"));
}

TEST_F(WorkerTableTest, ReportsThatMakeNoSenseAreShownNotUsed) {
  v1::WorkerStatus status = StatusOf("p1", v1::WORKER_ROLE_PREFILL);
  status.set_protocol(99);
  Hear(0, status);
  EXPECT_EQ(StateOf(0), "connecting");
  status = StatusOf("", v1::WORKER_ROLE_PREFILL);
  Hear(1, status);
  status = StatusOf("x", v1::WORKER_ROLE_UNSPECIFIED);
  Hear(2, status);
  status = StatusOf("y", v1::WORKER_ROLE_DECODE);
  status.mutable_capacity()->set_page_tokens(0);
  Hear(3, status);
  v1::GetStatusResponse response;
  table_.Describe(now_, response);
  EXPECT_NE(response.workers(0).detail().find("protocol 99"), std::string::npos);
  EXPECT_NE(response.workers(1).detail().find("worker id"), std::string::npos);
  EXPECT_NE(response.workers(2).detail().find("role"), std::string::npos);
  EXPECT_NE(response.workers(3).detail().find("page size"), std::string::npos);
}

TEST_F(WorkerTableTest, ModelsAreFoundByNameOrAlone) {
  EXPECT_TRUE(Fails(table_.FindModel("m"), absl::StatusCode::kUnavailable, "no live pair"));
  BringUpPair();
  ASSERT_OK_AND_ASSIGN(const ServedModel only, table_.FindModel(""));
  EXPECT_EQ(only.name, "m");
  EXPECT_EQ(only.limits.max_context_tokens, 1000u);
  EXPECT_EQ(only.limits.max_sequence_tokens, 1000u);
  EXPECT_TRUE(Fails(table_.FindModel("x"), absl::StatusCode::kNotFound, "x; served are m"));

  v1::WorkerStatus other = StatusOf("d9", v1::WORKER_ROLE_BOTH);
  other.mutable_model()->set_name("second");
  Hear(2, other);
  ProbeAll(absl::OkStatus());
  EXPECT_TRUE(Fails(table_.FindModel(""), absl::StatusCode::kInvalidArgument, "m, second"));
  EXPECT_OK(table_.FindModel("second"));
  v1::ListModelsResponse models;
  table_.Describe(models);
  ASSERT_EQ(models.models_size(), 2);
  EXPECT_TRUE(models.models(0).ready());
  EXPECT_EQ(models.models(1).name(), "second");
}

TEST_F(WorkerTableTest, AFoundModelFollowsEachChangeOfItsWorkers) {
  BringUpPair();
  ASSERT_OK_AND_ASSIGN(const ServedModel before, table_.FindModel("m"));
  v1::WorkerStatus smaller = StatusOf("d1", v1::WORKER_ROLE_DECODE);
  smaller.mutable_capacity()->set_pages_total(11);
  Hear(1, smaller);
  const uint32_t page_tokens = smaller.capacity().page_tokens();
  ASSERT_LT(10 * page_tokens, before.limits.max_sequence_tokens);
  ASSERT_OK_AND_ASSIGN(const ServedModel after, table_.FindModel("m"));
  EXPECT_EQ(after.limits.max_sequence_tokens, 10 * page_tokens);
  table_.OnAssets(now_, "f1", AssetsNamed("f1"));
  ASSERT_OK_AND_ASSIGN(const ServedModel reloaded, table_.FindModel("m"));
  EXPECT_NE(reloaded.assets, after.assets);
  now_ += 2 * kPeerTimeout;
  Advance();
  EXPECT_TRUE(Fails(table_.FindModel("m"), absl::StatusCode::kUnavailable, "no live pair"));
}

TEST_F(WorkerTableTest, AModelWhoseWorkersAreAllLostIsUnavailableNotUnknown) {
  BringUpPair();
  v1::WorkerStatus other = StatusOf("d9", v1::WORKER_ROLE_BOTH);
  other.mutable_model()->set_name("second");
  now_ += kPeerTimeout;
  Hear(2, other);
  Advance(absl::Milliseconds(1));
  EXPECT_TRUE(Fails(table_.FindModel("m"), absl::StatusCode::kUnavailable, "no live pair of workers serves m"));
}

}  // namespace
}  // namespace baton::router
