// SPDX-License-Identifier: Apache-2.0
#include "router/placement.h"

#include <gtest/gtest.h>

namespace baton::router {
namespace {

WorkerView Worker(const std::string& id) {
  WorkerView worker;
  worker.key = {id, 1};
  worker.prefill_tokens_per_second = 1000;
  worker.max_sequences = 8;
  worker.pages_total = 101;
  worker.pages_free = 101;
  worker.page_tokens = 16;
  worker.max_context_tokens = 4096;
  return worker;
}

PairView Pair(uint64_t id, const std::string& prefill, const std::string& decode) {
  return {id, false, Worker(prefill), Worker(decode)};
}

const PlacementNeed kNeed{100, 200};

TEST(PlacementTest, NothingToChooseFrom) { EXPECT_EQ(ChoosePair({}, {}, kNeed, {}, 0), std::nullopt); }

TEST(PlacementTest, TakesTheShorterQueue) {
  std::vector<PairView> pairs = {Pair(1, "p1", "d1"), Pair(2, "p2", "d1")};
  pairs[0].prefill.waiting_tokens = 500;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, {}, 0), 1u);
  pairs[1].prefill.waiting_tokens = 600;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, {}, 0), 0u);
}

TEST(PlacementTest, AFasterWorkerMayHaveTheLongerQueue) {
  std::vector<PairView> pairs = {Pair(1, "p1", "d1"), Pair(2, "p2", "d1")};
  pairs[0].prefill.waiting_tokens = 1000;
  pairs[0].prefill.prefill_tokens_per_second = 10000;
  pairs[1].prefill.waiting_tokens = 500;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, {}, 0), 0u);
}

TEST(PlacementTest, BeforeAnyWorkerHasMeasuredItsSpeedTheShorterQueueIsTaken) {
  std::vector<PairView> pairs = {Pair(1, "p1", "d1"), Pair(2, "p2", "d1")};
  for (PairView& pair : pairs) pair.prefill.prefill_tokens_per_second = 0;
  pairs[0].prefill.waiting_tokens = 500;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, {}, 0), 1u);
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, {}, 1), 1u);
}

TEST(PlacementTest, AvoidsADecodeWorkerWithoutABatchSlot) {
  std::vector<PairView> pairs = {Pair(1, "p1", "d1"), Pair(2, "p2", "d2")};
  pairs[0].decode.running_sequences = 8;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, {}, 0), 1u);
  pairs[1].prefill.waiting_tokens = 1000;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, {}, 0), 1u) << "a second's queue is shorter than the wait for a slot";
  pairs[0].decode.running_sequences = 7;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, {}, 0), 0u) << "one slot is free";
}

TEST(PlacementTest, AvoidsADecodeWorkerWithoutPagesForThePrompt) {
  std::vector<PairView> pairs = {Pair(1, "p1", "d1"), Pair(2, "p1", "d2")};
  pairs[1].decode.pages_free = 7;  // 100 tokens need 7, and 1 to grow into
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, {}, 1), 0u);
  pairs[1].decode.pages_free = 8;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, {}, 1), 1u);
  pairs[1].decode.pages_free = 7;
  EXPECT_EQ(ChoosePair({}, pairs, {96, 200}, {}, 1), 1u) << "96 tokens fill 6 pages";
}

TEST(PlacementTest, AFullDecodeWorkerIsBetterThanAnEndlessQueue) {
  std::vector<PairView> pairs = {Pair(1, "p1", "d1"), Pair(2, "p2", "d2")};
  pairs[0].decode.pages_free = 0;
  pairs[1].prefill.waiting_tokens = 100000;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, {}, 0), 0u);
}

TEST(PlacementTest, EqualPairsTakeTurns) {
  const std::vector<PairView> pairs = {Pair(2, "p1", "d2"), Pair(1, "p1", "d1")};
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, {}, 0), 1u);  // in the order of their ids
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, {}, 1), 0u);
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, {}, 2), 1u);
}

TEST(PlacementTest, FewerRunningSequencesDecideBetweenEqualTtft) {
  std::vector<PairView> pairs = {Pair(1, "p1", "d1"), Pair(2, "p1", "d2")};
  pairs[0].decode.running_sequences = 3;
  pairs[1].decode.running_sequences = 2;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, {}, 0), 1u);
}

TEST(PlacementTest, NeverTakesAWorkerToAvoid) {
  const std::vector<PairView> pairs = {Pair(1, "p1", "d1"), Pair(2, "p1", "d2")};
  const std::vector<WorkerKey> avoid_decode = {{"d1", 1}};
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, avoid_decode, 0), 1u);
  const std::vector<WorkerKey> avoid_prefill = {{"p1", 1}};
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, avoid_prefill, 0), std::nullopt);
  const std::vector<WorkerKey> the_one_before = {{"d1", 7}};
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, the_one_before, 0), 0u) << "a restarted worker is another worker";
}

TEST(PlacementTest, ASequenceMustFitBothPoolsAndTheContext) {
  PairView pair = Pair(1, "p1", "d1");
  EXPECT_EQ(LargestSequence(pair), 100u * 16) << "the last page is for growth";
  EXPECT_TRUE(Fits(pair, {100, 1600}));
  EXPECT_FALSE(Fits(pair, {100, 1601}));
  pair.prefill.pages_total = 50;
  EXPECT_EQ(LargestSequence(pair), 50u * 16) << "recovery prefills the output too";
  pair.decode.max_context_tokens = 512;
  EXPECT_EQ(LargestSequence(pair), 512u);
  pair.decode.pages_total = 0;
  EXPECT_EQ(LargestSequence(pair), 0u);
}

TEST(PlacementTest, PairsThatAreTooSmallAreLeftOut) {
  std::vector<PairView> pairs = {Pair(1, "p1", "d1"), Pair(2, "p1", "d2")};
  pairs[0].decode.pages_total = 5;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, {}, 0), 1u);
}

TEST(PlacementTest, GoesWhereThePromptsBeginningIs) {
  std::vector<PairView> pairs = {Pair(1, "p1", "d1"), Pair(2, "p2", "d1")};
  pairs[1].prefill.cached_tokens = 80;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, {}, 0), 1u);
  // But not into any queue.
  pairs[1].prefill.waiting_tokens = 81;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, {}, 0), 0u);
}

TEST(PlacementTest, TheLastTokenIsAlwaysComputed) {
  WorkerView worker = Worker("p1");
  EXPECT_EQ(TokensToCompute(worker, kNeed), 100u);
  worker.cached_tokens = 64;
  EXPECT_EQ(TokensToCompute(worker, kNeed), 36u);
  worker.cached_tokens = 112;
  EXPECT_EQ(TokensToCompute(worker, kNeed), 1u);
  EXPECT_EQ(TokensToCompute(worker, {0, 0}), 0u);
}

TEST(PlacementTest, TheDecodeWorkersPagesDecideBetweenEquals) {
  std::vector<PairView> pairs = {Pair(1, "p1", "d1"), Pair(2, "p1", "d2")};
  pairs[1].decode.cached_tokens = 16;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, {}, 0), 1u);
  pairs[1].decode.running_sequences = 1;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, {}, 0), 0u);
}

// d1 can prefill, too.
std::vector<PairView> RemoteAndLocal() {
  std::vector<PairView> pairs = {Pair(1, "p1", "d1"), Pair(2, "d1", "d1")};
  pairs[1].local = true;
  return pairs;
}

TEST(PlacementTest, APromptIsComputedWhereThatIsSooner) {
  std::vector<PairView> pairs = RemoteAndLocal();
  pairs[1].prefill.prefill_tokens_per_second = 500;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, {}, 0), 0u);
  pairs[1].prefill.cached_tokens = 64;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, {}, 0), 1u) << "a mostly cached prompt";
  pairs[1].prefill.cached_tokens = 0;
  pairs[0].prefill.waiting_tokens = 1000;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, {}, 0), 1u) << "a queue at the prefill worker";
}

TEST(PlacementTest, AWorkerThatHasMeasuredNothingIsTakenForAsFastAsTheOthers) {
  std::vector<PairView> pairs = RemoteAndLocal();
  pairs[0].prefill.prefill_tokens_per_second = 10000;
  pairs[1].prefill.prefill_tokens_per_second = 0;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, {}, 0), 1u);
  pairs[1].prefill.prefill_tokens_per_second = 1000;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, {}, 0), 0u);
}

TEST(PlacementTest, ALongPromptStaysAwayFromDecodeWorkers) {
  std::vector<PairView> pairs = RemoteAndLocal();
  pairs[0].prefill.waiting_tokens = 100000;
  PlacementRules rules;
  rules.max_local_prefill_tokens = 100;
  EXPECT_EQ(ChoosePair(rules, pairs, kNeed, {}, 0), 1u) << "it is not longer than the limit";
  rules.max_local_prefill_tokens = 99;
  EXPECT_EQ(ChoosePair(rules, pairs, kNeed, {}, 0), 0u);
  pairs[1].prefill.cached_tokens = 16;
  EXPECT_EQ(ChoosePair(rules, pairs, kNeed, {}, 0), 1u) << "84 tokens are left";
  pairs[1].prefill.cached_tokens = 0;
  EXPECT_EQ(ChoosePair(rules, pairs, kNeed, std::vector<WorkerKey>{{"p1", 1}}, 0), 1u) << "nobody else takes it";
  EXPECT_EQ(ChoosePair(rules, std::span(pairs).subspan(1), kNeed, {}, 0), 0u);
}

TEST(PlacementTest, RoundRobinTakesTurnsWhateverTheLoad) {
  std::vector<PairView> pairs = {Pair(1, "p1", "d1"), Pair(2, "p2", "d2")};
  pairs[0].prefill.waiting_tokens = 100000;
  pairs[1].prefill.cached_tokens = 80;
  const PlacementRules rules{PlacementPolicy::kRoundRobin};
  EXPECT_EQ(ChoosePair(rules, pairs, kNeed, {}, 0), 0u);
  EXPECT_EQ(ChoosePair(rules, pairs, kNeed, {}, 1), 1u);
  pairs[1].decode.pages_total = 1;
  EXPECT_EQ(ChoosePair(rules, pairs, kNeed, {}, 1), 0u) << "but what does not fit";
}

}  // namespace
}  // namespace baton::router
