// What operators see of each process: health, reflection, metrics.
#include <gmock/gmock.h>

#include <regex>

#include "cluster_test.h"
#include "golden.h"
#include "server_info.h"

namespace baton::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsSupersetOf;

using Labels = std::map<std::string, std::string>;

constexpr char kLabel[] = "label-of-a-client";
constexpr char kUnknownModel[] = "model-of-nobody";

// A pair of workers for one model and a worker that does both for another, so that it is known who does what.
class OperationsTest : public ClusterTest {
 protected:
  static void SetUpTestSuite() {
    StartCluster({.workers = {Prefill("p0"), Decode("d0"), Both("b0", {"--model-name=alone"})}});
  }

  // Three that finish, one that the client cancels, two that are refused.
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
    EXPECT_EQ(change("baton_attempts_total", {{"cause", "finished"}}), 3);
    EXPECT_EQ(change("baton_attempts_total", {{"cause", "cancelled"}}), 1);
    EXPECT_EQ(change("baton_attempts_total", {}), 4);
    EXPECT_EQ(change("baton_prompt_tokens_total", {}), 3 * kPromptTokens);
    EXPECT_EQ(change("baton_generated_tokens_total", {}), 12 + 12 + kStoppedTokens);
    EXPECT_EQ(change("baton_time_to_first_token_seconds_count", {}), 4);
    EXPECT_EQ(change("baton_time_per_output_token_seconds_count", {}), 3);
    EXPECT_GE(change("baton_inter_token_latency_seconds_count", {}), 11 + 11 + kStoppedTokens - 1);
    EXPECT_EQ(change("baton_request_duration_seconds_count", {}), 5);
    EXPECT_EQ(change("baton_queue_seconds_count", {{"stage", "router"}}), 4);
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
    std::vector<std::string> causes;
  };
  const std::vector<std::string> handing_over = {
      "baton_prefill_seconds_count", "baton_prompt_tokens_total", "baton_kv_transfer_seconds_count",
      "baton_kv_transfer_exposed_seconds_count", "baton_kv_transfer_bytes_total"};
  const std::vector<std::string> alone = {"baton_prefill_seconds_count", "baton_prompt_tokens_total"};
  for (const Worker& worker :
       {Worker{"p0", {{"model", "demo"}, {"role", "prefill"}}, "prefill", handing_over, {"handed_over"}},
        Worker{"d0", {{"model", "demo"}, {"role", "decode"}}, "decode", {}, {"finished", "cancelled"}},
        Worker{"b0", {{"model", "alone"}, {"role", "both"}}, "prefill", alone, {"finished", "cancelled"}}}) {
    SCOPED_TRACE(worker.name);
    const MetricsPage page = Page(worker.name);
    const auto sum = [&](const std::string& name, Labels labels = {}) {
      labels.insert(worker.labels.begin(), worker.labels.end());
      return page.Sum(name, labels);
    };
    for (const std::string& name : worker.counted) EXPECT_GT(sum(name), 0) << name;
    for (const std::string& cause : worker.causes) {
      EXPECT_GT(sum("baton_attempts_total", {{"cause", cause}}), 0) << cause;
    }
    EXPECT_GT(sum("baton_queue_seconds_count", {{"stage", worker.stage}}), 0);
    EXPECT_GT(sum("baton_batch_sequences_count"), 0);
    EXPECT_GT(sum("baton_generated_tokens_total"), 0);
    EXPECT_GT(sum("baton_pages", {{"state", "free"}}), 0);

    // Nothing happened that these count: they are there, and 0.
    std::set<std::string> shown;
    for (const MetricsSeries& series : page.series()) {
      const auto state = series.labels.find("state");
      shown.insert(series.name + (state == series.labels.end() ? "" : " " + state->second));
    }
    for (const std::string name :
         {"baton_kv_transfer_failures_total", "baton_running_sequences", "baton_waiting_sequences", "baton_pages used",
          "baton_pages cached", "baton_pages quarantined"}) {
      EXPECT_THAT(shown, Contains(name));
    }
    EXPECT_EQ(sum("baton_kv_transfer_failures_total"), 0);
  }
}

TEST_F(OperationsTest, NoLabelHoldsWhatARequestBrought) {
  ServeKnownRequests("demo");
  ServeKnownRequests("alone");

  const std::set<std::string> of_all = {"baton_running_requests", "baton_ready_pairs", "baton_workers"};
  const std::set<std::string> known = {"model", "role", "stage", "state", "outcome", "cause", "prefill", "le"};
  const std::regex id("[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}");
  int checked = 0;
  for (const std::string process : {"router", "p0", "d0", "b0"}) {
    const MetricsPage page = Page(process);
    for (const MetricsSeries& series : page.series()) {
      if (series.name.rfind("baton_", 0) != 0) continue;  // those of the metrics server
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
