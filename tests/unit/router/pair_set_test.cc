// SPDX-License-Identifier: Apache-2.0
#include "router/pair_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

namespace baton::router {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
using State = PairSet::State;

std::string Fits(size_t /*prefill*/, size_t /*decode*/) { return ""; }
bool Always(const PairSet::Pair& /*pair*/) { return true; }

std::vector<size_t> Range(size_t from, size_t count) {
  std::vector<size_t> workers(count);
  std::iota(workers.begin(), workers.end(), from);
  return workers;
}

v1::HandedOver Measured(uint64_t bytes, double transfer_seconds, double exposed_seconds) {
  v1::HandedOver measured;
  measured.set_kv_bytes(bytes);
  measured.set_transfer_seconds(transfer_seconds);
  measured.set_transfer_exposed_seconds(exposed_seconds);
  return measured;
}

size_t PairsOf(const PairSet& set, size_t worker) {
  return std::ranges::count_if(
      set.pairs(), [&](const PairSet::Pair& pair) { return pair.prefill == worker || pair.decode == worker; });
}

TEST(PairSetTest, AFewWorkersAreAllPaired) {
  PairSet set;
  EXPECT_THAT(set.Complete({Range(0, 3), Range(3, 4), {6}}, Fits), IsEmpty());
  EXPECT_THAT(set.pairs(), SizeIs(3 * 4 + 1)) << "a worker of role both is a pair with itself, too";
  set.Complete({Range(0, 3), Range(3, 4), {6}}, Fits);
  EXPECT_THAT(set.pairs(), SizeIs(13)) << "each pair once";
}

TEST(PairSetTest, AmongManyWorkersEachHasItsPartnersAndNoMore) {
  PairSet set;
  set.Complete({Range(0, 100), Range(100, 100), {}}, Fits);
  EXPECT_THAT(set.pairs(), SizeIs(100 * PairSet::kPartners));
  for (size_t worker = 0; worker < 200; ++worker) EXPECT_EQ(PairsOf(set, worker), PairSet::kPartners) << worker;
}

TEST(PairSetTest, WorkersThatLosePartnersGetOthers) {
  PairSet set;
  set.Complete({{0}, Range(1, 20), {}}, Fits);
  EXPECT_EQ(PairsOf(set, 0), 20u) << "each decode worker needs a partner";
  set.ForgetPairsOf(0);
  EXPECT_THAT(set.pairs(), IsEmpty());
  PairSet more;
  more.Complete({Range(0, 10), Range(10, 20), {}}, Fits);
  more.ForgetPairsOf(0);
  more.Complete({Range(1, 9), Range(10, 20), {}}, Fits);
  for (size_t decode = 10; decode < 30; ++decode) EXPECT_GE(PairsOf(more, decode), PairSet::kPartners) << decode;
}

TEST(PairSetTest, PairsOnDemandReplaceThePairThatWasUsedLeastRecently) {
  constexpr size_t kWorkers = PairSet::kMaxOnDemand + 10;
  PairSet set;
  SteadyTime now;
  set.Complete({{0}, {1}, {}}, Fits);
  set.Want(now, 0, 1);
  EXPECT_THAT(set.pairs(), SizeIs(1)) << "held already";
  for (size_t i = 0; i < PairSet::kMaxOnDemand; ++i) set.Want(now += absl::Seconds(1), 0, 2 + i);
  EXPECT_THAT(set.pairs(), SizeIs(1 + PairSet::kMaxOnDemand));
  set.NoteUse(now += absl::Seconds(1), set.pairs()[1].id);
  const size_t oldest = set.pairs()[2].decode;
  set.Want(now += absl::Seconds(1), 0, kWorkers - 1);
  EXPECT_THAT(set.pairs(), SizeIs(1 + PairSet::kMaxOnDemand));
  EXPECT_TRUE(set.Holds(0, 1)) << "not on demand";
  EXPECT_TRUE(set.Holds(0, 2)) << "used of late";
  EXPECT_FALSE(set.Holds(0, oldest));
  EXPECT_TRUE(set.Holds(0, kWorkers - 1));
}

TEST(PairSetTest, FewProbesRunAtATime) {
  PairSet set;
  set.Complete({Range(0, 20), Range(20, 20), {}}, Fits);
  const SteadyTime now;
  const std::vector<PairSet::Pair> first = set.StartProbes(now, Always);
  EXPECT_THAT(first, SizeIs(PairSet::kMaxProbes));
  EXPECT_THAT(set.StartProbes(now, Always), IsEmpty());
  set.OnProbed(now, first[0].id, absl::OkStatus());
  set.OnProbed(now, first[1].id, absl::UnavailableError("no route"));
  const std::vector<PairSet::Pair> next = set.StartProbes(now, Always);
  EXPECT_THAT(next, SizeIs(2));
  EXPECT_NE(next[0].id, first[1].id) << "a failed probe waits for its backoff";
  EXPECT_THAT(set.StartProbes(now, [](const PairSet::Pair&) { return false; }), IsEmpty());
}

TEST(PairSetTest, AWorkerThatHangsDoesNotStopTheProbesOfOthers) {
  PairSet set;
  set.Complete({Range(0, 5), Range(5, 55), {}}, Fits);
  SteadyTime now;
  std::vector<PairSet::Pair> hanging;
  // Prefill worker 0 never answers; the others answer at once.
  size_t ready = 0;
  for (int round = 0; round < 200; ++round) {
    for (const PairSet::Pair& probe : set.StartProbes(now, Always)) {
      if (probe.prefill == 0) {
        hanging.push_back(probe);
      } else {
        set.OnProbed(now, probe.id, absl::OkStatus());
        ++ready;
      }
    }
  }
  EXPECT_THAT(hanging, SizeIs(PairSet::kMaxProbesOfAWorker));
  EXPECT_EQ(ready, set.pairs().size() - PairsOf(set, 0));
}

TEST(PairSetTest, TheLongestDueProbeGoesFirst) {
  PairSet set;
  set.Complete({{0, 1}, Range(2, 10), {}}, Fits);
  SteadyTime now;
  // Each probe fails at once, and every backoff passes. If the front of the list went first, the last pairs would wait.
  absl::flat_hash_set<uint64_t> probed;
  for (int round = 0; round < 3; ++round) {
    for (const PairSet::Pair& probe : set.StartProbes(now, Always)) {
      probed.insert(probe.id);
      set.OnProbed(now, probe.id, absl::UnavailableError("no route"));
    }
    now += absl::Seconds(10);
  }
  EXPECT_EQ(probed.size(), set.pairs().size());
}

TEST(PairSetTest, WorkersWithoutRoomAreNoFailure) {
  PairSet set;
  set.Complete({{0}, {1}, {}}, Fits);
  SteadyTime now;
  for (int again = 0; again < 5; ++again) {
    ASSERT_THAT(set.StartProbes(now, Always), SizeIs(1)) << again;
    EXPECT_EQ(set.OnProbed(now, set.pairs()[0].id, absl::ResourceExhaustedError("full")), nullptr);
    EXPECT_EQ(set.pairs()[0].state, State::kUnprobed);
    EXPECT_THAT(set.StartProbes(now, Always), IsEmpty());
    now += absl::Seconds(1);
  }
}

TEST(PairSetTest, APairThatBreaksAgainAndAgainIsProbedLessOften) {
  PairSet set;
  set.Complete({{0}, {1}, {}}, Fits);
  SteadyTime now;
  const uint64_t id = set.pairs()[0].id;
  absl::Duration before;
  for (int again = 0; again < 4; ++again) {
    now += absl::Minutes(1);
    ASSERT_THAT(set.StartProbes(now, Always), SizeIs(1));
    set.OnProbed(now, id, absl::OkStatus());
    ASSERT_NE(set.OnBroken(now, id, "peer lost"), nullptr);
    const absl::Duration delay = set.Find(id)->next_probe - now;
    EXPECT_GT(delay, before);
    before = delay;
  }
  now += absl::Minutes(1);
  ASSERT_THAT(set.StartProbes(now, Always), SizeIs(1));
  set.OnProbed(now, id, absl::OkStatus());
  set.OnHandedOver(now, id, Measured(1 << 20, 0.1, 0.1));
  set.OnBroken(now, id, "peer lost");
  EXPECT_LT(set.Find(id)->next_probe - now, before) << "a handoff had worked";
}

TEST(PairSetTest, AMeasurementOfAPathIsForgottenAfterAMinute) {
  PairSet set;
  set.Complete({{0}, {1}, {}}, Fits);
  SteadyTime now;
  set.OnHandedOver(now, set.pairs()[0].id, Measured(1 << 20, 1, 1));
  EXPECT_GT(PairSet::RecentPath(now + absl::Seconds(59), set.pairs()[0]).bytes_per_second, 0);
  EXPECT_EQ(PairSet::RecentPath(now + absl::Seconds(61), set.pairs()[0]).bytes_per_second, 0);
  now += absl::Minutes(2);
  set.OnHandedOver(now, set.pairs()[0].id, Measured(1 << 30, 1, 1));
  EXPECT_EQ(PairSet::RecentPath(now, set.pairs()[0]).bytes_per_second, 1 << 30) << "not mixed with the old figure";
}

TEST(PairSetTest, APairGoesThroughItsStates) {
  PairSet set;
  set.Complete({{0}, {1}, {}}, Fits);
  SteadyTime now;
  const uint64_t id = set.pairs()[0].id;
  EXPECT_EQ(set.OnProbed(now, id, absl::OkStatus()), nullptr) << "no probe runs";
  EXPECT_EQ(set.OnBroken(now, id, "why"), nullptr) << "not ready";
  ASSERT_THAT(set.StartProbes(now, Always), SizeIs(1));
  ASSERT_NE(set.OnProbed(now, id, absl::UnavailableError("no route")), nullptr);
  EXPECT_EQ(set.Find(id)->state, State::kFailed);
  for (int again = 0; again < 10; ++again) {
    EXPECT_EQ(set.Find(id)->next_probe - now, std::min(absl::Milliseconds(100) * (1 << again), absl::Seconds(5)));
    EXPECT_THAT(set.StartProbes(now, Always), IsEmpty());
    now += absl::Seconds(5);
    ASSERT_THAT(set.StartProbes(now, Always), SizeIs(1));
    EXPECT_EQ(set.OnProbed(now, id, absl::UnavailableError(absl::StrCat("no route ", again))), nullptr)
        << "a failure of the same kind is told once";
  }
  now += absl::Seconds(5);
  ASSERT_THAT(set.StartProbes(now, Always), SizeIs(1));
  ASSERT_NE(set.OnProbed(now, id, absl::OkStatus()), nullptr);
  EXPECT_EQ(set.Find(id)->state, State::kReady);
  EXPECT_EQ(set.Find(id)->detail, "");
  set.OnHandedOver(now, id, Measured(0, 0, 0));
  ASSERT_NE(set.OnBroken(now, id, "peer lost"), nullptr);
  EXPECT_EQ(set.Find(id)->state, State::kUnprobed);
  EXPECT_EQ(set.Find(id)->detail, "peer lost");
  EXPECT_THAT(set.StartProbes(now, Always), IsEmpty());
  now += absl::Seconds(1);
  EXPECT_THAT(set.StartProbes(now, Always), SizeIs(1)) << "a short backoff: the pair had been ready";
  EXPECT_NE(set.OnProbed(now, id, absl::UnavailableError("no route")), nullptr) << "news: a probe has passed meanwhile";
}

TEST(PairSetTest, AMismatchIsShownWhileAWorkerHasNoPartner) {
  PairSet set;
  const auto even_with_even = [](size_t prefill, size_t decode) -> std::string {
    return prefill % 2 == decode % 2 ? "" : "odd";
  };
  const std::vector<PairSet::Pair> first = set.Complete({{0}, {1}, {}}, even_with_even);
  ASSERT_THAT(first, SizeIs(1));
  EXPECT_EQ(first[0].detail, "odd");
  EXPECT_EQ(set.pairs()[0].state, State::kMismatch);
  EXPECT_THAT(set.Complete({{0}, {1}, {}}, even_with_even), IsEmpty()) << "told once";
  EXPECT_THAT(set.StartProbes({}, Always), IsEmpty());
  // 0 finds a partner. 1 has none still.
  EXPECT_THAT(set.Complete({{0}, {1, 2}, {}}, even_with_even), IsEmpty());
  EXPECT_THAT(set.pairs(), SizeIs(2));
  EXPECT_THAT(set.Complete({{0, 3}, {1, 2}, {}}, even_with_even), IsEmpty());
  EXPECT_THAT(set.pairs(), SizeIs(2)) << "each worker has a partner";
  EXPECT_TRUE(std::ranges::none_of(set.pairs(), [](const auto& pair) { return pair.state == State::kMismatch; }));
}

}  // namespace
}  // namespace baton::router
