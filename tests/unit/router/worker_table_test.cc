// SPDX-License-Identifier: Apache-2.0
#include "router/worker_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/steady_time.h"
#include "fake_tokenizer.h"
#include "tests/status_matchers.h"

namespace baton::router {
namespace {

using testing::Fails;

constexpr absl::Duration kPeerTimeout = absl::Seconds(3);

v1::WorkerStatus Status(const std::string& id, v1::WorkerRole role, uint64_t epoch = 1) {
  v1::WorkerStatus status;
  status.set_protocol(v1::WORKER_PROTOCOL_CURRENT);
  status.set_worker_id(id);
  status.set_epoch(epoch);
  status.set_role(role);
  status.set_state(v1::WORKER_STATE_SERVING);
  status.mutable_model()->set_name("m");
  status.mutable_model()->set_vocab_size(3);
  status.mutable_model()->set_max_context_tokens(1000);
  status.mutable_model()->set_numerics_id("n1");
  status.mutable_model()->set_assets_fingerprint("f1");
  status.mutable_capacity()->set_pages_total(100);
  status.mutable_capacity()->set_page_tokens(16);
  status.mutable_capacity()->set_max_sequences(8);
  return status;
}

std::shared_ptr<const ModelAssets> Assets(const std::string& fingerprint) {
  auto assets = std::make_shared<ModelAssets>();
  assets->fingerprint = fingerprint;
  assets->tokenizer = std::make_unique<FakeTokenizer>(std::vector<std::string>{"a", "b", "c"});
  return assets;
}

// A table of four addresses; the test plays the network.
class WorkerTableTest : public ::testing::Test {
 protected:
  void Hear(size_t worker, const v1::WorkerStatus& status) {
    table_.OnStatus(now_, worker, status, [] { return nullptr; });
  }
  WorkerTable::Effects Advance(absl::Duration by = absl::ZeroDuration()) {
    now_ += by;
    return table_.Advance(now_);
  }
  // p1 and d1 at the first two addresses, their pair ready.
  void BringUpPair() {
    Hear(0, Status("p1", v1::WORKER_ROLE_PREFILL));
    Hear(1, Status("d1", v1::WORKER_ROLE_DECODE));
    Advance();
    table_.OnAssets(now_, "f1", Assets("f1"));
    ProbeAll(absl::OkStatus());
  }
  int ProbeAll(const absl::Status& result) {
    const std::vector<Placement> probes = Advance().probe;
    for (const Placement& probe : probes) table_.OnProbed(now_, probe.pair, result);
    return static_cast<int>(probes.size());
  }
  PlacementResult Place(std::vector<WorkerKey> avoid = {}, const std::string& numerics_id = "") {
    return table_.Place(now_, {"m", "f1", numerics_id, 10, 20, std::move(avoid), {}, 0, {}});
  }
  std::string StateOf(size_t worker) {
    v1::GetStatusResponse response;
    table_.Describe(response);
    return response.workers(static_cast<int>(worker)).state();
  }
  v1::PairInfo PairOf(const std::string& prefill, const std::string& decode) {
    v1::GetStatusResponse response;
    table_.Describe(response);
    for (const v1::PairInfo& pair : response.pairs()) {
      if (pair.prefill_worker() == prefill && pair.decode_worker() == decode) return pair;
    }
    return {};
  }

  SteadyTime now_;
  WorkerTable table_{{{"a:1", "b:2", "c:3", "d:4"}, kPeerTimeout, 0}};
};

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
  Hear(0, Status("w", v1::WORKER_ROLE_PREFILL));
  Hear(1, Status("other", v1::WORKER_ROLE_DECODE));
  EXPECT_TRUE(reports(Advance()).empty());
  Hear(2, Status("w", v1::WORKER_ROLE_DECODE, 2));
  const std::vector<std::string> first = reports(Advance());
  ASSERT_EQ(first.size(), 1u);
  EXPECT_NE(first[0].find("a:1"), std::string::npos) << first[0];
  EXPECT_NE(first[0].find("c:3"), std::string::npos) << first[0];
  Hear(0, Status("w", v1::WORKER_ROLE_PREFILL));
  Hear(2, Status("w", v1::WORKER_ROLE_DECODE, 2));
  EXPECT_TRUE(reports(Advance()).empty()) << "said already";
  Hear(2, Status("w", v1::WORKER_ROLE_DECODE, 3));
  EXPECT_EQ(reports(Advance()).size(), 1u) << "a new start";
  Advance(2 * kPeerTimeout);
  Hear(2, Status("w", v1::WORKER_ROLE_DECODE, 3));
  EXPECT_TRUE(reports(Advance()).empty()) << "the other is lost";
}

TEST_F(WorkerTableTest, APairServesOnlyAfterItsProbe) {
  Hear(0, Status("p1", v1::WORKER_ROLE_PREFILL));
  Hear(1, Status("d1", v1::WORKER_ROLE_DECODE));
  const WorkerTable::Effects first = Advance();
  ASSERT_EQ(first.fetch.size(), 1u) << "one fetch per fingerprint";
  EXPECT_EQ(first.fetch[0].fingerprint, "f1");
  EXPECT_TRUE(first.probe.empty()) << "not before the tokenizer is there";
  table_.OnAssets(now_, "f1", Assets("f1"));
  const WorkerTable::Effects second = Advance();
  ASSERT_EQ(second.probe.size(), 1u);
  EXPECT_EQ(second.probe[0].prefill.key.id, "p1");
  EXPECT_EQ(second.probe[0].decode.key.id, "d1");
  EXPECT_FALSE(table_.ready());
  EXPECT_EQ(PairOf("p1", "d1").state(), "probing");
  EXPECT_EQ(Place().kind, PlacementResult::Kind::kNoneReady);
  table_.OnProbed(now_, second.probe[0].pair, absl::OkStatus());
  EXPECT_TRUE(table_.ready());
  const PlacementResult placed = Place();
  ASSERT_EQ(placed.kind, PlacementResult::Kind::kPlaced);
  EXPECT_EQ(placed.placement.numerics_id, "n1");
  EXPECT_FALSE(placed.placement.local);
}

TEST_F(WorkerTableTest, AFailedProbeIsShownAndRepeatedAfterABackoff) {
  Hear(0, Status("p1", v1::WORKER_ROLE_PREFILL));
  Hear(1, Status("d1", v1::WORKER_ROLE_DECODE));
  Advance();
  table_.OnAssets(now_, "f1", Assets("f1"));
  EXPECT_EQ(ProbeAll(absl::UnavailableError("wrong secret")), 1);
  EXPECT_EQ(PairOf("p1", "d1").state(), "failed");
  EXPECT_NE(PairOf("p1", "d1").detail().find("wrong secret"), std::string::npos);
  EXPECT_EQ(Place().kind, PlacementResult::Kind::kNoneReady);
  EXPECT_EQ(ProbeAll(absl::OkStatus()), 0) << "not at once";
  now_ += absl::Seconds(1);
  EXPECT_EQ(ProbeAll(absl::OkStatus()), 1);
  EXPECT_TRUE(table_.ready());
}

TEST_F(WorkerTableTest, ADecodeWorkerThatCanPrefillIsAPairWithItself) {
  Hear(0, Status("d1", v1::WORKER_ROLE_BOTH));
  Advance();
  table_.OnAssets(now_, "f1", Assets("f1"));
  EXPECT_EQ(ProbeAll(absl::OkStatus()), 1);
  const PlacementResult placed = Place();
  ASSERT_EQ(placed.kind, PlacementResult::Kind::kPlaced);
  EXPECT_TRUE(placed.placement.local);
}

TEST_F(WorkerTableTest, WorkersOfDifferentNumericsAreNeverPaired) {
  BringUpPair();
  v1::WorkerStatus other = Status("d2", v1::WORKER_ROLE_DECODE);
  other.mutable_model()->set_numerics_id("n2");
  Hear(2, other);
  EXPECT_TRUE(Advance().probe.empty());
  EXPECT_EQ(PairOf("p1", "d2").state(), "mismatch");
  EXPECT_EQ(Place({{"d1", 1}}).kind, PlacementResult::Kind::kOnlyAvoided);
}

TEST_F(WorkerTableTest, WhyLiveWorkersServeNothingIsSaid) {
  Hear(0, Status("p1", v1::WORKER_ROLE_PREFILL));
  v1::WorkerStatus other = Status("d1", v1::WORKER_ROLE_DECODE);
  other.mutable_model()->set_numerics_id("n2");
  Hear(1, other);
  Advance();
  EXPECT_TRUE(Fails(table_.FindModel(""), absl::StatusCode::kUnavailable, "p1+d1: numerics ids differ"));
}

TEST_F(WorkerTableTest, LaterAttemptsStayWithinTheirNumericsId) {
  BringUpPair();
  EXPECT_EQ(Place({}, "n1").kind, PlacementResult::Kind::kPlaced);
  EXPECT_EQ(Place({}, "n2").kind, PlacementResult::Kind::kNoneLive);
}

TEST_F(WorkerTableTest, APairWhoseWorkerBrokeOffIsNotShownAsReady) {
  BringUpPair();
  EXPECT_EQ(PairOf("p1", "d1").state(), "ready");
  table_.OnStreamEnded(now_, 0, absl::UnavailableError("broken"));
  EXPECT_EQ(PairOf("p1", "d1").state(), "waiting");
}

TEST_F(WorkerTableTest, ASilentWorkerIsLostAndItsPairProbedAnewWhenItIsHeardAgain) {
  BringUpPair();
  now_ += kPeerTimeout / 2;
  Hear(1, Status("d1", v1::WORKER_ROLE_DECODE));
  const WorkerTable::Effects effects = Advance(kPeerTimeout / 2 + absl::Milliseconds(1));
  ASSERT_EQ(effects.lost.size(), 1u);
  EXPECT_EQ(effects.lost[0].key.id, "p1");
  EXPECT_EQ(StateOf(0), "lost");
  EXPECT_FALSE(table_.ready());
  EXPECT_EQ(Place().kind, PlacementResult::Kind::kNoneLive);
  EXPECT_TRUE(Advance().lost.empty()) << "lost once";

  Hear(0, Status("p1", v1::WORKER_ROLE_PREFILL));
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
  Hear(1, Status("d1", v1::WORKER_ROLE_DECODE));
  EXPECT_EQ(Place().kind, PlacementResult::Kind::kPlaced) << "the same process: no new probe";
}

TEST_F(WorkerTableTest, ARestartedWorkerIsANewOneAndTouchesNobodyElse) {
  BringUpPair();
  Hear(2, Status("d2", v1::WORKER_ROLE_DECODE));
  EXPECT_EQ(ProbeAll(absl::OkStatus()), 1);
  Hear(1, Status("d1", v1::WORKER_ROLE_DECODE, /*epoch=*/2));
  const WorkerTable::Effects effects = Advance();
  ASSERT_EQ(effects.lost.size(), 1u);
  EXPECT_EQ(effects.lost[0].key, (WorkerKey{"d1", 1}));
  ASSERT_EQ(effects.probe.size(), 1u) << "only its own pair";
  EXPECT_EQ(effects.probe[0].decode.key, (WorkerKey{"d1", 2}));
  EXPECT_EQ(PairOf("p1", "d2").state(), "ready");
}

TEST_F(WorkerTableTest, AProbeOfAPairThatIsGoneCountsForNothing) {
  Hear(0, Status("p1", v1::WORKER_ROLE_PREFILL));
  Hear(1, Status("d1", v1::WORKER_ROLE_DECODE));
  Advance();
  table_.OnAssets(now_, "f1", Assets("f1"));
  const std::vector<Placement> old = Advance().probe;
  Hear(1, Status("d1", v1::WORKER_ROLE_DECODE, /*epoch=*/2));
  table_.OnProbed(now_, old.at(0).pair, absl::OkStatus());
  EXPECT_FALSE(table_.ready());
}

TEST_F(WorkerTableTest, ADrainingWorkerGetsNothingNew) {
  BringUpPair();
  v1::WorkerStatus draining = Status("d1", v1::WORKER_ROLE_DECODE);
  draining.set_state(v1::WORKER_STATE_DRAINING);
  Hear(1, draining);
  EXPECT_EQ(StateOf(1), "draining");
  EXPECT_EQ(Place().kind, PlacementResult::Kind::kNoneLive);
  EXPECT_FALSE(table_.ready());
}

TEST_F(WorkerTableTest, ABrokenPairIsProbedBeforeItServesAgain) {
  BringUpPair();
  table_.PairBroken(now_, Place().placement.pair, "peer lost");
  EXPECT_EQ(PairOf("p1", "d1").state(), "unprobed");
  EXPECT_EQ(Place().kind, PlacementResult::Kind::kNoneReady);
  now_ += absl::Seconds(1);
  EXPECT_EQ(ProbeAll(absl::OkStatus()), 1);
  EXPECT_EQ(Place().kind, PlacementResult::Kind::kPlaced);
}

TEST_F(WorkerTableTest, WorkSentCountsUntilAReportMustHaveIt) {
  BringUpPair();
  Hear(2, Status("p2", v1::WORKER_ROLE_PREFILL));
  EXPECT_EQ(ProbeAll(absl::OkStatus()), 1);
  // No report comes between: the two must share the load all the same.
  std::map<std::string, int> placed;
  for (int i = 0; i < 6; ++i) ++placed[Place().placement.prefill.key.id];
  EXPECT_EQ(placed["p1"], 3);
  EXPECT_EQ(placed["p2"], 3);
  // p1 reports, late enough to know of all it was sent, that nothing waits there.
  now_ += absl::Seconds(1);
  Hear(0, Status("p1", v1::WORKER_ROLE_PREFILL));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Place().placement.prefill.key.id, "p1");
}

TEST_F(WorkerTableTest, AssetsThatCannotBeHadAreTriedAgain) {
  Hear(0, Status("d1", v1::WORKER_ROLE_BOTH));
  EXPECT_EQ(Advance().fetch.size(), 1u);
  table_.OnAssets(now_, "f1", absl::DataLossError("wrong fingerprint"));
  EXPECT_TRUE(Advance().fetch.empty());
  EXPECT_EQ(Advance(absl::Seconds(2)).fetch.size(), 1u);
  EXPECT_TRUE(Fails(table_.FindModel("m"), absl::StatusCode::kUnavailable, "wrong fingerprint"));
}

TEST_F(WorkerTableTest, ReportsThatMakeNoSenseAreShownNotUsed) {
  v1::WorkerStatus status = Status("p1", v1::WORKER_ROLE_PREFILL);
  status.set_protocol(99);
  Hear(0, status);
  EXPECT_EQ(StateOf(0), "connecting");
  status = Status("", v1::WORKER_ROLE_PREFILL);
  Hear(1, status);
  status = Status("x", v1::WORKER_ROLE_UNSPECIFIED);
  Hear(2, status);
  status = Status("y", v1::WORKER_ROLE_DECODE);
  status.mutable_capacity()->set_page_tokens(0);
  Hear(3, status);
  v1::GetStatusResponse response;
  table_.Describe(response);
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

  v1::WorkerStatus other = Status("d9", v1::WORKER_ROLE_BOTH);
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

TEST_F(WorkerTableTest, AModelWhoseWorkersAreAllLostIsUnavailableNotUnknown) {
  BringUpPair();
  v1::WorkerStatus other = Status("d9", v1::WORKER_ROLE_BOTH);
  other.mutable_model()->set_name("second");
  now_ += kPeerTimeout;
  Hear(2, other);
  Advance(absl::Milliseconds(1));
  EXPECT_TRUE(Fails(table_.FindModel("m"), absl::StatusCode::kUnavailable, "no live pair of workers serves m"));
}

// --------------------------------------------------------------------------------------------------------- pages

v1::PageNews PagesOf(bool whole, std::initializer_list<PageKey> added) {
  v1::PageNews news;
  news.set_whole(whole);
  for (const PageKey page : added) news.add_added(page);
  return news;
}

class PagesTest : public WorkerTableTest {
 protected:
  // p1 and p2 with d1: both pairs ready. p2's pages are watched as `watch_`.
  void SetUp() override {
    Hear(0, Status("p1", v1::WORKER_ROLE_PREFILL));
    Hear(1, Status("d1", v1::WORKER_ROLE_DECODE));
    Hear(2, Status("p2", v1::WORKER_ROLE_PREFILL));
    for (const WorkerTable::WatchPages& watch : Advance().watch_pages) {
      ++watches_;
      if (watch.worker == 2) watch_ = watch;
    }
    table_.OnAssets(now_, "f1", Assets("f1"));
    ProbeAll(absl::OkStatus());
  }
  // A prompt of 40 tokens, whose full pages are 7 and 8. Reports come in between, so that nothing counts as sent.
  Placement PlacePrompt(uint32_t page_tokens = 16) {
    now_ += absl::Seconds(1);
    Hear(0, Status("p1", v1::WORKER_ROLE_PREFILL));
    Hear(1, Status("d1", v1::WORKER_ROLE_DECODE));
    Hear(2, Status("p2", v1::WORKER_ROLE_PREFILL));
    return table_.Place(now_, {"m", "f1", "", 40, 50, {}, {7, 8}, page_tokens, {}}).placement;
  }
  // Of as many placements as there are pairs, how many go to p2.
  int TimesAtP2(uint32_t page_tokens = 16) {
    int times = 0;
    for (int i = 0; i < 2; ++i) times += PlacePrompt(page_tokens).prefill.key.id == "p2" ? 1 : 0;
    return times;
  }

  int watches_ = 0;
  WorkerTable::WatchPages watch_{};
};

TEST_F(PagesTest, EveryWorkerIsWatchedOnce) {
  EXPECT_EQ(watches_, 3);
  EXPECT_TRUE(Advance(absl::Seconds(1)).watch_pages.empty());
}

TEST_F(PagesTest, APromptGoesWhereItsPagesAre) {
  EXPECT_EQ(TimesAtP2(), 1) << "in turn";
  table_.OnPages(watch_, PagesOf(true, {7}));
  EXPECT_EQ(TimesAtP2(), 2);
  EXPECT_EQ(PlacePrompt().cached_tokens, 16u);
  table_.OnPages(watch_, PagesOf(false, {8}));
  EXPECT_EQ(PlacePrompt().cached_tokens, 32u);
  EXPECT_EQ(TimesAtP2(/*page_tokens=*/32), 1) << "pages of another size have other names";
}

TEST_F(PagesTest, WhatIsNotWatchedAnyMoreIsNotKnown) {
  table_.OnPages(watch_, PagesOf(true, {7, 8}));
  EXPECT_EQ(TimesAtP2(), 2);
  table_.OnPagesEnded(now_, watch_, absl::UnavailableError("gone"));
  EXPECT_EQ(TimesAtP2(), 1);
  const std::vector<WorkerTable::WatchPages> again = Advance(absl::Seconds(2)).watch_pages;
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].worker, 2u);
  table_.OnPages(watch_, PagesOf(true, {7, 8}));
  EXPECT_EQ(TimesAtP2(), 1) << "of the watch before";
  table_.OnPages(again[0], PagesOf(true, {7, 8}));
  EXPECT_EQ(TimesAtP2(), 2);
}

TEST_F(PagesTest, ARestartedWorkerHasNoneAndAWatchOfItsOwn) {
  table_.OnPages(watch_, PagesOf(true, {7, 8}));
  Hear(2, Status("p2", v1::WORKER_ROLE_PREFILL, /*epoch=*/2));
  const std::vector<WorkerTable::WatchPages> again = Advance().watch_pages;
  ASSERT_EQ(again.size(), 1u);
  table_.OnPages(watch_, PagesOf(true, {7, 8}));
  table_.OnPagesEnded(now_, watch_, absl::UnavailableError("gone"));
  EXPECT_TRUE(Advance(absl::Seconds(2)).watch_pages.empty()) << "the one before ended";
  ProbeAll(absl::OkStatus());
  EXPECT_EQ(PlacePrompt().cached_tokens, 0u);
}

TEST_F(PagesTest, AWorkerThatDoesNotTellIsReportedOnce) {
  const auto reports = [&](WorkerTable::WatchPages watch) {
    table_.OnPagesEnded(now_, watch, absl::UnimplementedError("WatchPages"));
    int count = 0;
    for (const WorkerTable::Event& event : Advance().events) count += event.name == "worker.pages_unknown" ? 1 : 0;
    return count;
  };
  EXPECT_EQ(reports(watch_), 1);
  const std::vector<WorkerTable::WatchPages> again = Advance(absl::Seconds(2)).watch_pages;
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(reports(again[0]), 0);
}

TEST_F(PagesTest, OnlyThePrefixPolicyFollowsPages) {
  WorkerTable table({{"a:1"}, kPeerTimeout, 0, {PlacementPolicy::kLeastLoaded, 512}});
  table.OnStatus(now_, 0, Status("b1", v1::WORKER_ROLE_BOTH), [] { return nullptr; });
  EXPECT_TRUE(table.Advance(now_).watch_pages.empty());
  table.OnAssets(now_, "f1", Assets("f1"));
  for (const Placement& probe : table.Advance(now_).probe) table.OnProbed(now_, probe.pair, absl::OkStatus());
  ASSERT_OK_AND_ASSIGN(const ServedModel model, table.FindModel("m"));
  EXPECT_EQ(model.limits.page_tokens, 0u);
  ASSERT_OK_AND_ASSIGN(const ServedModel followed, table_.FindModel("m"));
  EXPECT_EQ(followed.limits.page_tokens, 16u);
}

}  // namespace
}  // namespace baton::router
