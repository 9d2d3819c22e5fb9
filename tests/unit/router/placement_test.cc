// SPDX-License-Identifier: Apache-2.0
#include "router/placement.h"

#include <gtest/gtest.h>

#include "placement_fixture.h"

namespace baton::router {
namespace {

const PlacementNeed kNeed{100, 200};

TEST(PlacementTest, NothingToChooseFrom) { EXPECT_EQ(ChoosePair({}, Candidates(), kNeed, 0), std::nullopt); }

TEST(PlacementTest, TakesTheShorterQueue) {
  std::vector<PairView> pairs = {Pair(), Pair()};
  pairs[0].prefill.waiting_tokens = 500;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 1u);
  pairs[1].prefill.waiting_tokens = 600;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 0u);
}

TEST(PlacementTest, AFasterWorkerMayHaveTheLongerQueue) {
  std::vector<PairView> pairs = {Pair(), Pair()};
  pairs[0].prefill.waiting_tokens = 1000;
  pairs[0].prefill.prefill_tokens_per_second = 10000;
  pairs[1].prefill.waiting_tokens = 500;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 0u);
}

TEST(PlacementTest, BeforeAnyWorkerHasMeasuredItsSpeedTheShorterQueueIsTaken) {
  std::vector<PairView> pairs = {Pair(), Pair()};
  for (PairView& pair : pairs) pair.prefill.prefill_tokens_per_second = 0;
  pairs[0].prefill.waiting_tokens = 500;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 1u);
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 1), 1u);
}

TEST(PlacementTest, AvoidsADecodeWorkerWithoutABatchSlot) {
  std::vector<PairView> pairs = {Pair(), Pair()};
  pairs[0].decode.running_sequences = 8;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 1u);
  pairs[1].prefill.waiting_tokens = 1000;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 1u) << "a second's queue is shorter than the wait for a slot";
  pairs[0].decode.running_sequences = 7;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 0u) << "one slot is free";
}

TEST(PlacementTest, AvoidsADecodeWorkerWithoutPagesForThePrompt) {
  std::vector<PairView> pairs = {Pair(), Pair()};
  pairs[1].decode.pages_free = 7;  // 100 tokens need 7, and 1 to grow into
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 1), 0u);
  pairs[1].decode.pages_free = 8;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 1), 1u);
  pairs[1].decode.pages_free = 7;
  EXPECT_EQ(ChoosePair({}, pairs, {96, 200}, 1), 1u) << "96 tokens fill 6 pages";
}

TEST(PlacementTest, AFullDecodeWorkerIsBetterThanAnEndlessQueue) {
  std::vector<PairView> pairs = {Pair(), Pair()};
  pairs[0].decode.pages_free = 0;
  pairs[1].prefill.waiting_tokens = 100000;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 0u);
}

TEST(PlacementTest, EqualPairsTakeTurns) {
  const std::vector<PairView> pairs = {Pair(), Pair()};
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 0u);
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 1), 1u);
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 2), 0u);
}

TEST(PlacementTest, FewerRunningSequencesDecideBetweenEqualTtft) {
  std::vector<PairView> pairs = {Pair(), Pair()};
  pairs[0].decode.running_sequences = 3;
  pairs[1].decode.running_sequences = 2;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 1u);
}

TEST(PlacementTest, NeverTakesAWorkerToAvoid) {
  std::vector<PairView> pairs = {Pair(), Pair()};
  pairs[0].decode.avoided = true;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 1u);
  pairs[1].prefill.avoided = true;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), std::nullopt);
}

TEST(PlacementTest, ASequenceMustFitBothPoolsAndTheContext) {
  PairView pair = Pair();
  EXPECT_EQ(LargestSequence(pair), 100u * 16) << "the last page is for growth";
  EXPECT_EQ(ChoosePair({}, {{pair}}, {100, 1600}, 0), 0u);
  EXPECT_EQ(ChoosePair({}, {{pair}}, {100, 1601}, 0), std::nullopt);
  pair.prefill.pages_total = 50;
  EXPECT_EQ(LargestSequence(pair), 50u * 16) << "recovery prefills the output too";
  pair.decode.max_context_tokens = 512;
  EXPECT_EQ(LargestSequence(pair), 512u);
  pair.decode.pages_total = 0;
  EXPECT_EQ(LargestSequence(pair), 0u);
}

TEST(PlacementTest, PairsThatAreTooSmallAreLeftOut) {
  std::vector<PairView> pairs = {Pair(), Pair()};
  pairs[0].decode.pages_total = 5;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 1u);
}

TEST(PlacementTest, GoesWhereThePromptsBeginningIs) {
  std::vector<PairView> pairs = {Pair(), Pair()};
  pairs[1].prefill.cached_tokens = 80;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 1u);
  // But not into any queue.
  pairs[1].prefill.waiting_tokens = 81;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 0u);
}

TEST(PlacementTest, TheLastTokenIsAlwaysComputed) {
  WorkerView worker = Worker();
  EXPECT_EQ(TokensToCompute(worker, kNeed), 100u);
  worker.cached_tokens = 64;
  EXPECT_EQ(TokensToCompute(worker, kNeed), 36u);
  worker.cached_tokens = 112;
  EXPECT_EQ(TokensToCompute(worker, kNeed), 1u);
  EXPECT_EQ(TokensToCompute(worker, {0, 0}), 0u);
}

TEST(PlacementTest, TheDecodeWorkersPagesDecideBetweenEquals) {
  std::vector<PairView> pairs = {Pair(), Pair()};
  pairs[1].decode.cached_tokens = 16;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 1u);
  pairs[1].decode.running_sequences = 1;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 0u);
}

// d1 can prefill, too.
std::vector<PairView> RemoteAndLocal() {
  std::vector<PairView> pairs = {Pair(), Pair()};
  pairs[1].local = true;
  return pairs;
}

TEST(PlacementTest, APromptIsComputedWhereThatIsSooner) {
  std::vector<PairView> pairs = RemoteAndLocal();
  pairs[1].prefill.prefill_tokens_per_second = 500;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 0u);
  pairs[1].prefill.cached_tokens = 64;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 1u) << "a mostly cached prompt";
  pairs[1].prefill.cached_tokens = 0;
  pairs[0].prefill.waiting_tokens = 1000;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 1u) << "a queue at the prefill worker";
}

TEST(PlacementTest, AWorkerThatHasMeasuredNothingIsTakenForAsFastAsTheOthers) {
  std::vector<PairView> pairs = RemoteAndLocal();
  pairs[0].prefill.prefill_tokens_per_second = 10000;
  pairs[1].prefill.prefill_tokens_per_second = 0;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 1u);
  pairs[1].prefill.prefill_tokens_per_second = 1000;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 0u);
}

TEST(PlacementTest, ALongPromptStaysAwayFromDecodeWorkers) {
  std::vector<PairView> pairs = RemoteAndLocal();
  pairs[0].prefill.waiting_tokens = 100000;
  PlacementRules rules;
  rules.max_local_prefill_tokens = 100;
  EXPECT_EQ(ChoosePair(rules, pairs, kNeed, 0), 1u) << "it is not longer than the limit";
  rules.max_local_prefill_tokens = 99;
  EXPECT_EQ(ChoosePair(rules, pairs, kNeed, 0), 0u);
  pairs[1].prefill.cached_tokens = 16;
  EXPECT_EQ(ChoosePair(rules, pairs, kNeed, 0), 1u) << "84 tokens are left";
  pairs[1].prefill.cached_tokens = 0;
  EXPECT_EQ(ChoosePair(rules, std::span(pairs).subspan(1), kNeed, 0), 0u) << "no other pair takes the prompt";
  pairs[0].prefill.avoided = true;
  EXPECT_EQ(ChoosePair(rules, pairs, kNeed, 0), 1u) << "the other pair is to be avoided";
}

// Both workers have measured: 10 ms a step, 1 ms a prompt token.
std::vector<PairView> RemoteAndLocalWithCosts() {
  std::vector<PairView> pairs = RemoteAndLocal();
  for (PairView& pair : pairs) {
    for (WorkerView* worker : {&pair.prefill, &pair.decode}) {
      worker->cost = {.step = 0.010, .prompt_token = 0.001, .decode_row = 0.001, .attended = 0};
    }
  }
  return pairs;
}
void SetRunning(PairView& pair, uint32_t sequences) {
  for (WorkerView* worker : {&pair.prefill, &pair.decode}) {
    worker->running_sequences = worker->decoding_sequences = sequences;
  }
}
// All running sequences have the objective.
void SetTpotSlo(std::vector<PairView>& pairs, double seconds) {
  for (PairView& pair : pairs) {
    for (WorkerView* worker : {&pair.prefill, &pair.decode}) {
      worker->tpot_slo = seconds;
      worker->objectives = worker->running_sequences;
    }
  }
}

TEST(PlacementTest, ALocalPromptCountsWhatItDelays) {
  std::vector<PairView> pairs = RemoteAndLocalWithCosts();
  SetRunning(pairs[1], 4);
  pairs[0].decode.running_sequences = 4;
  pairs[0].prefill.waiting_tokens = 1100;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 0u) << "four sequences would pause for 0.1 s, which counts three times";
  pairs[0].prefill.waiting_tokens = 1300;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 1u);
  for (WorkerView* worker : {&pairs[1].prefill, &pairs[1].decode}) worker->cost = {};
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 1u) << "without a measured cost, the speed tells the delay";
  pairs[0].prefill.waiting_tokens = 1100;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 0u);
}

TEST(PlacementTest, WithAnObjectiveALocalPromptTakesLongerAndDelaysNobody) {
  std::vector<PairView> pairs = RemoteAndLocalWithCosts();
  SetRunning(pairs[1], 4);  // a step of 14 ms
  pairs[0].decode.running_sequences = 4;
  PlacementNeed need = kNeed;
  need.tpot_slo = 0.035;  // steps of 31.5 ms: prompts get 5 of 9 parts, and take 0.18 s
  SetTpotSlo(pairs, 0.035);
  pairs[0].prefill.waiting_tokens = 70;
  EXPECT_EQ(ChoosePair({}, pairs, need, 0), 0u);
  pairs[0].prefill.waiting_tokens = 90;
  EXPECT_EQ(ChoosePair({}, pairs, need, 0), 1u);
  need.tpot_slo = 0.0155;  // steps of 14 ms: no time for prompts
  SetTpotSlo(pairs, 0.0155);
  EXPECT_EQ(ChoosePair({}, pairs, need, 0), 0u);
  pairs[0].prefill.waiting_tokens = 4000;
  EXPECT_EQ(ChoosePair({}, pairs, need, 0), 0u);
  pairs[0].prefill.waiting_tokens = 7000;
  EXPECT_EQ(ChoosePair({}, pairs, need, 0), 1u)
      << "prompts get a fiftieth of the time at the least, and the sequences wait";
  SetRunning(pairs[1], 0);
  pairs[0].prefill.waiting_tokens = 10;
  EXPECT_EQ(ChoosePair({}, pairs, need, 0), 1u) << "nobody decodes there";
}

TEST(PlacementTest, AvoidsADecodeWorkerWhoseSequencesWouldMissTheirObjective) {
  std::vector<PairView> pairs = {RemoteAndLocalWithCosts()[0], RemoteAndLocalWithCosts()[0]};
  for (PairView& pair : pairs) pair.decode.max_sequences = 100;
  PlacementNeed need = kNeed;
  need.tpot_slo = 0.020;  // ten sequences
  pairs[0].decode.running_sequences = 10;
  SetTpotSlo(pairs, 0.020);
  pairs[1].prefill.waiting_tokens = 500;
  EXPECT_EQ(ChoosePair({}, pairs, need, 0), 1u) << "half a second is less than eleven missed objectives";
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 1u) << "the others have objectives, if not the request";
  SetTpotSlo(pairs, 0);
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 0u) << "without an objective";
  SetTpotSlo(pairs, 0.020);
  std::vector<WorkerView> decodes = {pairs[0].decode, pairs[1].decode};
  decodes[1].running_sequences = 9;
  decodes[1].max_sequences = 11;  // fuller
  EXPECT_EQ(ChooseDecode({}, decodes, need, 0), 1u);
}

TEST(PlacementTest, ARequestGoesWhereItsFirstTokenIsInTime) {
  std::vector<PairView> pairs = RemoteAndLocalWithCosts();
  PlacementNeed need = kNeed;
  need.ttft_slo = 0.3;
  SetRunning(pairs[1], 4);
  pairs[0].prefill.waiting_tokens = 300;  // 0.4 s there, 0.1 s here
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 0u) << "the delay of the others outweighs 0.3 s";
  EXPECT_EQ(ChoosePair({}, pairs, need, 0), 1u);
  need.ttft_slo = 0.001;
  EXPECT_EQ(ChoosePair({}, pairs, need, 0), 0u) << "missed anyhow: the others count";
}

// A prompt of 100 tokens is 100 MB of KV, and takes a tenth of a second to compute.
std::vector<PairView> PairsWithPaths() {
  std::vector<PairView> pairs = {Pair(), Pair()};
  for (PairView& pair : pairs) pair.prefill.kv_token_bytes = 1'000'000;
  return pairs;
}

TEST(PlacementTest, ASlowPathCountsByTheBytesThatOutlastTheComputation) {
  std::vector<PairView> pairs = PairsWithPaths();
  pairs[0].path = {.bytes_per_second = 1e9};  // 0.1 s: as long as the computation
  pairs[1].path = {.bytes_per_second = 1e8};  // 1 s
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 1), 0u);
  pairs[0].prefill.waiting_tokens = 850;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 1), 0u) << "0.9 s outlast the computation, the queue takes 0.85 s";
  pairs[0].prefill.waiting_tokens = 950;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 1u);
}

TEST(PlacementTest, PagesThatTheDecodeWorkerHasNeedNoTransfer) {
  std::vector<PairView> pairs = PairsWithPaths();
  for (PairView& pair : pairs) pair.path.bytes_per_second = 1e8;
  pairs[1].decode.cached_tokens = 80;
  pairs[1].decode.running_sequences = 1;  // decides between equals
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 1u);
}

TEST(PlacementTest, APathThatHasMeasuredNothingIsTakenForAsFastAsTheOthers) {
  std::vector<PairView> pairs = PairsWithPaths();
  pairs[0].path.bytes_per_second = 1e8;
  pairs[1].path.bytes_per_second = 2e8;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 1u);
  pairs.push_back(pairs[0]);
  pairs[2].path = {};
  pairs[2].prefill.waiting_tokens = 1;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 1u) << "as fast as the fastest, and behind one token";
  pairs[1].prefill.waiting_tokens = 2;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 2u);
}

TEST(PlacementTest, AHandoffThatDoesNotWaitForTheComputationMeasuresThePath) {
  PathView path;
  NoteHandoff(path, 1 << 20, 10, 0.001);
  EXPECT_EQ(path.bytes_per_second, 0) << "the transfer waited for the computation";
  NoteHandoff(path, 1 << 20, 0.1, 0.09);
  EXPECT_DOUBLE_EQ(path.bytes_per_second, 10485760);
  NoteHandoff(path, (64 << 10) - 1, 0.1, 0.1);
  EXPECT_DOUBLE_EQ(path.bytes_per_second, 10485760) << "few bytes say nothing";
  NoteHandoff(path, 1 << 20, 10, 0.001);
  EXPECT_DOUBLE_EQ(path.bytes_per_second, 10485760) << "the path may be faster than this transfer";
  NoteHandoff(path, 1 << 20, 0.01, 0.001);
  EXPECT_DOUBLE_EQ(path.bytes_per_second, 104857600) << "the path is at least this fast";
  PathView least;
  NoteHandoff(least, 64 << 10, 1, 1);
  EXPECT_DOUBLE_EQ(least.bytes_per_second, 65536);
  for (int i = 0; i < 200; ++i) NoteHandoff(path, 1 << 20, 1, 0.9);
  EXPECT_NEAR(path.bytes_per_second, 1048576, 1) << "the path has become slow";
}

TEST(PlacementTest, AStepThatIsNotMeasuredIsTakenForTheShortest) {
  std::vector<PairView> pairs = {Pair(), Pair(), Pair()};
  pairs[0].decode.step_seconds = 0.010;
  pairs[1].decode.step_seconds = 0.020;
  pairs[0].decode.running_sequences = 1;
  pairs[1].decode.running_sequences = 2;
  pairs[2].decode.running_sequences = 3;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 0u) << "a step of 10 ms, and a fuller batch";
  pairs[0].decode.running_sequences = 6;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 2u) << "a step of 10 ms, not of 20 ms";
}

TEST(PlacementTest, ADecodeWorkerWithoutBatchSlotsIsTheLastChoice) {
  std::vector<PairView> pairs = {Pair(), Pair()};
  for (PairView& pair : pairs) pair.decode.step_seconds = 0.010;
  pairs[0].decode.max_sequences = 0;
  EXPECT_EQ(ChoosePair({}, pairs, kNeed, 0), 1u);
}

TEST(PlacementTest, SequencesSpreadInProportionToTheSpeedOfSteps) {
  std::vector<PairView> pairs = {Pair(), Pair()};
  pairs[0].decode.step_seconds = 0.010;
  pairs[1].decode.step_seconds = 0.020;
  for (int i = 0; i < 6; ++i) ++pairs[*ChoosePair({}, pairs, kNeed, 0)].decode.running_sequences;
  EXPECT_EQ(pairs[0].decode.running_sequences, 4u);
  EXPECT_EQ(pairs[1].decode.running_sequences, 2u);
}

TEST(PlacementTest, AMigrationNeedsADecodeWorkerWithRoom) {
  std::vector<WorkerView> decodes = {Worker(), Worker(), Worker()};
  EXPECT_EQ(ChooseDecode({}, decodes, kNeed, 1), 1u) << "in turn";
  decodes[0].running_sequences = 8;
  decodes[1].pages_free = 7;
  EXPECT_EQ(ChooseDecode({}, decodes, kNeed, 0), 2u);
  decodes[2].avoided = true;
  decodes[1].pages_total = 5;
  EXPECT_EQ(ChooseDecode({}, decodes, kNeed, 0), 0u) << "the others are avoided or too small";
  EXPECT_EQ(ChooseDecode({}, {}, kNeed, 0), std::nullopt);
}

TEST(PlacementTest, RoundRobinTakesTurnsWhateverTheLoad) {
  std::vector<PairView> pairs = {Pair(), Pair()};
  pairs[0].prefill.waiting_tokens = 100000;
  pairs[1].prefill.cached_tokens = 80;
  const PlacementRules rules{PlacementPolicy::kRoundRobin};
  EXPECT_EQ(ChoosePair(rules, pairs, kNeed, 0), 0u);
  EXPECT_EQ(ChoosePair(rules, pairs, kNeed, 1), 1u);
  pairs[1].decode.pages_total = 1;
  EXPECT_EQ(ChoosePair(rules, pairs, kNeed, 1), 0u) << "but what does not fit";
}

}  // namespace
}  // namespace baton::router
