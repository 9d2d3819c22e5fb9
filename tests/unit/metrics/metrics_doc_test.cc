// SPDX-License-Identifier: Apache-2.0
// Keeps the tables of docs/metrics.md equal to what router and workers register.
#include <gtest/gtest.h>
#include <prometheus/registry.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/metrics_buckets.h"
#include "common/metrics_process.h"
#include "router/metrics.h"
#include "tests/files.h"
#include "worker/metrics.h"

namespace baton {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr char kFile[] = "docs/metrics.md";
constexpr char kRegenerate[] = "BATON_WRITE_DOCS=1 build/release/tests/metrics_doc_test";

// Families appear with their first series: everything happens once.
std::vector<MetricFamily> RouterFamilies() {
  static prometheus::Registry registry;
  router::RouterMetrics metrics(registry);
  v1::Usage usage;
  usage.set_completion_tokens(2);
  metrics.Queued("m", absl::Seconds(1));
  metrics.FirstToken("m", absl::Seconds(1));
  metrics.NextTokens("m", 1, absl::Seconds(1));
  metrics.Finished("m", usage, {});
  metrics.RequestEnded("m", "stop", absl::Seconds(1));
  metrics.ObjectivesKnown("m", /*ttft_met=*/true, /*tpot_met=*/true);
  metrics.Late("m", router::WhenLate::kRefuse);
  metrics.Placed("m", /*local=*/true, /*cached_tokens=*/1);
  metrics.AttemptEnded("m", Cause::kFinished);
  metrics.Resumed("m", Cause::kPreempted, absl::Seconds(1));
  metrics.TokenDisagreement("m");
  metrics.SetMaxRequests(1);
  metrics.SetRunningRequests(1);
  metrics.SetWorkers({{"ready", 1}});
  metrics.SetReadyPairs(1);
  metrics.SetBalance("m", "prefill", 1, 0.5);
  metrics.RoleSwitched("m", "decode", /*taken=*/true);
  return registry.Collect();
}

std::vector<MetricFamily> WorkerFamilies() {
  static prometheus::Registry registry;
  WorkerMetrics metrics(registry, "m", "both");
  Attempt attempt;
  metrics.AttemptEnded(attempt, Cause::kFinished);
  metrics.HandedOver(attempt, {.transfer = {}, .exposed = {}, .bytes = 0, .transport = "ucx:tcp"});
  attempt.is_probe = true;
  metrics.AttemptEnded(attempt, Cause::kFinished);
  return registry.Collect();
}

std::string TypeName(MetricType type) {
  switch (type) {
    case MetricType::Counter: return "counter";
    case MetricType::Gauge: return "gauge";
    case MetricType::Histogram: return "histogram";
    default: return "?";
  }
}

// The word of the name that says what is counted or measured.
std::string UnitOf(const std::string& name) {
  const std::vector<std::string> words = absl::StrSplit(name, '_');
  for (const char* unit :
       {"seconds", "bytes", "tokens", "disagreements", "sequences", "pages", "attempts", "probes", "requests",
        "placements", "failures", "pairs", "workers", "switches", "ratio", "fds", "info"}) {
    if (std::find(words.begin(), words.end(), unit) != words.end()) return unit;
  }
  return name == "baton_slo_attained_total" ? "requests" : "";
}

// The range in which the family's buckets resolve a p95; empty for what is no histogram.
std::string Resolution(const MetricFamily& family) {
  if (family.type != MetricType::Histogram) return "";
  std::vector<double> boundaries;
  for (const auto& bucket : family.metric[0].histogram.bucket) boundaries.push_back(bucket.upper_bound);
  boundaries.pop_back();  // infinity
  for (const BucketSet& set : AllBucketSets()) {
    if (set.boundaries == boundaries) return absl::StrCat(set.resolved_from, " to ", set.resolved_to);
  }
  return "?";
}

std::string Table(std::vector<MetricFamily> families) {
  std::sort(families.begin(), families.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  std::string table = "| name | type | labels | unit | p95 resolved | meaning |\n|---|---|---|---|---|---|\n";
  for (const MetricFamily& family : families) {
    std::set<std::string> labels;
    for (const auto& metric : family.metric) {
      for (const auto& label : metric.label) labels.insert(label.name);
    }
    absl::StrAppend(&table, "| `", family.name, "` | ", TypeName(family.type), " | ", absl::StrJoin(labels, ", "),
                    " | ", UnitOf(family.name), " | ", Resolution(family), " | ", family.help, " |\n");
  }
  return table;
}

std::string BucketTable() {
  std::string table = "| buckets for | p95 resolved | boundaries |\n|---|---|---|\n";
  for (const BucketSet& set : AllBucketSets()) {
    absl::StrAppend(&table, "| ", std::string(set.quantity), " | ", set.resolved_from, " to ", set.resolved_to, " | ",
                    absl::StrJoin(set.boundaries, ", "), " |\n");
  }
  return table;
}

// `text` with `content` between the marks of `part`; empty when it has no such marks.
std::string WithPart(const std::string& text, const std::string& part, const std::string& content) {
  const std::string begin = absl::StrCat("<!-- begin ", part, " -->\n");
  const std::string end = absl::StrCat("<!-- end ", part, " -->");
  const size_t from = text.find(begin);
  const size_t to = text.find(end);
  if (from == std::string::npos || to == std::string::npos || to < from) return "";
  return absl::StrCat(text.substr(0, from + begin.size()), content, text.substr(to));
}

TEST(MetricsDocTest, TheTablesAreThoseOfTheRegistries) {
  const std::string path = testing::SourceFolder() / kFile;
  const std::string present = testing::ReadFile(path);
  std::string wanted = present;
  for (const auto& [part, content] :
       std::vector<std::pair<std::string, std::string>>{{"router", Table(RouterFamilies())},
                                                        {"worker", Table(WorkerFamilies())},
                                                        {"process", Table(ProcessMetrics().Collect())},
                                                        {"buckets", BucketTable()}}) {
    wanted = WithPart(wanted, part, content);
    ASSERT_NE(wanted, "") << kFile << " has no marks for the generated part \"" << part << "\"";
  }
  if (std::getenv("BATON_WRITE_DOCS") != nullptr) {  // NOLINT(concurrency-mt-unsafe): this program has one thread
    std::ofstream(path) << wanted;
    return;
  }
  EXPECT_TRUE(present == wanted) << kFile << " is out of date. Write its tables anew with: " << kRegenerate;
}

TEST(MetricsDocTest, EveryMetricHasAUnitAndAMeaning) {
  for (const auto& families : {RouterFamilies(), WorkerFamilies(), ProcessMetrics().Collect()}) {
    for (const MetricFamily& family : families) {
      EXPECT_NE(UnitOf(family.name), "") << family.name;
      EXPECT_GT(family.help.size(), 10u) << family.name;
      EXPECT_NE(Resolution(family), "?") << family.name;
    }
  }
}

}  // namespace
}  // namespace baton
