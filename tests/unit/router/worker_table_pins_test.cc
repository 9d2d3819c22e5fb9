// SPDX-License-Identifier: Apache-2.0
// Pinned requests: which pins are refused, and where the others are placed.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/status_matchers.h"
#include "worker_table_fixture.h"

namespace baton::router {
namespace {

using testing::Fails;

RequestSpec SpecFor(Pin pin) {
  RequestSpec spec;
  spec.model = "m";
  spec.assets_fingerprint = "f1";
  spec.prompt = std::vector<TokenId>(10, 0);
  spec.sampling.set_max_tokens(10);
  spec.pin = std::move(pin);
  return spec;
}

PlacementQuery QueryFor(Pin pin) {
  PlacementQuery query{"m", "f1", "", 10, 20, {}, {}, 0, {}};
  query.pin = std::move(pin);
  return query;
}

// p1 and d1 with a ready pair, b1 of role both, and another model's or numerics id's worker at the last address.
class PinTest : public WorkerTableTest {
 protected:
  PinTest() {
    BringUpPair();
    Hear(2, StatusOf("b1", v1::WORKER_ROLE_BOTH));
    ProbeAll(absl::OkStatus());
  }
  absl::Status Check(Pin pin) const { return table_.CheckPin(SpecFor(std::move(pin))); }
  PlacementResult PlaceOn(const std::string& prefill, const std::string& decode, std::vector<WorkerKey> avoid = {}) {
    PlacementQuery query = QueryFor({.prefill = prefill, .decode = decode});
    query.avoid = std::move(avoid);
    return table_.Place(now_, query);
  }
};

TEST_F(PinTest, WorkersThatCanNeverServeTheRequestAreRefusedByField) {
  v1::WorkerStatus other = StatusOf("d2", v1::WORKER_ROLE_DECODE);
  other.mutable_model()->set_numerics_id("n2");
  Hear(3, other);
  struct Case {
    Pin pin;
    const char* why;
  };
  const Case cases[] = {
      {{.prefill = "p1", .decode = "d9"}, "pin.decode_worker: d9 is no worker of this router; expected b1, d1, d2"},
      {{.prefill = "p9", .decode = "d1"}, "pin.prefill_worker: p9 is no worker of this router; expected b1, p1"},
      {{.prefill = "p1", .decode = "p1"}, "pin.decode_worker: p1 has role prefill; expected b1, d1, d2"},
      {{.prefill = "d1", .decode = "b1"}, "pin.prefill_worker: d1 has role decode; expected b1, p1"},
      {{.prefill = "b1", .decode = "d1"}, "pin.prefill_worker: b1 has role both, and computes prompts for itself only"},
      {{.prefill = "d1", .decode = "d1"}, "pin.prefill_worker: empty, but d1 computes no prompts"},
      {{.prefill = "p1", .decode = "d2"}, "pin.prefill_worker: p1 has numerics id n1, and d2 has n2"},
      {{.prefill = "p1", .decode = "d1", .migrate_to = "d2", .migrate_after_tokens = 1},
       "pin.migrate_to: d2 has numerics id n2"},
      {{.prefill = "p1", .decode = "d1", .migrate_to = "p1", .migrate_after_tokens = 1},
       "pin.migrate_to: p1 has role prefill"},
  };
  for (const Case& c : cases) EXPECT_TRUE(Fails(Check(c.pin), absl::StatusCode::kInvalidArgument, c.why));

  other = StatusOf("d2", v1::WORKER_ROLE_DECODE);
  other.mutable_model()->set_name("another");
  Hear(3, other);
  EXPECT_TRUE(Fails(Check({.prefill = "p1", .decode = "d2"}), absl::StatusCode::kInvalidArgument,
                    "pin.decode_worker: d2 serves model another, not m"));
  other = StatusOf("d2", v1::WORKER_ROLE_DECODE);
  other.mutable_model()->set_assets_fingerprint("f2");
  Hear(3, other);
  EXPECT_TRUE(Fails(Check({.prefill = "p1", .decode = "d2"}), absl::StatusCode::kInvalidArgument, "tokenizer files"));
  other = StatusOf("d2", v1::WORKER_ROLE_DECODE);
  other.mutable_capacity()->set_pages_total(1);
  Hear(3, other);
  EXPECT_TRUE(Fails(Check({.prefill = "p1", .decode = "d2"}), absl::StatusCode::kInvalidArgument,
                    "pin.decode_worker: d2 holds at most"));
  EXPECT_TRUE(Fails(Check({.prefill = "p1", .decode = "d1", .migrate_to = "d2", .migrate_after_tokens = 1}),
                    absl::StatusCode::kInvalidArgument, "pin.migrate_to: d2 holds at most"));

  EXPECT_OK(Check({.prefill = "p1", .decode = "d1"}));
  EXPECT_OK(Check({.prefill = "p1", .decode = "b1", .migrate_to = "d1", .migrate_after_tokens = 1}));
  EXPECT_OK(Check({.prefill = "b1", .decode = "b1"}));
}

TEST_F(PinTest, AStartingWorkerIsNoMistakeOfTheClient) {
  v1::WorkerStatus starting = StatusOf("d2", v1::WORKER_ROLE_DECODE);
  starting.set_state(v1::WORKER_STATE_STARTING);
  starting.mutable_model()->Clear();
  Hear(3, starting);
  EXPECT_TRUE(Fails(Check({.prefill = "p1", .decode = "d2"}), absl::StatusCode::kUnavailable, "d2 is starting"));
}

TEST_F(PinTest, APinnedRequestGoesToItsPairAndNowhereElse) {
  for (int i = 0; i < 4; ++i) {
    for (const auto& [prefill, decode] : {std::pair{"p1", "d1"}, {"p1", "b1"}, {"b1", "b1"}}) {
      const PlacementResult placed = PlaceOn(prefill, decode);
      ASSERT_EQ(placed.kind, PlacementResult::Kind::kPlaced) << placed.detail;
      EXPECT_EQ(placed.placement.prefill.key.id, prefill);
      EXPECT_EQ(placed.placement.decode.key.id, decode);
      EXPECT_EQ(placed.placement.local, prefill == std::string("b1"));
      EXPECT_NE(placed.placement.pair, 0u);
    }
  }
  EXPECT_EQ(PlaceOn("p1", "d1", {{"d1", 1}}).kind, PlacementResult::Kind::kOnlyAvoided) << "though b1 is free";
}

TEST_F(PinTest, AWorkerThatLeavesIsWaitedFor) {
  Advance(kPeerTimeout + absl::Milliseconds(1));
  EXPECT_EQ(StateOf(1), "lost");
  EXPECT_OK(Check({.prefill = "p1", .decode = "d1"}));
  const PlacementResult lost = PlaceOn("p1", "d1");
  EXPECT_EQ(lost.kind, PlacementResult::Kind::kNoneReady);
  EXPECT_EQ(lost.detail, "the pinned pair p1+d1 cannot serve: p1 is lost");
  Hear(0, StatusOf("p1", v1::WORKER_ROLE_PREFILL));
  EXPECT_EQ(PlaceOn("p1", "d1").detail, "the pinned pair p1+d1 cannot serve: d1 is lost");
  Hear(1, StatusOf("d1", v1::WORKER_ROLE_DECODE));
  EXPECT_EQ(PlaceOn("p1", "d1").detail, "the pinned pair p1+d1 is unprobed");
  ProbeAll(absl::OkStatus());
  EXPECT_EQ(PlaceOn("p1", "d1").kind, PlacementResult::Kind::kPlaced);
}

TEST_F(PinTest, ABrokenPairIsWaitedFor) {
  table_.OnPairBroken(now_, PlaceOn("p1", "d1").placement.pair, "peer lost");
  const PlacementResult broken = PlaceOn("p1", "d1");
  EXPECT_EQ(broken.kind, PlacementResult::Kind::kNoneReady);
  EXPECT_EQ(broken.detail, "the pinned pair p1+d1 is unprobed (peer lost)");
}

TEST_F(PinTest, TheMigrationOfAPinnedRequestGoesToItsTarget) {
  v1::WorkerStatus d2 = StatusOf("d2", v1::WORKER_ROLE_DECODE);
  d2.set_handoff_address("there:1");
  d2.mutable_load()->set_running_sequences(7);  // the busier one
  Hear(3, d2);
  v1::WorkerStatus b1 = StatusOf("b1", v1::WORKER_ROLE_BOTH);
  b1.set_handoff_address("there:2");
  Hear(2, b1);
  PlacementQuery query = QueryFor({.prefill = "p1", .decode = "d1", .migrate_to = "d2", .migrate_after_tokens = 1});
  query.avoid = {{"d1", 1}};
  query.migrates = true;
  const PlacementResult placed = table_.Place(now_, query);
  ASSERT_EQ(placed.kind, PlacementResult::Kind::kPlaced);
  EXPECT_EQ(placed.placement.decode.key.id, "d2");
  query.avoid.push_back({"d2", 1});
  EXPECT_NE(table_.Place(now_, query).kind, PlacementResult::Kind::kPlaced);
}

TEST(PinOfManyWorkersTest, APairThatIsNotHeldIsProvenOnDemand) {
  constexpr size_t kPrefills = PairSet::kPartners + 1;
  SteadyTime now;
  WorkerTable table = LargeTable(2 * kPrefills);
  for (size_t i = 0; i < 2 * kPrefills; ++i) {
    v1::WorkerStatus status =
        StatusOf(absl::StrCat("w", i), i < kPrefills ? v1::WORKER_ROLE_PREFILL : v1::WORKER_ROLE_DECODE);
    table.OnStatus(now, i, status, [] { return nullptr; });
  }
  table.Advance(now);
  table.OnAssets(now, "f1", AssetsNamed("f1"));
  const auto probe_all = [&] {
    const std::vector<Placement> probes = table.Advance(now).probe;
    for (const Placement& probe : probes) table.OnProbed(now, probe.pair, absl::OkStatus());
    return probes.size();
  };
  while (probe_all() > 0) {
  }
  const size_t held = table.ready_pairs();
  ASSERT_LT(held, kPrefills * kPrefills);
  int on_demand = 0;
  for (size_t prefill = 0; prefill < kPrefills; ++prefill) {
    for (size_t decode = kPrefills; decode < 2 * kPrefills; ++decode) {
      const PlacementQuery query =
          QueryFor({.prefill = absl::StrCat("w", prefill), .decode = absl::StrCat("w", decode)});
      PlacementResult placed = table.Place(now, query);
      if (placed.kind == PlacementResult::Kind::kNoneReady) {
        ++on_demand;
        EXPECT_EQ(probe_all(), 1u);
        placed = table.Place(now, query);
      }
      ASSERT_EQ(placed.kind, PlacementResult::Kind::kPlaced) << placed.detail;
      EXPECT_EQ(placed.placement.prefill.key.id, query.pin->prefill);
      EXPECT_EQ(placed.placement.decode.key.id, query.pin->decode);
    }
  }
  EXPECT_EQ(on_demand, kPrefills * kPrefills - held);
}

}  // namespace
}  // namespace baton::router
