// SPDX-License-Identifier: Apache-2.0
#include "router/pair_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

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

size_t PairsOf(const PairSet& set, size_t worker) {
  return std::ranges::count_if(
      set.pairs(), [&](const PairSet::Pair& pair) { return pair.prefill == worker || pair.decode == worker; });
}

TEST(PairSetTest, AFewWorkersAreAllPaired) {
  PairSet set(7);
  EXPECT_THAT(set.Complete({Range(0, 3), Range(3, 4), {6}}, Fits), IsEmpty());
  EXPECT_THAT(set.pairs(), SizeIs(3 * 4 + 1)) << "a worker of role both is a pair with itself, too";
  set.Complete({Range(0, 3), Range(3, 4), {6}}, Fits);
  EXPECT_THAT(set.pairs(), SizeIs(13)) << "each pair once";
}

TEST(PairSetTest, AmongManyWorkersEachHasItsPartnersAndNoMore) {
  PairSet set(200);
  set.Complete({Range(0, 100), Range(100, 100), {}}, Fits);
  EXPECT_THAT(set.pairs(), SizeIs(100 * PairSet::kProvenPartners));
  for (size_t worker = 0; worker < 200; ++worker) EXPECT_EQ(PairsOf(set, worker), PairSet::kProvenPartners) << worker;
}

TEST(PairSetTest, WorkersThatLosePartnersGetOthers) {
  PairSet set(21);
  set.Complete({{0}, Range(1, 20), {}}, Fits);
  EXPECT_EQ(PairsOf(set, 0), 20u) << "each decode worker needs a partner";
  set.ForgetPairsOf(0);
  EXPECT_THAT(set.pairs(), IsEmpty());
  PairSet more(30);
  more.Complete({Range(0, 10), Range(10, 20), {}}, Fits);
  more.ForgetPairsOf(0);
  more.Complete({Range(1, 9), Range(10, 20), {}}, Fits);
  for (size_t decode = 10; decode < 30; ++decode) EXPECT_GE(PairsOf(more, decode), PairSet::kProvenPartners) << decode;
}

TEST(PairSetTest, PlacementMayAskForMorePairsUpToALimit) {
  PairSet set(100);
  set.Complete({{0}, {1}, {}}, Fits);
  set.Want(0, 1);
  EXPECT_THAT(set.pairs(), SizeIs(1)) << "held already";
  for (size_t decode = 2; decode < 100; ++decode) set.Want(0, decode);
  EXPECT_EQ(PairsOf(set, 0), PairSet::kMaxPartners);
}

TEST(PairSetTest, FewProbesRunAtATime) {
  PairSet set(40);
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

TEST(PairSetTest, APairGoesThroughItsStates) {
  PairSet set(2);
  set.Complete({{0}, {1}, {}}, Fits);
  SteadyTime now;
  const uint64_t id = set.pairs()[0].id;
  EXPECT_EQ(set.OnProbed(now, id, absl::OkStatus()), nullptr) << "no probe runs";
  EXPECT_EQ(set.OnBroken(now, id, "why"), nullptr) << "not ready";
  ASSERT_THAT(set.StartProbes(now, Always), SizeIs(1));
  ASSERT_NE(set.OnProbed(now, id, absl::UnavailableError("no route")), nullptr);
  EXPECT_EQ(set.Find(id)->state, State::kFailed);
  for (int again = 0; again < 10; ++again) {
    EXPECT_THAT(set.StartProbes(now, Always), IsEmpty());
    now += absl::Seconds(5);
    ASSERT_THAT(set.StartProbes(now, Always), SizeIs(1));
    EXPECT_EQ(set.OnProbed(now, id, absl::UnavailableError("no route")), nullptr) << "the same failure, told once";
  }
  now += absl::Seconds(5);
  ASSERT_THAT(set.StartProbes(now, Always), SizeIs(1));
  ASSERT_NE(set.OnProbed(now, id, absl::OkStatus()), nullptr);
  EXPECT_EQ(set.Find(id)->state, State::kReady);
  EXPECT_EQ(set.Find(id)->detail, "");
  ASSERT_NE(set.OnBroken(now, id, "peer lost"), nullptr);
  EXPECT_EQ(set.Find(id)->state, State::kUnprobed);
  EXPECT_EQ(set.Find(id)->detail, "peer lost");
  EXPECT_THAT(set.StartProbes(now, Always), IsEmpty());
  now += absl::Seconds(1);
  EXPECT_THAT(set.StartProbes(now, Always), SizeIs(1)) << "a short backoff: the pair had been ready";
}

TEST(PairSetTest, AMismatchIsShownWhileAWorkerHasNoPartner) {
  PairSet set(4);
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
