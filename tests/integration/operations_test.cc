// SPDX-License-Identifier: Apache-2.0
// The operators' view of each process: health, reflection, metrics.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cluster_test.h"
#include "golden.h"
#include "server_info.h"
#include "tests/files.h"

namespace baton::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

using Labels = std::map<std::string, std::string>;

constexpr char kLabel[] = "label-of-a-client";
constexpr char kUnknownModel[] = "model-of-nobody";

// A pair of workers for one model and a worker of role both for another model, so that each request's workers are
// known.
class OperationsTest : public ClusterTest {
 protected:
  static void SetUpTestSuite() {
    StartCluster({.workers = {Prefill("p0"), Decode("d0"), Both("b0", {"--model-name=alone"})}});
  }

  // Sends three requests that finish, one that the client cancels, and two that are refused.
  static void ServeKnownRequests(const std::string& model) {
    const GoldenCase& golden = GoldenCases()[3];  // 9 prompt tokens; its output index 5 is a stop token below
    v1::GenerateRequest request = GreedyRequest(golden.prompt, 12);
    request.set_model(model);
    request.set_request_label(kLabel);
    EXPECT_TRUE(Succeeded(Generate(request)));
    EXPECT_TRUE(Succeeded(Generate(request)));
    v1::GenerateRequest stopped = request;
    stopped.mutable_sampling()->add_stop_token_ids(golden.greedy_ids[5]);
    const Reply reply = Generate(stopped);
    EXPECT_TRUE(Succeeded(reply));
    EXPECT_EQ(reply.finish.usage().completion_tokens(), kStoppedTokens);
    v1::GenerateRequest cancelled = request;
    cancelled.mutable_sampling()->set_max_tokens(1500);
    EXPECT_EQ(Generate(cancelled, {.cancel_after_chunks = 2}).status.error_code(), grpc::StatusCode::CANCELLED);
    v1::GenerateRequest invalid = request;
    invalid.mutable_sampling()->set_max_tokens(1 << 20);
    EXPECT_EQ(Generate(invalid).status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    request.set_model(kUnknownModel);
    EXPECT_EQ(Generate(request).status.error_code(), grpc::StatusCode::NOT_FOUND);
    ASSERT_OK(cluster_->WaitIdle());
  }

  static MetricsPage Page(const std::string& process) {
    absl::StatusOr<MetricsPage> page = cluster_->Metrics(process);
    EXPECT_OK(page);
    return page.ok() ? *std::move(page) : MetricsPage();
  }

  static constexpr int kPromptTokens = 9;
  static constexpr int kStoppedTokens = 6;
};

TEST_F(OperationsTest, EveryProcessAnswersHealthChecks) {
  EXPECT_EQ(CheckHealth(cluster_->target()).value_or("?"), kServing);
  ASSERT_OK_AND_ASSIGN(const v1::GetStatusResponse status, cluster_->Status());
  ASSERT_EQ(status.workers_size(), 3);
  for (const v1::WorkerInfo& worker : status.workers()) {
    EXPECT_EQ(CheckHealth(worker.address()).value_or("?"), kServing) << worker.worker_id();
  }
}

TEST_F(OperationsTest, EveryProcessDescribesItsServicesToOldAndNewTools) {
  const std::map<std::string, std::pair<std::string, std::vector<std::string>>> expected = {
      {"prefill", {"baton.v1.PrefillWorker", {"Prefill"}}},
      {"decode", {"baton.v1.DecodeWorker", {"Decode", "Migrate"}}},
      {"both", {"baton.v1.DecodeWorker", {"Decode", "Migrate"}}}};
  ASSERT_OK_AND_ASSIGN(const v1::GetStatusResponse status, cluster_->Status());
  ASSERT_EQ(status.workers_size(), 3);
  for (const std::string version : {"v1", "v1alpha"}) {
    ASSERT_OK_AND_ASSIGN(const std::vector<std::string> router, ListServices(cluster_->target(), version));
    EXPECT_THAT(router, IsSupersetOf({"baton.v1.Inference", "baton.v1.Admin"})) << version;
    ASSERT_OK_AND_ASSIGN(const std::vector<std::string> methods,
                         ListMethods(cluster_->target(), version, "baton.v1.Inference"));
    EXPECT_THAT(methods, ElementsAre("Generate", "Tokenize", "Detokenize", "ListModels")) << version;
    for (const v1::WorkerInfo& worker : status.workers()) {
      const auto& [service, methods_of_role] = expected.at(worker.role());
      ASSERT_OK_AND_ASSIGN(const std::vector<std::string> services, ListServices(worker.address(), version));
      EXPECT_THAT(services, IsSupersetOf({service, std::string("baton.v1.WorkerControl")})) << worker.worker_id();
      ASSERT_OK_AND_ASSIGN(const std::vector<std::string> served, ListMethods(worker.address(), version, service));
      EXPECT_THAT(served, ElementsAreArray(methods_of_role)) << worker.worker_id();
    }
  }
}

TEST_F(OperationsTest, TheRoutersMetricsCountWhatHappened) {
  for (const std::string model : {"demo", "alone"}) {
    const MetricsPage before = Page("router");
    ServeKnownRequests(model);
    const MetricsPage after = Page("router");
    const auto change = [&](const std::string& name, Labels labels) {
      labels.insert({{"model", model}, {"role", "router"}});
      return after.Sum(name, labels) - before.Sum(name, labels);
    };
    EXPECT_EQ(change("baton_requests_total", {{"outcome", "length"}}), 2);
    EXPECT_EQ(change("baton_requests_total", {{"outcome", "stop"}}), 1);
    EXPECT_EQ(change("baton_requests_total", {{"outcome", "CANCELLED"}}), 1);
    EXPECT_EQ(change("baton_requests_total", {{"outcome", "INVALID_ARGUMENT"}}), 1);
    EXPECT_EQ(change("baton_attempts_total", {{"outcome", "finished"}}), 3);
    EXPECT_EQ(change("baton_attempts_total", {{"outcome", "cancelled"}}), 1);
    EXPECT_EQ(change("baton_attempts_total", {}), 4);
    EXPECT_EQ(change("baton_prompt_tokens_total", {}), 3 * kPromptTokens);
    EXPECT_EQ(change("baton_generated_tokens_total", {}), 12 + 12 + kStoppedTokens);
    EXPECT_EQ(change("baton_time_to_first_token_seconds_count", {}), 4);
    EXPECT_EQ(change("baton_time_per_output_token_seconds_count", {}), 3);
    EXPECT_GT(change("baton_inter_token_latency_seconds_count", {}), 0);
    EXPECT_EQ(change("baton_request_duration_seconds_count", {}), 5);
    EXPECT_EQ(change("baton_request_queue_seconds_count", {}), 4);
  }
}

TEST_F(OperationsTest, TheWorkersMetricsCountWhatHappened) {
  ServeKnownRequests("demo");
  ServeKnownRequests("alone");

  struct Worker {
    std::string name;
    Labels labels;
    std::string stage;                 // of its queue
    std::vector<std::string> counted;  // what this kind of worker must have counted
    std::vector<std::string> outcomes;
  };
  const std::vector<std::string> handing_over = {
      "baton_worker_prefill_seconds_count", "baton_worker_prompt_tokens_computed_total",
      "baton_worker_kv_transfer_seconds_count", "baton_worker_kv_transfer_exposed_seconds_count",
      "baton_worker_kv_transfer_bytes_total"};
  const std::vector<std::string> receiving = {"baton_worker_prompt_tokens_received_total"};
  const std::vector<std::string> alone = {"baton_worker_prefill_seconds_count",
                                          "baton_worker_prompt_tokens_computed_total"};
  for (const Worker& worker :
       {Worker{"p0", {{"model", "demo"}, {"role", "prefill"}}, "prefill", handing_over, {"handed_over"}},
        Worker{"d0", {{"model", "demo"}, {"role", "decode"}}, "decode", receiving, {"finished", "cancelled"}},
        Worker{"b0", {{"model", "alone"}, {"role", "both"}}, "prefill", alone, {"finished", "cancelled"}}}) {
    SCOPED_TRACE(worker.name);
    const MetricsPage page = Page(worker.name);
    const auto sum = [&](const std::string& name, Labels labels = {}) {
      labels.insert(worker.labels.begin(), worker.labels.end());
      return page.Sum(name, labels);
    };
    for (const std::string& name : worker.counted) EXPECT_GT(sum(name), 0) << name;
    for (const std::string& outcome : worker.outcomes) {
      EXPECT_GT(sum("baton_worker_attempts_total", {{"outcome", outcome}}), 0) << outcome;
    }
    EXPECT_GT(sum("baton_worker_queue_seconds_count", {{"stage", worker.stage}}), 0);
    EXPECT_GT(sum("baton_worker_step_seconds_count"), 0);
    EXPECT_GT(sum("baton_worker_step_sequences_count"), 0);
    EXPECT_GT(sum("baton_worker_output_tokens_sampled_total"), 0);
    EXPECT_GT(sum("baton_worker_kv_pages", {{"state", "free"}}), 0);

    // These metrics exist and are 0, because nothing that they count has happened.
    std::set<std::string> shown;
    for (const MetricsSeries& series : page.series()) {
      const auto state = series.labels.find("state");
      shown.insert(series.name + (state == series.labels.end() ? "" : " " + state->second));
    }
    for (const std::string name :
         {"baton_worker_kv_transfer_failures_total", "baton_worker_running_sequences", "baton_worker_waiting_sequences",
          "baton_worker_kv_pages used", "baton_worker_kv_pages cached", "baton_worker_kv_pages quarantined"}) {
      EXPECT_THAT(shown, Contains(name));
    }
    EXPECT_EQ(sum("baton_worker_kv_transfer_failures_total"), 0);
  }
}

// A name has one meaning: else a sum over all processes would mix requests with attempts.
TEST_F(OperationsTest, RouterAndWorkersShareNoName) {
  ServeKnownRequests("demo");
  std::set<std::string> of_router;
  const MetricsPage router = Page("router");
  for (const MetricsSeries& series : router.series()) of_router.insert(series.name);
  for (const std::string process : {"p0", "d0", "b0"}) {
    const MetricsPage page = Page(process);
    for (const MetricsSeries& series : page.series()) {
      if (series.name == "baton_build_info" || series.name.rfind("process_", 0) == 0) continue;
      EXPECT_EQ(series.name.rfind("baton_worker_", 0), 0) << series.name;
      EXPECT_EQ(of_router.count(series.name), 0) << series.name;
    }
  }
}

// Returns the output of `promtool check metrics` for a page; empty for a good page.
std::string PromtoolSays(const MetricsPage& page) {
  const std::string file = absl::StrCat(::testing::TempDir(), "page-", getpid());
  std::ofstream(file) << page.text();
  const std::string command = absl::StrCat("promtool check metrics <", file, " 2>&1");
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "popen failed";
  std::string said;
  char piece[4096];
  while (const size_t count = fread(piece, 1, sizeof(piece), pipe)) said.append(piece, count);
  const int status = pclose(pipe);
  std::filesystem::remove(file);
  if (status != 0 && said.empty()) said = "no message";
  return status == 0 ? said : absl::StrCat(said, "(promtool of the Debian package prometheus, status ", status, ")");
}

TEST_F(OperationsTest, PromtoolHasNothingToSayAboutThePages) {
  ServeKnownRequests("demo");
  ServeKnownRequests("alone");
  for (const std::string process : {"router", "p0", "d0", "b0"}) EXPECT_EQ(PromtoolSays(Page(process)), "") << process;
  EXPECT_NE(PromtoolSays(MetricsPage::Parse("baton_waiting_milliseconds 1\n")), "");
}

// tests/unit/metrics sees to the tables; a metric that no test there knows would be missing.
TEST_F(OperationsTest, EveryMetricIsDocumented) {
  ServeKnownRequests("demo");
  const std::string doc = ReadFile(SourceFolder() / "docs/metrics.md");
  for (const std::string process : {"router", "p0", "d0", "b0"}) {
    const MetricsPage page = Page(process);
    for (const absl::string_view line : absl::StrSplit(page.text(), '\n')) {
      const std::vector<std::string> words = absl::StrSplit(line, ' ');
      if (!absl::StartsWith(line, "# TYPE ")) continue;
      EXPECT_TRUE(absl::StrContains(doc, absl::StrCat("| `", words[2], "` | ", words[3], " |")))
          << process << ": " << line;
    }
  }
}

// Returns the counters and histograms above 0, without the probes' metrics.
std::vector<std::string> CountedOn(const MetricsPage& page) {
  std::vector<std::string> names;
  for (const MetricsSeries& series : page.series()) {
    const bool counts = std::regex_search(series.name, std::regex("^baton_.*(_total|_count|_sum)$"));
    if (counts && series.value != 0 && series.name != "baton_worker_probes_total") names.push_back(series.name);
  }
  return names;
}

TEST(OperationsOfAnIdleClusterTest, ProbesCountAsProbesOnly) {
  ASSERT_OK_AND_ASSIGN(const auto cluster,
                       Cluster::Start({.workers = {Prefill("p0"), Decode("d0"), Both("b0", {"--model-name=alone"})}}));
  ASSERT_OK(cluster->WaitIdle());
  for (const auto& [process, outcome] :
       std::map<std::string, std::string>{{"p0", "handed_over"}, {"d0", "finished"}, {"b0", "finished"}}) {
    ASSERT_OK_AND_ASSIGN(const MetricsPage page, cluster->Metrics(process));
    EXPECT_EQ(page.Sum("baton_worker_probes_total", {{"outcome", outcome}}), 1) << process;
    EXPECT_THAT(CountedOn(page), IsEmpty()) << process;
  }
  ASSERT_OK_AND_ASSIGN(const MetricsPage page, cluster->Metrics("router"));
  EXPECT_THAT(CountedOn(page), IsEmpty());
}

// Returns the lines of a process's log that name a request, without debug lines.
std::vector<std::string> RequestLines(const std::string& log) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(log, '\n')) {
    if (absl::StrContains(line, "request=") && !absl::StrContains(line, " DEBUG ")) lines.emplace_back(line);
  }
  return lines;
}

TEST_F(OperationsTest, ARequestLeavesOneLineInTheLogs) {
  constexpr size_t kWhole = 1 << 20;
  std::map<std::string, size_t> before;
  for (const std::string process : {"router", "p0", "d0", "b0"}) {
    before[process] = RequestLines(cluster_->process(process).Log(kWhole)).size();
  }
  ServeKnownRequests("demo");
  ServeKnownRequests("alone");
  for (const auto& [process, count] : before) {
    const std::vector<std::string> lines = RequestLines(cluster_->process(process).Log(kWhole));
    EXPECT_EQ(lines.size() - count, process == "router" ? 12 : 0) << process << ":\n" << absl::StrJoin(lines, "\n");
  }
}

TEST_F(OperationsTest, NoLabelHoldsWhatARequestBrought) {
  ServeKnownRequests("demo");
  ServeKnownRequests("alone");

  const std::set<std::string> of_all = {"baton_running_requests", "baton_max_running_requests", "baton_ready_pairs",
                                        "baton_workers"};
  const std::set<std::string> known = {"model",     "role",      "stage", "state",  "outcome", "cause", "prefill",
                                       "transport", "treatment", "tier",  "reason", "result",  "le"};
  const std::set<std::string> of_every_process = {"baton_build_info"};
  const std::regex id("[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}");
  int checked = 0;
  for (const std::string process : {"router", "p0", "d0", "b0"}) {
    const MetricsPage page = Page(process);
    for (const MetricsSeries& series : page.series()) {
      if (series.name.rfind("baton_", 0) != 0 || of_every_process.count(series.name) > 0) continue;
      SCOPED_TRACE(process + " " + series.name);
      ++checked;
      EXPECT_EQ(series.labels.count("role"), 1);
      EXPECT_EQ(series.labels.count("model"), of_all.count(series.name) > 0 ? 0 : 1);
      for (const auto& [name, value] : series.labels) {
        EXPECT_THAT(known, Contains(name));
        EXPECT_FALSE(name != "le" && std::regex_search(value, id)) << value;
        EXPECT_EQ(value.find(kLabel), std::string::npos);
        EXPECT_EQ(value.find(kUnknownModel), std::string::npos);
      }
    }
  }
  EXPECT_GT(checked, 100);
}

}  // namespace
}  // namespace baton::testing
