// SPDX-License-Identifier: Apache-2.0
#include "worker/metrics.h"

#include <prometheus/text_serializer.h>

#include <set>
#include <string>

#include "tests/metrics_page.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using ::baton::testing::MetricsPage;
using ::baton::testing::MetricsSeries;

Attempt AttemptOf(bool is_probe) {
  Attempt attempt;
  attempt.key = {RequestId::Random(), 1};
  attempt.prompt = {1, 2};
  attempt.sampling.max_tokens = 2;
  attempt.is_probe = is_probe;
  return attempt;
}

class WorkerMetricsTest : public ::testing::Test {
 protected:
  // Everything that can happen to an attempt.
  void CountAll(const Attempt& attempt) {
    metrics_.Queued(attempt, WorkerMetrics::Stage::kPrefill, absl::Seconds(1));
    metrics_.Queued(attempt, WorkerMetrics::Stage::kDecode, absl::Seconds(2));
    metrics_.Prefilled(attempt, absl::Seconds(3));
    metrics_.TokensComputed(attempt, 4);
    metrics_.TokensCached(attempt, 5);
    metrics_.TokensReceived(attempt, 6);
    metrics_.TokenSampled(attempt);
    metrics_.HandedOver(attempt, {absl::Seconds(7), absl::Seconds(8), 9, "inproc"});
    metrics_.HandoffFailed(attempt);
    metrics_.AttemptEnded(attempt, Cause::kFinished);
  }
  MetricsPage Page() { return MetricsPage::Parse(prometheus::TextSerializer().Serialize(registry_.Collect())); }

  prometheus::Registry registry_;
  WorkerMetrics metrics_{registry_, "m", "both"};
};

TEST_F(WorkerMetricsTest, CountsWhatHappensToAnAttempt) {
  CountAll(AttemptOf(/*is_probe=*/false));
  const MetricsPage page = Page();
  EXPECT_EQ(page.Sum("baton_worker_queue_seconds_sum", {{"stage", "prefill"}}), 1);
  EXPECT_EQ(page.Sum("baton_worker_queue_seconds_sum", {{"stage", "decode"}}), 2);
  EXPECT_EQ(page.Sum("baton_worker_prefill_seconds_sum"), 3);
  EXPECT_EQ(page.Sum("baton_worker_prompt_tokens_computed_total"), 4);
  EXPECT_EQ(page.Sum("baton_worker_prompt_tokens_cached_total"), 5);
  EXPECT_EQ(page.Sum("baton_worker_prompt_tokens_received_total"), 6);
  EXPECT_EQ(page.Sum("baton_worker_output_tokens_sampled_total"), 1);
  EXPECT_EQ(page.Sum("baton_worker_kv_transfer_seconds_sum", {{"transport", "inproc"}}), 7);
  EXPECT_EQ(page.Sum("baton_worker_kv_transfer_exposed_seconds_sum", {{"transport", "inproc"}}), 8);
  EXPECT_EQ(page.Sum("baton_worker_kv_transfer_bytes_total", {{"transport", "inproc"}}), 9);
  EXPECT_EQ(page.Sum("baton_worker_kv_transfer_failures_total"), 1);
  EXPECT_EQ(page.Sum("baton_worker_attempts_total", {{"outcome", "finished"}, {"model", "m"}, {"role", "both"}}), 1);
  EXPECT_EQ(page.Sum("baton_worker_probes_total"), 0);
}

TEST_F(WorkerMetricsTest, AProbeCountsAsAProbeOnly) {
  CountAll(AttemptOf(/*is_probe=*/true));
  const MetricsPage page = Page();
  EXPECT_EQ(page.Sum("baton_worker_probes_total", {{"outcome", "finished"}}), 1);
  for (const MetricsSeries& series : page.series()) {
    if (series.name != "baton_worker_probes_total") {
      EXPECT_EQ(series.value, 0) << series.name;
    }
  }
}

TEST_F(WorkerMetricsTest, AStepCountsUnlessItHoldsProbesOnly) {
  ASSERT_OK_AND_ASSIGN(const auto pool, PagePool::Create({1, {.kv_heads = 1, .head_dim = 8, .page_tokens = 4}}, 4));
  Sequence probe(AttemptOf(/*is_probe=*/true), *pool);
  Sequence request(AttemptOf(/*is_probe=*/false), *pool);
  metrics_.StepDone({{.sequence = &probe, .tokens = 2, .sampled = {}}}, absl::Seconds(1));
  EXPECT_EQ(Page().Sum("baton_worker_step_seconds_count"), 0);
  metrics_.StepDone(
      {{.sequence = &probe, .tokens = 2, .sampled = {}}, {.sequence = &request, .tokens = 2, .sampled = {}}},
      absl::Seconds(1));
  EXPECT_EQ(Page().Sum("baton_worker_step_seconds_sum"), 1);
  EXPECT_EQ(Page().Sum("baton_worker_step_sequences_sum"), 2);
}

TEST_F(WorkerMetricsTest, TheAgeOfTheOldestQuarantineIsZeroWithoutQuarantinedPages) {
  const SteadyTime start;
  metrics_.SetQuarantine(start + absl::Seconds(2), start + absl::Seconds(9));
  EXPECT_EQ(Page().Sum("baton_worker_quarantine_oldest_seconds", {{"model", "m"}, {"role", "both"}}), 7);
  metrics_.SetQuarantine(std::nullopt, start + absl::Seconds(10));
  EXPECT_EQ(Page().Sum("baton_worker_quarantine_oldest_seconds", {{"model", "m"}, {"role", "both"}}), 0);
}

TEST_F(WorkerMetricsTest, AfterAChangeOfTheRoleTheFormerCountsStayAndTheFormerLevelsAreZero) {
  metrics_.SetLimits(8, 9);
  metrics_.SetSequences(3, 4);
  CountAll(AttemptOf(/*is_probe=*/false));
  metrics_.SetRole("prefill");
  CountAll(AttemptOf(/*is_probe=*/false));
  metrics_.SetSequences(1, 2);
  const MetricsPage page = Page();
  for (const char* role : {"both", "prefill"}) {
    EXPECT_EQ(page.Sum("baton_worker_prompt_tokens_computed_total", {{"role", role}}), 4) << role;
    EXPECT_EQ(page.Sum("baton_worker_attempts_total", {{"outcome", "finished"}, {"role", role}}), 1) << role;
    EXPECT_EQ(page.Sum("baton_worker_kv_transfer_bytes_total", {{"transport", "inproc"}, {"role", role}}), 9) << role;
  }
  EXPECT_EQ(page.Sum("baton_worker_running_sequences", {{"role", "both"}}), 0);
  EXPECT_EQ(page.Sum("baton_worker_max_running_sequences", {{"role", "both"}}), 0);
  EXPECT_EQ(page.Sum("baton_worker_running_sequences", {{"role", "prefill"}}), 1);
  EXPECT_EQ(page.Sum("baton_worker_max_running_sequences", {{"role", "prefill"}}), 8);
  metrics_.SetRole("both");
  EXPECT_EQ(Page().Sum("baton_worker_prompt_tokens_computed_total", {{"role", "both"}}), 4) << "counts go on";
}

TEST_F(WorkerMetricsTest, TheCountsOfTiersGoOnInTheNewRole) {
  metrics_.SetRole("both");
  KvTiersCounts counts{.tiers = {{TierKind::kFile, {}}}, .lost = 3};
  counts.tiers[0].second.pages = 7;
  counts.tiers[0].second.stored = 10;
  metrics_.SetTiers(counts, /*page_bytes=*/100);
  metrics_.SetRole("prefill");
  EXPECT_EQ(Page().Sum("baton_worker_kv_tier_pages", {{"tier", "file"}, {"role", "both"}}), 0);
  EXPECT_EQ(Page().Sum("baton_worker_kv_tier_bytes", {{"tier", "file"}, {"role", "prefill"}}), 700);
  counts.tiers[0].second.stored = 12;
  counts.lost = 4;
  metrics_.SetTiers(counts, /*page_bytes=*/100);
  const MetricsPage page = Page();
  EXPECT_EQ(page.Sum("baton_worker_kv_tier_stored_pages_total", {{"tier", "file"}, {"role", "both"}}), 10);
  EXPECT_EQ(page.Sum("baton_worker_kv_tier_stored_pages_total", {{"tier", "file"}, {"role", "prefill"}}), 2);
  EXPECT_EQ(page.Sum("baton_worker_kv_tier_dropped_pages_total", {{"reason", "evicted"}, {"role", "prefill"}}), 1);
}

TEST_F(WorkerMetricsTest, APageHasEachFamilyOnceAfterAChangeOfTheRole) {
  metrics_.SetRole("prefill");
  std::set<std::string> names;
  for (const prometheus::MetricFamily& family : registry_.Collect()) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name;
  }
}

}  // namespace
}  // namespace baton
