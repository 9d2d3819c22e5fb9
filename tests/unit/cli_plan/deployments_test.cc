// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/deployments.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plan_fixture.h"
#include "tests/status_matchers.h"

namespace baton::plan {
namespace {

using testing::Fails;

Load SmallLoad() {
  Load load{.workload = {}, .seconds = 20, .least_requests = 200};
  load.workload.prompt_tokens = 200;
  load.workload.output_tokens = 20;
  return load;
}

SimulationOptions WithObjectives(std::vector<WorkerSpec> workers) {
  SimulationOptions options = Options(std::move(workers));
  options.ttft_slo = 0.3;
  options.tpot_slo = 0.02;
  return options;
}

PlanQuery Query() {
  return {.prefill = Kind(),
          .decode = Kind(),
          .deployments = DeploymentsOf(3),
          .networks = {1e9},
          .options = WithObjectives({}),
          .load = SmallLoad(),
          .threads = 2};
}

TEST(RequestsAtTest, ATraceRepeats) {
  Load load = SmallLoad();
  load.workload.trace = Trace{.block_tokens = 512,
                              .requests = {{.arrival = {}, .input_tokens = 5, .output_tokens = 6, .blocks = {}},
                                           {.arrival = {}, .input_tokens = 7, .output_tokens = 8, .blocks = {}}}};
  const std::vector<SimulatedRequest> requests = RequestsAt(load, 2);
  ASSERT_EQ(requests.size(), 200);
  EXPECT_EQ(requests[2].prompt_tokens, 5);
  EXPECT_EQ(requests[3].output_tokens, 8);
  EXPECT_NEAR(requests.back().arrival, 100, 30) << "two a second";
  EXPECT_EQ(RequestsAt(load, 50).size(), 1000) << "for 20 seconds";
}

TEST(GoodputTest, IsTheHighestRateThatMeetsTheObjectives) {
  const SimulationOptions options = WithObjectives(Workers(1, 1, 0));
  const double goodput = Goodput(options, SmallLoad(), 0.9);
  ASSERT_GT(goodput, 0);
  EXPECT_GE(SimulateAt(options, SmallLoad(), goodput).met, 0.9);
  EXPECT_LT(SimulateAt(options, SmallLoad(), 1.2 * goodput).met, 0.9);
}

TEST(GoodputTest, MoreWorkersCarryMore) {
  const double one = Goodput(WithObjectives(Workers(1, 1, 0)), SmallLoad(), 0.9);
  const double two = Goodput(WithObjectives(Workers(2, 2, 0)), SmallLoad(), 0.9);
  const double four = Goodput(WithObjectives(Workers(4, 4, 0)), SmallLoad(), 0.9);
  EXPECT_GT(two, 1.2 * one) << "old reports make two workers unequal";
  EXPECT_GT(four, 1.2 * two);
}

TEST(GoodputTest, IsZeroIfEvenAnIdleDeploymentIsTooSlow) {
  SimulationOptions options = WithObjectives(Workers(1, 1, 0));
  options.tpot_slo = 0.009;  // a step alone takes longer
  EXPECT_EQ(Goodput(options, SmallLoad(), 0.9), 0);
}

TEST(SimulateAtTest, CountsRefusedRequestsAsMissed) {
  Load load = SmallLoad();
  load.workload.trace = Trace{.block_tokens = 512,
                              .requests = {{.arrival = {}, .input_tokens = 100, .output_tokens = 6, .blocks = {}},
                                           {.arrival = {}, .input_tokens = 90'000, .output_tokens = 8, .blocks = {}}}};
  const Attainment attainment = SimulateAt(WithObjectives(Workers(1, 1, 0)), load, 1);
  EXPECT_EQ(attainment.requests, 180);
  EXPECT_NEAR(attainment.met, 0.5, 0.01);
}

TEST(DeploymentsOfTest, NamesEveryDeploymentThatServes) {
  const std::vector<Deployment> deployments = DeploymentsOf(3);
  EXPECT_EQ(deployments.size(), 1 + 3 + 5);
  for (const Deployment& deployment : deployments) {
    EXPECT_GT(deployment.decode + deployment.both, 0);
    EXPECT_TRUE(deployment.both > 0 || deployment.prefill > 0);
  }
}

TEST(MakePlanTest, FindsTheCheapestDeploymentForARate) {
  PlanQuery query = Query();
  query.prefill_cost = 3;
  const double of_one = Goodput(WithObjectives(Workers(0, 0, 1)), SmallLoad(), 0.9);
  ASSERT_GT(of_one, 0);
  query.rate = 1.5 * of_one;
  query.stop_at_cheapest = true;
  ASSERT_OK_AND_ASSIGN(const std::vector<PlanRow> rows, MakePlan(query, [] { return false; }));
  const auto cheapest = std::ranges::find(rows, true, &PlanRow::is_cheapest);
  ASSERT_NE(cheapest, rows.end());
  EXPECT_EQ(std::ranges::count(rows, true, &PlanRow::is_cheapest), 1);
  EXPECT_GE(cheapest->at_rate->met, 0.9);
  EXPECT_GE(*cheapest->goodput, *query.rate / 1.1);
  EXPECT_GT(cheapest->deployment.both, 1) << "one is too few, and prefill workers are dear";
  for (const PlanRow& row : rows) {
    EXPECT_LE(row.cost, cheapest->cost);
    if (row.cost < cheapest->cost) EXPECT_LT(row.at_rate->met, 0.9);
  }
}

TEST(MakePlanTest, ComparesEveryDeploymentOnEachNetwork) {
  PlanQuery query = Query();
  query.deployments = {{.prefill = 1, .decode = 1}, {.both = 1}};
  query.networks = {1e9, 1e6};
  ASSERT_OK_AND_ASSIGN(const std::vector<PlanRow> rows, MakePlan(query, [] { return false; }));
  ASSERT_EQ(rows.size(), 4);
  EXPECT_EQ(rows[0].deployment.both, 1) << "in the order of costs";
  EXPECT_EQ(rows[0].goodput, rows[2].goodput) << "no handoff";
  EXPECT_GT(*rows[1].goodput, *rows[3].goodput) << "1 MB/s carries the KV of 1000 tokens per second";
  EXPECT_FALSE(rows[0].at_rate.has_value());
}

TEST(MakePlanTest, StopsWhenInterrupted) {
  EXPECT_TRUE(Fails(MakePlan(Query(), [] { return true; }), absl::StatusCode::kCancelled, "interrupted"));
}

}  // namespace
}  // namespace baton::plan
