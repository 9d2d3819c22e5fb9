// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/simulation.h"

#include <gtest/gtest.h>

#include <vector>

#include "cli/plan/event_queue.h"
#include "plan_fixture.h"

namespace baton::plan {
namespace {

constexpr double kNear = 1e-9;

TEST(EventQueueTest, EventsOfOneTimeComeInTheirOrder) {
  EventQueue<int> queue;
  queue.Add(2, 20);
  queue.Add(1, 10);
  queue.Add(2, 21);
  queue.Add(1, 11);
  std::vector<int> taken;
  while (!queue.empty()) taken.push_back(queue.Take().second);
  EXPECT_EQ(taken, (std::vector<int>{10, 11, 20, 21}));
}

TEST(SimulationTest, OneRequestAtOneWorkerTakesItsSteps) {
  const SimulationResult result = Simulate(Options(Workers(0, 0, 1)), {{{0.5, 100, 3}}});
  const RequestResult& request = result.requests[0];
  EXPECT_TRUE(request.complete);
  EXPECT_EQ(request.tokens, 3);
  EXPECT_NEAR(request.first_token, kMessage + 0.020 + 2 * kMessage, kNear);
  EXPECT_NEAR(request.last_token, kMessage + 0.020 + 2 * 0.011 + 2 * kMessage, kNear);
  EXPECT_NEAR(request.tpot(), 0.011, kNear);
  EXPECT_EQ(result.steps, 3);
}

TEST(SimulationTest, ASecondPromptRunsBesideTheFirstSequence) {
  SimulationOptions options = Options(Workers(0, 0, 1));
  options.message_seconds = 0;
  const SimulationResult result = Simulate(options, {{{0, 100, 4}, {0.005, 100, 2}}});
  // Steps: the first prompt; a token beside the second prompt; two tokens; a token.
  EXPECT_NEAR(result.requests[0].first_token, 0.020, kNear);
  EXPECT_NEAR(result.requests[1].first_token, 0.020 + 0.021 - 0.005, kNear);
  EXPECT_NEAR(result.requests[1].last_token, 0.020 + 0.021 + 0.012 - 0.005, kNear);
  EXPECT_NEAR(result.requests[0].last_token, 0.020 + 0.021 + 0.012 + 0.011, kNear);
  EXPECT_EQ(result.steps, 4);
}

TEST(SimulationTest, AHandoffAddsItsMessagesAndTheLastLayer) {
  SimulationOptions options = Options(Workers(1, 1, 0));
  options.network_bytes_per_second = 1e7;  // 100 kB take 10 ms, less than the prompt's step
  const SimulationResult result = Simulate(options, {{{0, 100, 3}}});
  const RequestResult& request = result.requests[0];
  const double computed = 5 * kMessage + 0.020;
  EXPECT_NEAR(request.first_token, computed + 2 * kMessage, kNear);
  const double landed = computed + 0.010 / 4;
  EXPECT_NEAR(request.last_token, landed + kMessage + 2 * 0.011 + 2 * kMessage, kNear);
  EXPECT_EQ(result.handoffs, 1);
  EXPECT_NEAR(result.handoff_bytes, 100e3, kNear);
  EXPECT_NEAR(result.exposed_seconds, 0.010 / 4, kNear);
}

TEST(SimulationTest, ASlowNetworkOutlastsTheComputation) {
  SimulationOptions options = Options(Workers(1, 1, 0));
  options.network_bytes_per_second = 1e6;  // 100 kB take 100 ms, from the start of the step
  const SimulationResult result = Simulate(options, {{{0, 100, 2}}});
  EXPECT_NEAR(result.exposed_seconds, 0.100 - 0.020, kNear);
  EXPECT_NEAR(result.requests[0].last_token, 5 * kMessage + 0.100 + kMessage + 0.011 + 2 * kMessage, kNear);
}

TEST(SimulationTest, HandoffsShareTheNetwork) {
  SimulationOptions options = Options(Workers(1, 1, 0));
  options.network_bytes_per_second = 1e6;
  const SimulationResult result = Simulate(options, {{{0, 100, 2}, {0, 100, 2}}});
  // Both prompts run in one step of 30 ms. The KV of the second prompt leaves after the KV of the first.
  EXPECT_NEAR(result.exposed_seconds, (0.100 - 0.030) + (0.200 - 0.030), kNear);
}

TEST(SimulationTest, AnAnswerOfOneTokenIsNotHandedOver) {
  const SimulationResult result = Simulate(Options(Workers(1, 1, 0)), {{{0, 100, 1}}});
  EXPECT_TRUE(result.requests[0].complete);
  EXPECT_EQ(result.requests[0].first_token, result.requests[0].last_token);
  EXPECT_EQ(result.requests[0].tpot(), 0);
  EXPECT_EQ(result.handoffs, 0);
  EXPECT_EQ(result.pages_held + result.slots_held + result.jobs_held, 0);
}

TEST(SimulationTest, ARequestThatFitsNoWorkerIsRefused) {
  WorkerKind small = Kind();
  small.pages = 4;  // the last page is never for a first attempt
  const SimulationResult result = Simulate(Options(Workers(0, 0, 1, small)), {{{0, 40, 9}, {0, 40, 8}}});
  EXPECT_TRUE(result.requests[0].refused);
  EXPECT_FALSE(result.requests[0].complete);
  EXPECT_TRUE(result.requests[1].complete);
}

TEST(SimulationTest, EveryRequestEndsOnceAndLeavesNothing) {
  WorkerKind scarce = Kind();
  scarce.pages = 60;
  scarce.schedule.max_sequences = 8;
  uint64_t preemptions = 0;
  uint64_t more_attempts = 0;
  uint64_t refused = 0;
  for (const WorkerKind& kind : {Kind(), scarce}) {
    for (const auto& [prefill, decode, both] : {std::tuple{1, 1, 0}, {0, 0, 2}, {2, 1, 1}, {3, 2, 0}, {1, 0, 2}}) {
      for (const double tpot_slo : {0.0, 0.02}) {
        SimulationOptions options = Options(Workers(prefill, decode, both, kind));
        options.ttft_slo = 0.3;
        options.tpot_slo = tpot_slo;
        const std::vector<SimulatedRequest> requests = RandomRequests(400, 60, 7);
        const SimulationResult result = Simulate(options, requests);
        for (size_t i = 0; i < requests.size(); ++i) {
          const RequestResult& request = result.requests[i];
          EXPECT_NE(request.complete, request.refused);
          if (request.refused) {
            ++refused;
            EXPECT_EQ(request.tokens, 0);
            continue;
          }
          EXPECT_EQ(request.tokens, requests[i].output_tokens);
          EXPECT_GT(request.first_token, 0);
          EXPECT_GE(request.last_token, request.first_token);
          more_attempts += request.attempts - 1;
        }
        EXPECT_EQ(result.pages_held, 0);
        EXPECT_EQ(result.slots_held, 0);
        EXPECT_EQ(result.jobs_held, 0);
        preemptions += result.preemptions;
      }
    }
  }
  EXPECT_GT(preemptions, 0);
  EXPECT_EQ(preemptions, more_attempts);
  EXPECT_GT(refused, 0);
}

TEST(SimulationTest, TheKvOfEveryPromptIsHandedOverOnce) {
  const std::vector<SimulatedRequest> requests = RandomRequests(200, 20, 3);
  const SimulationResult result = Simulate(Options(Workers(2, 2, 0)), requests);
  ASSERT_EQ(result.preemptions, 0);
  double bytes = 0;
  for (const SimulatedRequest& request : requests) bytes += 1000.0 * request.prompt_tokens;
  EXPECT_NEAR(result.handoff_bytes, bytes, 1e-3);
}

TEST(SimulationTest, RepeatsExactly) {
  const std::vector<SimulatedRequest> requests = RandomRequests(300, 50, 11);
  SimulationOptions options = Options(Workers(2, 1, 1));
  options.ttft_slo = 0.2;
  options.tpot_slo = 0.02;
  const SimulationResult once = Simulate(options, requests);
  const SimulationResult again = Simulate(options, requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(once.requests[i].first_token, again.requests[i].first_token);
    EXPECT_EQ(once.requests[i].last_token, again.requests[i].last_token);
  }
  EXPECT_EQ(once.steps, again.steps);
}

TEST(SimulationTest, EndsEarlyOnceTooManyMissed) {
  const std::vector<SimulatedRequest> requests = RandomRequests(1000, 1000, 5);
  SimulationOptions options = Options(Workers(0, 0, 1));
  options.ttft_slo = 0.05;
  options.tpot_slo = 1;
  options.most_misses = 20;
  const SimulationResult result = Simulate(options, requests);
  EXPECT_GT(result.misses, 20);
  EXPECT_LT(result.misses, 100) << "one step more at most";
  EXPECT_FALSE(result.requests.back().complete);
}

TEST(SimulationTest, AnObjectivePerTokenCutsPromptsIntoChunks) {
  SimulationOptions options = Options(Workers(0, 0, 1));
  const std::vector<SimulatedRequest> requests = {{0, 100, 60}, {0.1, 400, 2}};
  const double undisturbed = Simulate(options, {{requests[0]}}).requests[0].tpot();
  EXPECT_GT(Simulate(options, requests).requests[0].tpot(), undisturbed);
  options.tpot_slo = 0.016;  // leaves about 3 ms, which is 30 tokens, in each step
  const SimulationResult result = Simulate(options, requests);
  EXPECT_LE(result.requests[0].tpot(), 0.016);
  EXPECT_GT(result.requests[1].first_token, 10 * 0.014);
}

}  // namespace
}  // namespace baton::plan
