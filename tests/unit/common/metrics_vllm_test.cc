// SPDX-License-Identifier: Apache-2.0
#include "common/metrics_vllm.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

#include <string>

#include "common/metrics.h"
#include "tests/metrics_page.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using ::baton::testing::MetricsPage;
using Labels = std::map<std::string, std::string>;

class VllmNamesTest : public ::testing::Test {
 protected:
  void Count(const std::string& name, const Labels& labels, double value) {
    prometheus::BuildCounter().Name(name).Register(registry()).Add(labels).Increment(value);
  }
  void Level(const std::string& name, const Labels& labels, double value) {
    prometheus::BuildGauge().Name(name).Register(registry()).Add(labels).Set(value);
  }
  prometheus::Registry& registry() { return server_->registry(); }
  MetricsPage Page() { return MetricsPage::Fetch(server_->port()).value(); }

  std::unique_ptr<MetricsServer> server_ = MetricsServer::Start("127.0.0.1:0", MetricsNames::kVllm).value();
};

TEST_F(VllmNamesTest, AHistogramKeepsItsBucketsAndGetsTheLabelModelName) {
  auto& family = prometheus::BuildHistogram().Name("baton_time_to_first_token_seconds").Register(registry());
  auto& histogram = family.Add({{"model", "m"}}, prometheus::Histogram::BucketBoundaries{0.5, 1});
  histogram.Observe(0.7);
  const MetricsPage page = Page();
  EXPECT_EQ(page.Sum("vllm:time_to_first_token_seconds_count", {{"model_name", "m"}}), 1);
  EXPECT_EQ(page.Sum("vllm:time_to_first_token_seconds_bucket", {{"le", "0.5"}}), 0);
  EXPECT_EQ(page.Sum("vllm:time_to_first_token_seconds_bucket", {{"le", "1"}}), 1);
  for (const auto& series : page.series()) EXPECT_FALSE(series.name.starts_with("baton_time")) << series.name;
}

TEST_F(VllmNamesTest, OnlyAnswersAreSuccesses) {
  Count("baton_requests_total", {{"model", "m"}, {"outcome", "stop"}}, 2);
  Count("baton_requests_total", {{"model", "m"}, {"outcome", "length"}}, 3);
  Count("baton_requests_total", {{"model", "m"}, {"outcome", "CANCELLED"}}, 5);
  EXPECT_EQ(Page().Sum("vllm:request_success_total"), 5);
  EXPECT_EQ(Page().Sum("vllm:request_success_total", {{"finished_reason", "length"}, {"model_name", "m"}}), 3);
}

TEST_F(VllmNamesTest, KvUsageIsTheShareOfPagesThatCannotBeHad) {
  for (const auto& [state, pages] : {std::pair("free", 1), {"used", 2}, {"cached", 3}, {"quarantined", 4}}) {
    Level("baton_worker_kv_pages", {{"model", "m"}, {"state", state}}, pages);
  }
  EXPECT_DOUBLE_EQ(Page().Sum("vllm:kv_cache_usage_perc", {{"model_name", "m"}}), 0.6);
}

TEST_F(VllmNamesTest, PrefixTokensAreThoseOfTheWorkersThatComputePrompts) {
  for (const char* role : {"prefill", "decode", "both"}) {
    Count("baton_worker_prompt_tokens_cached_total", {{"role", role}}, 10);
    Count("baton_worker_prompt_tokens_computed_total", {{"role", role}}, 30);
  }
  EXPECT_EQ(Page().Sum("vllm:prefix_cache_hits_total"), 20);
  EXPECT_EQ(Page().Sum("vllm:prefix_cache_queries_total"), 80);
}

TEST_F(VllmNamesTest, SequencesOfAWorkerAreItsRequests) {
  Level("baton_worker_running_sequences", {{"model", "m"}}, 3);
  Level("baton_worker_waiting_sequences", {{"model", "m"}}, 4);
  EXPECT_EQ(Page().Sum("vllm:num_requests_running"), 3);
  EXPECT_EQ(Page().Sum("vllm:num_requests_waiting"), 4);
}

TEST_F(VllmNamesTest, WithoutFactsThereIsNoName) {
  Count("baton_requests_total", {{"outcome", "CANCELLED"}}, 1);
  const MetricsPage page = Page();
  for (const auto& series : page.series()) EXPECT_FALSE(series.name.starts_with("vllm:")) << series.name;
}

TEST(MetricsNamesTest, BothServesEachFactTwice) {
  ASSERT_OK_AND_ASSIGN(const auto server, MetricsServer::Start("127.0.0.1:0", MetricsNamesFrom("both")));
  prometheus::BuildCounter().Name("baton_prompt_tokens_total").Register(server->registry()).Add({}).Increment(7);
  ASSERT_OK_AND_ASSIGN(const MetricsPage page, MetricsPage::Fetch(server->port()));
  EXPECT_EQ(page.Sum("baton_prompt_tokens_total"), 7);
  EXPECT_EQ(page.Sum("vllm:prompt_tokens_total"), 7);
}

TEST(MetricsNamesTest, TheOptionsNamesAreInOrder) {
  EXPECT_EQ(MetricsNamesFrom(kMetricsNames[0]), MetricsNames::kBaton);
  EXPECT_EQ(MetricsNamesFrom(kMetricsNames[1]), MetricsNames::kVllm);
  EXPECT_EQ(MetricsNamesFrom(kMetricsNames[2]), MetricsNames::kBoth);
}

}  // namespace
}  // namespace baton
