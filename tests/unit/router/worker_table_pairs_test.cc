// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "router/worker_table.h"
#include "tests/status_matchers.h"
#include "worker_table_fixture.h"

namespace baton::router {
namespace {

using testing::Fails;

TEST_F(WorkerTableTest, APairServesOnlyAfterItsProbe) {
  Hear(0, StatusOf("p1", v1::WORKER_ROLE_PREFILL));
  Hear(1, StatusOf("d1", v1::WORKER_ROLE_DECODE));
  const WorkerTable::Effects first = Advance();
  ASSERT_EQ(first.fetch.size(), 1u) << "one fetch per fingerprint";
  EXPECT_EQ(first.fetch[0].fingerprint, "f1");
  EXPECT_TRUE(first.probe.empty()) << "not before the tokenizer is there";
  table_.OnAssets(now_, "f1", AssetsNamed("f1"));
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
  Hear(0, StatusOf("p1", v1::WORKER_ROLE_PREFILL));
  Hear(1, StatusOf("d1", v1::WORKER_ROLE_DECODE));
  Advance();
  table_.OnAssets(now_, "f1", AssetsNamed("f1"));
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
  Hear(0, StatusOf("d1", v1::WORKER_ROLE_BOTH));
  Advance();
  table_.OnAssets(now_, "f1", AssetsNamed("f1"));
  EXPECT_EQ(ProbeAll(absl::OkStatus()), 1);
  const PlacementResult placed = Place();
  ASSERT_EQ(placed.kind, PlacementResult::Kind::kPlaced);
  EXPECT_TRUE(placed.placement.local);
}

TEST_F(WorkerTableTest, WorkersOfDifferentNumericsAreNeverPaired) {
  BringUpPair();
  v1::WorkerStatus other = StatusOf("d2", v1::WORKER_ROLE_DECODE);
  other.mutable_model()->set_numerics_id("n2");
  Hear(2, other);
  EXPECT_TRUE(Advance().probe.empty());
  EXPECT_EQ(PairOf("p1", "d2").state(), "mismatch");
  EXPECT_EQ(Place({{"d1", 1}}).kind, PlacementResult::Kind::kOnlyAvoided);
}

TEST_F(WorkerTableTest, WhyLiveWorkersServeNothingIsSaid) {
  Hear(0, StatusOf("p1", v1::WORKER_ROLE_PREFILL));
  v1::WorkerStatus other = StatusOf("d1", v1::WORKER_ROLE_DECODE);
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

TEST_F(WorkerTableTest, AProbeOfAPairThatIsGoneCountsForNothing) {
  Hear(0, StatusOf("p1", v1::WORKER_ROLE_PREFILL));
  Hear(1, StatusOf("d1", v1::WORKER_ROLE_DECODE));
  Advance();
  table_.OnAssets(now_, "f1", AssetsNamed("f1"));
  const std::vector<Placement> old = Advance().probe;
  Hear(1, StatusOf("d1", v1::WORKER_ROLE_DECODE, /*epoch=*/2));
  table_.OnProbed(now_, old.at(0).pair, absl::OkStatus());
  EXPECT_FALSE(table_.ready());
}

TEST_F(WorkerTableTest, ABrokenPairIsProbedBeforeItServesAgain) {
  BringUpPair();
  table_.OnPairBroken(now_, Place().placement.pair, "peer lost");
  EXPECT_EQ(PairOf("p1", "d1").state(), "unprobed");
  EXPECT_EQ(Place().kind, PlacementResult::Kind::kNoneReady);
  now_ += absl::Seconds(1);
  EXPECT_EQ(ProbeAll(absl::OkStatus()), 1);
  EXPECT_EQ(Place().kind, PlacementResult::Kind::kPlaced);
}

TEST_F(WorkerTableTest, WorkSentCountsUntilAReportMustHaveIt) {
  BringUpPair();
  Hear(2, StatusOf("p2", v1::WORKER_ROLE_PREFILL));
  EXPECT_EQ(ProbeAll(absl::OkStatus()), 1);
  // No report comes between: the two must share the load all the same.
  std::map<std::string, int> placed;
  for (int i = 0; i < 6; ++i) ++placed[Place().placement.prefill.key.id];
  EXPECT_EQ(placed["p1"], 3);
  EXPECT_EQ(placed["p2"], 3);
  // p1 reports, late enough to know of all it was sent, that nothing waits there.
  now_ += absl::Seconds(1);
  Hear(0, StatusOf("p1", v1::WORKER_ROLE_PREFILL));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Place().placement.prefill.key.id, "p1");
}

// Prefill workers w0, w1, ... and as many decode workers behind them: more than a worker is paired with from the start.
class ManyWorkersTest : public ::testing::Test {
 protected:
  static constexpr size_t kPrefills = PairSet::kPartners + 1;
  static constexpr size_t kWorkers = 2 * kPrefills;

  // Only w0 has no queue, and only the decode worker `idle` has a batch slot.
  void HearAll(size_t idle) {
    for (size_t i = 0; i < kWorkers; ++i) {
      v1::WorkerStatus status =
          StatusOf(absl::StrCat("w", i), i < kPrefills ? v1::WORKER_ROLE_PREFILL : v1::WORKER_ROLE_DECODE);
      if (i >= kPrefills) status.set_handoff_address("there:1");
      if (i >= kPrefills && i != idle) status.mutable_load()->set_running_sequences(8);
      if (i > 0) status.mutable_load()->set_waiting_tokens(100'000);
      table_.OnStatus(now_, i, status, [] { return nullptr; });
    }
  }
  size_t ProbeAll() {
    const std::vector<Placement> probes = table_.Advance(now_).probe;
    for (const Placement& probe : probes) table_.OnProbed(now_, probe.pair, absl::OkStatus());
    return probes.size();
  }
  Placement Place(size_t idle) {
    now_ += absl::Seconds(1);  // nothing counts as sent after the next report
    HearAll(idle);
    return table_.Place(now_, {"m", "f1", "", 10, 20, {}, {}, 0, false}).placement;
  }

  size_t large_ = 0;
  SteadyTime now_;
  WorkerTable table_ = LargeTable(kWorkers);
};

TEST_F(ManyWorkersTest, APairThatWouldBeSoonerIsProvenAndThenUsed) {
  HearAll(kPrefills);
  table_.Advance(now_);
  table_.OnAssets(now_, "f1", AssetsNamed("f1"));
  while (ProbeAll() > 0) {
  }
  EXPECT_EQ(table_.ready_pairs(), kPrefills * PairSet::kPartners) << "of " << kPrefills * kPrefills;
  for (size_t idle = kPrefills; idle < kWorkers; ++idle) {
    Place(idle);
    ProbeAll();
    const Placement placed = Place(idle);
    EXPECT_EQ(placed.prefill.key.id, "w0");
    EXPECT_EQ(placed.decode.key.id, absl::StrCat("w", idle));
  }
  EXPECT_EQ(table_.ready_pairs(), kPrefills * PairSet::kPartners + 1) << "one pair was lacking";
}

TEST_F(ManyWorkersTest, ASequenceThatOnePairCanTakeIsNotRefused) {
  // w0 and the last decode worker have large pools. From the start they are partners of others.
  const auto hear_all = [&] {
    for (size_t i = 0; i < kWorkers; ++i) {
      v1::WorkerStatus status =
          StatusOf(absl::StrCat("w", i), i < kPrefills ? v1::WORKER_ROLE_PREFILL : v1::WORKER_ROLE_DECODE);
      if (i >= kPrefills) status.set_handoff_address("there:1");
      status.mutable_capacity()->set_pages_total(i == 0 || i == large_ ? 50 : 10);
      table_.OnStatus(now_, i, status, [] { return nullptr; });
    }
  };
  hear_all();
  table_.Advance(now_);
  table_.OnAssets(now_, "f1", AssetsNamed("f1"));
  while (ProbeAll() > 0) {
  }
  // The decode worker that is no partner of w0 becomes the large one.
  v1::GetStatusResponse response;
  table_.Describe(now_, response);
  for (size_t decode = kPrefills; decode < kWorkers; ++decode) {
    const std::string id = absl::StrCat("w", decode);
    const bool partner = std::ranges::any_of(response.pairs(), [&](const v1::PairInfo& pair) {
      return pair.prefill_worker() == "w0" && pair.decode_worker() == id;
    });
    if (!partner) large_ = decode;
  }
  ASSERT_NE(large_, 0u);
  hear_all();
  ASSERT_OK_AND_ASSIGN(const ServedModel model, table_.FindModel("m"));
  EXPECT_EQ(model.limits.max_sequence_tokens, 49u * 16);
  const PlacementQuery query{"m", "f1", "", 10, 49 * 16, {}, {}, 0, false};
  EXPECT_EQ(table_.Place(now_, query).kind, PlacementResult::Kind::kNoneReady) << "not refused, but not proven yet";
  EXPECT_EQ(ProbeAll(), 1u);
  const PlacementResult placed = table_.Place(now_, query);
  ASSERT_EQ(placed.kind, PlacementResult::Kind::kPlaced);
  EXPECT_EQ(placed.placement.decode.key.id, absl::StrCat("w", large_));
}

TEST_F(ManyWorkersTest, PartnersOfDrainingWorkersGetOthers) {
  HearAll(kPrefills);
  table_.Advance(now_);
  table_.OnAssets(now_, "f1", AssetsNamed("f1"));
  while (ProbeAll() > 0) {
  }
  for (size_t decode = kPrefills; decode + 1 < kWorkers; ++decode) {
    v1::WorkerStatus draining = StatusOf(absl::StrCat("w", decode), v1::WORKER_ROLE_DECODE);
    draining.set_state(v1::WORKER_STATE_DRAINING);
    table_.OnStatus(now_, decode, draining, [] { return nullptr; });
  }
  while (ProbeAll() > 0) {
  }
  EXPECT_EQ(table_.ready_pairs(), kPrefills) << "every prefill worker with the decode worker that is left";
}

TEST_F(ManyWorkersTest, ProbesStartAFewAtATime) {
  HearAll(kPrefills);
  table_.Advance(now_);
  table_.OnAssets(now_, "f1", AssetsNamed("f1"));
  EXPECT_EQ(table_.Advance(now_).probe.size(), PairSet::kMaxProbes);
  EXPECT_TRUE(table_.Advance(now_).probe.empty());
}

TEST_F(WorkerTableTest, AMigrationNeedsADecodeWorkerAndNothingElse) {
  BringUpPair();
  v1::WorkerStatus other = StatusOf("d2", v1::WORKER_ROLE_DECODE);
  other.set_handoff_address("there:1");
  Hear(2, other);
  PlacementQuery query{"m", "f1", "n1", 10, 20, {{"d1", 1}}, {}, 0, /*migrates=*/true};
  PlacementResult placed = table_.Place(now_, query);
  ASSERT_EQ(placed.kind, PlacementResult::Kind::kPlaced);
  EXPECT_EQ(placed.placement.decode.key.id, "d2");
  EXPECT_EQ(placed.placement.pair, 0u);
  EXPECT_FALSE(placed.placement.local);

  Advance(kPeerTimeout + absl::Milliseconds(1));
  Hear(2, other);
  EXPECT_EQ(StateOf(0), "lost") << "no prefill worker is left";
  EXPECT_EQ(table_.Place(now_, query).kind, PlacementResult::Kind::kPlaced);
  query.avoid.push_back({"d2", 1});
  EXPECT_NE(table_.Place(now_, query).kind, PlacementResult::Kind::kPlaced);
  query.avoid.clear();
  query.numerics_id = "n2";
  EXPECT_NE(table_.Place(now_, query).kind, PlacementResult::Kind::kPlaced);
}

TEST_F(WorkerTableTest, ASlowPathIsAvoided) {
  BringUpPair();
  v1::WorkerStatus status = StatusOf("p1", v1::WORKER_ROLE_PREFILL);
  status.mutable_capacity()->set_kv_token_bytes(1 << 20);
  Hear(0, status);
  Hear(2, StatusOf("d2", v1::WORKER_ROLE_DECODE));
  ProbeAll(absl::OkStatus());
  const auto handed_over = [&](const std::string& decode, double seconds) {
    v1::HandedOver measured;
    measured.set_kv_bytes(1 << 30);
    measured.set_transfer_seconds(seconds);
    measured.set_transfer_exposed_seconds(seconds);
    for (int i = 0; i < 2; ++i) {
      const Placement placed = Place().placement;
      if (placed.decode.key.id == decode) table_.OnHandedOver(now_, placed.pair, measured);
    }
  };
  handed_over("d1", 0.1);
  handed_over("d2", 10);
  for (int i = 0; i < 4; ++i) {
    now_ += absl::Seconds(1);
    Hear(0, status);
    Hear(1, StatusOf("d1", v1::WORKER_ROLE_DECODE));
    Hear(2, StatusOf("d2", v1::WORKER_ROLE_DECODE));
    EXPECT_EQ(Place().placement.decode.key.id, "d1");
  }
}

// The table keeps the candidates of a model between placements: no change of a worker or a pair may be overlooked.
TEST_F(WorkerTableTest, EachPlacementIsOnAPairThatIsReadyNow) {
  std::mt19937_64 random(1);
  std::vector<v1::WorkerStatus> statuses = {
      StatusOf("p1", v1::WORKER_ROLE_PREFILL), StatusOf("p2", v1::WORKER_ROLE_PREFILL),
      StatusOf("d1", v1::WORKER_ROLE_DECODE), StatusOf("b1", v1::WORKER_ROLE_BOTH)};
  for (size_t worker = 0; worker < statuses.size(); ++worker) Hear(worker, statuses[worker]);
  Advance();
  table_.OnAssets(now_, "f1", AssetsNamed("f1"));
  ProbeAll(absl::OkStatus());
  int placements = 0;
  for (int round = 0; round < 5000; ++round) {
    const size_t worker = random() % statuses.size();
    v1::WorkerStatus& status = statuses[worker];
    switch (random() % 8) {
      case 0: table_.OnStreamEnded(now_, worker, absl::OkStatus()); break;
      case 1:
        status.set_state(random() % 2 == 0 ? v1::WORKER_STATE_DRAINING : v1::WORKER_STATE_SERVING);
        Hear(worker, status);
        break;
      case 2:
        status.set_epoch(status.epoch() + 1);
        Hear(worker, status);
        break;
      case 3:
        status.mutable_model()->set_numerics_id(random() % 2 == 0 ? "n1" : "n2");
        Hear(worker, status);
        break;
      case 4:
        if (const PlacementResult placed = Place(); placed.kind == PlacementResult::Kind::kPlaced) {
          table_.OnPairBroken(now_, placed.placement.pair, "broken");
        }
        break;
      case 5: ProbeAll(absl::OkStatus()); break;
      case 6: Advance(random() % 20 == 0 ? 2 * kPeerTimeout : absl::Milliseconds(100)); break;
      default: Hear(worker, status);
    }
    const PlacementResult placed = Place();
    ASSERT_EQ(placed.kind == PlacementResult::Kind::kPlaced, table_.ready()) << "round " << round;
    if (placed.kind != PlacementResult::Kind::kPlaced) continue;
    ++placements;
    const Placement& placement = placed.placement;
    ASSERT_EQ(PairOf(placement.prefill.key.id, placement.decode.key.id).state(), "ready") << "round " << round;
  }
  EXPECT_GT(placements, 300);
}

}  // namespace
}  // namespace baton::router
