// SPDX-License-Identifier: Apache-2.0
// The figures that a scheduler reports: metrics, the load board, and the times and tokens of a prompt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "scheduler_world.h"
#include "tests/metrics_page.h"

namespace baton::testing {
namespace {

// A world in which each step takes two milliseconds, one per layer; Tick takes one more.
class SchedulerFiguresTest : public ::testing::Test {
 protected:
  void Start(const WorldOptions& options = {}) {
    world_ = std::make_unique<World>(options);
    world_->model.during_layer = [this](int) { world_->clock += absl::Milliseconds(1); };
  }
  double Metric(const std::string& name, const std::map<std::string, std::string>& labels = {}) const {
    const std::string text = prometheus::TextSerializer().Serialize(world_->registry.Collect());
    return MetricsPage::Parse(text).Sum("baton_worker_" + name, labels);
  }
  double Milliseconds(const std::string& name, const std::map<std::string, std::string>& labels = {}) const {
    return Metric(name + "_seconds_sum", labels) * 1000;
  }
  double Attempts(const std::string& outcome) const { return Metric("attempts_total", {{"outcome", outcome}}); }

  std::unique_ptr<World> world_;
};

constexpr double kClose = 1e-6;

TEST_F(SchedulerFiguresTest, EveryTokenOfAPromptIsComputedOrCachedAndTimesAreOfItsOwnSteps) {
  Start();
  Attempt first = world_->MakeAttempt(1, 9, /*max_tokens=*/1);
  Attempt second = world_->MakeAttempt(2, 9, /*max_tokens=*/1);
  first.page_hash_root = second.page_hash_root = PageHashRoot("model", "", "");
  const auto first_told = world_->RunLocally(first);
  const auto second_told = world_->RunLocally(second);
  world_->Tick();  // 8 tokens of the first; the second waits for its pages
  world_->Tick();  // the last token of each
  EXPECT_EQ(Metric("prompt_tokens_computed_total"), 10);
  EXPECT_EQ(Metric("prompt_tokens_cached_total"), 8);
  EXPECT_EQ(Metric("output_tokens_sampled_total"), 2);
  EXPECT_EQ(Attempts("finished"), 2);
  EXPECT_EQ(first_told->figures.queued, absl::Milliseconds(1));
  EXPECT_EQ(second_told->figures.queued, absl::Milliseconds(4)) << "the time before the second step";
  EXPECT_NEAR(Milliseconds("queue", {{"stage", "prefill"}}), 1 + 4, kClose);
  EXPECT_EQ(first_told->figures.prefill, absl::Milliseconds(5)) << "two steps and the tick between";
  EXPECT_EQ(second_told->figures.prefill, absl::Milliseconds(2));
  EXPECT_NEAR(Milliseconds("prefill"), 5 + 2, kClose);
  EXPECT_NEAR(Milliseconds("step"), 2 + 2, kClose);
  EXPECT_EQ(Metric("step_sequences_sum"), 1 + 2);
  EXPECT_DOUBLE_EQ(world_->load.step_seconds, 0.002);
}

TEST_F(SchedulerFiguresTest, PromptSpeedIsThatOfStepsWithManyTokens) {
  Start({.schedule = {.token_budget = 128, .chunk_tokens = 64, .max_sequences = 4}});
  const auto decoding = world_->RunLocally(world_->MakeAttempt(1, 4, 100, 40));
  world_->Tick();
  EXPECT_EQ(world_->load.prefill_tokens_per_second, 0) << "too few tokens";
  world_->RunLocally(world_->MakeAttempt(2, 40, 100, 1));
  world_->RunLocally(world_->MakeAttempt(3, 40, 100, 5));
  world_->Tick();
  EXPECT_EQ(decoding->tokens(), 2);
  EXPECT_DOUBLE_EQ(world_->load.prefill_tokens_per_second, 80 / 0.002) << "two prompts, and no token of the first";
}

TEST_F(SchedulerFiguresTest, AnAttemptThatIsHereAlreadyEndsAsInvalid) {
  Start();
  world_->RunLocally(world_->MakeAttempt(1, 4));
  world_->Receive(world_->MakeAttempt(1, 4));
  EXPECT_EQ(Attempts("invalid"), 1);
}

TEST_F(SchedulerFiguresTest, AReceivedPromptCountsAsReceivedOrCachedAndQueuesFromItsArrivalOn) {
  Start();
  const auto told = world_->Receive(world_->MakeAttempt(1, 6));
  world_->clock += absl::Seconds(1);  // the prefill worker computes
  ReceivedSequence received{.key = World::Key(1), .pages = {}, .tokens = 6, .cached_tokens = 4, .output = {7}};
  received.pages = *world_->pool->Allocate(2);
  world_->scheduler->OnReceived(std::move(received));
  world_->Tick();
  EXPECT_EQ(Metric("prompt_tokens_received_total"), 2);
  EXPECT_EQ(Metric("prompt_tokens_cached_total"), 4);
  EXPECT_EQ(Metric("prompt_tokens_computed_total"), 0);
  EXPECT_EQ(told->figures.cached_tokens, 4);
  EXPECT_NEAR(Milliseconds("queue", {{"stage", "decode"}}), 1, kClose);
  EXPECT_EQ(Metric("queue_seconds_count", {{"stage", "prefill"}}), 0);
}

const HandoffStats kStats = {absl::Milliseconds(7), absl::Milliseconds(3), 4096, "inproc"};

TEST_F(SchedulerFiguresTest, AHandoffCountsWhenItIsDone) {
  Start();
  world_->HandOver(world_->MakeAttempt(1, 6));
  world_->Tick();
  world_->sender.of(World::Key(1)).on_granted();
  world_->Settle();
  EXPECT_EQ(Metric("kv_transfer_bytes_total"), 0);
  world_->sender.of(World::Key(1)).on_done(kStats);
  world_->Settle();
  EXPECT_EQ(Metric("kv_transfer_bytes_total"), 4096);
  EXPECT_NEAR(Milliseconds("kv_transfer"), 7, kClose);
  EXPECT_NEAR(Milliseconds("kv_transfer_exposed"), 3, kClose);
  EXPECT_EQ(Attempts("handed_over"), 1);
}

TEST_F(SchedulerFiguresTest, ALostHandoffIsAFailureAndARefusedOneIsNot) {
  for (const auto& [cause, failures] : {std::pair(Cause::kPeerLost, 1), std::pair(Cause::kRefused, 0)}) {
    Start();
    world_->HandOver(world_->MakeAttempt(1, 6));
    world_->Tick();
    world_->sender.of(World::Key(1)).on_failed(Outcome(cause, "the other worker's reason"));
    world_->Settle();
    EXPECT_EQ(Metric("kv_transfer_failures_total"), failures) << Name(cause);
    EXPECT_EQ(Attempts(std::string(Name(cause))), 1);
  }
}

TEST_F(SchedulerFiguresTest, AMigrationCountsAsAHandoffDoes) {
  const MigrationOrder order = {.from = World::Key(1), .to = World::Key(1, 2), .target = {}};
  for (const Cause cause : {Cause::kMigrated, Cause::kPeerLost, Cause::kRefused}) {
    Start();
    world_->RunLocally(world_->MakeAttempt(1, 6));
    world_->Tick();
    world_->Migrate(order);
    HandoffSender::Events& handoff = world_->sender.of(order.to);
    handoff.on_granted();
    handoff.on_flushed();
    world_->Tick();
    if (cause == Cause::kMigrated) {
      handoff.on_done(kStats);
    } else {
      handoff.on_failed(Outcome(cause, "the other worker's reason"));
    }
    world_->Tick();
    EXPECT_EQ(Metric("kv_transfer_bytes_total"), cause == Cause::kMigrated ? 4096 : 0);
    EXPECT_EQ(Metric("kv_transfer_failures_total"), cause == Cause::kPeerLost ? 1 : 0);
    EXPECT_EQ(Attempts("migrated"), cause == Cause::kMigrated ? 1 : 0) << "otherwise the sequence continues";
  }
}

TEST_F(SchedulerFiguresTest, GaugesFollowTheLoad) {
  Start({.schedule = {.token_budget = 16, .chunk_tokens = 8, .max_sequences = 1}});
  world_->RunLocally(world_->MakeAttempt(1, 10));
  world_->RunLocally(world_->MakeAttempt(2, 6, 100, 20));
  world_->Tick();
  EXPECT_EQ(Metric("running_sequences"), 1);
  EXPECT_EQ(Metric("waiting_sequences"), 1);
  EXPECT_EQ(world_->load.waiting_tokens, 2u + 6u) << "the rest of the first prompt, and the second";
  EXPECT_EQ(Metric("kv_pages", {{"state", "used"}}), world_->pool->counts().used);
  EXPECT_GT(world_->pool->counts().used, 0u);
  world_->scheduler->Cancel(World::Key(1));
  world_->scheduler->Cancel(World::Key(2));
  world_->Tick();
  EXPECT_EQ(Metric("running_sequences") + Metric("waiting_sequences"), 0);
  EXPECT_EQ(world_->load.waiting_tokens, 0u);
  EXPECT_EQ(Metric("kv_pages", {{"state", "used"}}), 0);
}

// A step takes 10 ms, and 1 ms more for each token of a prompt.
TEST_F(SchedulerFiguresTest, PromptsLeaveTheSequencesBesideTheTimeOfTheirObjective) {
  world_ = std::make_unique<World>(
      WorldOptions{.pages = 400, .schedule = {.token_budget = 200, .chunk_tokens = 100, .max_sequences = 4}});
  World& world = *world_;
  const auto last_step = [&] { return absl::Milliseconds(10 + world.model.steps.back().back()); };
  world.model.during_layer = [&](int layer) {
    if (layer == 0) world.clock += last_step();
  };
  Attempt strict = world.MakeAttempt(1, 100, 300);
  strict.tpot_slo = absl::Milliseconds(50);
  const auto told = world.RunLocally(strict);
  for (int i = 0; i < 100; ++i) world.Tick();
  EXPECT_NEAR(world.load.cost().step + world.load.cost().decode_row, 0.011, 1e-4);
  EXPECT_GE(world.load.running_tokens, 150u);

  const auto prompt = world.RunLocally(world.MakeAttempt(2, 300, 4, /*first=*/7));
  int chunks = 0;
  while (prompt->tokens() == 0 && chunks < 300) {
    world.Tick();
    ++chunks;
    EXPECT_LE(last_step(), absl::Milliseconds(45));
  }
  EXPECT_LT(chunks, 30) << "the objective leaves 34 ms of each step";
  EXPECT_GT(world.load.cost().prompt_token, 0);
  EXPECT_FALSE(told->words.empty());
  world.scheduler->Cancel(World::Key(1));
  world.scheduler->Cancel(World::Key(2));
  world.Settle();
}

}  // namespace
}  // namespace baton::testing
