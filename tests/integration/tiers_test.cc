// SPDX-License-Identifier: Apache-2.0
// Pages that a worker's pool evicts, or that a restart loses, come back from a tier. Answers do not change.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cluster_test.h"
#include "common/steady_time.h"
#include "tests/files.h"
#include "tests/temp_folder.h"

namespace baton::testing {
namespace {

using ::testing::HasSubstr;

// Some 300 tokens with logprobs behind them, of another beginning for each `day`.
v1::GenerateRequest Request(int day) {
  std::string prompt;
  for (int i = 0; i < 60; ++i) prompt += absl::StrCat("The ", day + i, "th day was like the one before. ");
  v1::GenerateRequest request = GreedyRequest(prompt, 8);
  request.mutable_sampling()->set_logprobs(3);
  return request;
}

// Steps of a model that computes a prompt of Request in some seconds: a load pays even on a busy machine.
std::vector<std::string> SlowSteps() { return {"--device=replay", "--replay-prefill-speed=250", "--replay-step=1ms"}; }

double Sum(Cluster& cluster, const std::string& worker, const std::string& metric) {
  const absl::StatusOr<MetricsPage> page = cluster.Metrics(worker);
  return page.ok() ? page->Sum(metric) : -1;
}

// Waits until the tiers of `worker` have `pages` pages.
bool WaitStored(Cluster& cluster, const std::string& worker, double pages) {
  const SteadyTime give_up = SteadyTime::Now() + kPatience;
  while (Sum(cluster, worker, "baton_worker_kv_tier_pages") < pages) {
    if (SteadyTime::Now() >= give_up) return false;
    absl::SleepFor(absl::Milliseconds(20));
  }
  return true;
}

class TiersTest : public ::testing::Test {
 protected:
  std::string file() const { return (folder_.path() / "tier").string(); }
  std::vector<std::string> WithFile() const {
    return {absl::StrCat("--kv-tier-file=", file()), "--kv-tier-file-size=32MiB"};
  }
  // Flips a bit of each page in the file: the second half holds pages only.
  void DamageEveryPage() const {
    std::fstream stream(file(), std::ios::in | std::ios::out | std::ios::binary);
    const auto end = static_cast<std::streamoff>(std::filesystem::file_size(file()));
    for (std::streamoff at = 64 << 10; at + 4096 <= end; at += 4096) {
      stream.seekg(at);
      const int byte = stream.get();
      if (byte == 0) continue;  // perhaps no page
      stream.seekp(at);
      stream.put(static_cast<char>(byte ^ 1));
    }
    ASSERT_TRUE(stream.good());
  }

  TempFolder folder_;
};

TEST_F(TiersTest, AWorkerRestartedOnItsFileStartsWarmAndAnswersTheSame) {
  ASSERT_OK_AND_ASSIGN(const auto cluster,
                       Cluster::Start({.workers = {Both("b0", WithFile())}, .worker_flags = SlowSteps()}));
  const Reply first = cluster->client().Generate(Request(1));
  ASSERT_TRUE(Succeeded(first));
  EXPECT_EQ(first.finish.usage().cached_prompt_tokens(), 0u);
  const double pages = static_cast<double>(first.finish.usage().prompt_tokens() / 16);
  ASSERT_TRUE(WaitStored(*cluster, "b0", pages));
  for (const bool killed : {true, false}) {
    if (!killed) {
      ASSERT_OK(cluster->Terminate("b0"));
    }
    ASSERT_OK(cluster->Restart("b0"));  // kills a process that runs
    ASSERT_OK(cluster->WaitReady());
    const Reply warm = cluster->client().Generate(Request(1));
    ASSERT_TRUE(Succeeded(warm));
    EXPECT_EQ(warm.answer, first.answer);
    // A load that is late on a busy machine brings fewer pages.
    EXPECT_GE(warm.finish.usage().cached_prompt_tokens(), 16u);
    EXPECT_OK(cluster->WaitIdle());
    EXPECT_GE(Sum(*cluster, "b0", "baton_worker_kv_tier_loaded_pages_total"), 1);
    EXPECT_GE(Sum(*cluster, "b0", "baton_worker_kv_tier_load_seconds_count"), 1);
  }
  ASSERT_OK(cluster->Terminate("b0"));
  DamageEveryPage();
  ASSERT_OK(cluster->Restart("b0"));
  ASSERT_OK(cluster->WaitReady());
  const Reply cold = cluster->client().Generate(Request(1));
  ASSERT_TRUE(Succeeded(cold));
  EXPECT_EQ(cold.answer, first.answer) << "damaged pages are computed again";
  EXPECT_OK(cluster->WaitIdle());
  EXPECT_GE(Sum(*cluster, "b0", "baton_worker_kv_tier_corrupt_pages_total"), 1);
}

TEST_F(TiersTest, PagesThatThePoolEvictedComeBackAndTravelToTheDecodeWorker) {
  ASSERT_OK_AND_ASSIGN(
      const auto cluster,
      Cluster::Start({.workers = {Prefill("p0", {"--pages=64", "--kv-tier-memory=32MiB"}), Decode("d0")},
                      .worker_flags = SlowSteps()}));
  std::vector<Answer> answers;
  for (int round = 0; round < 2; ++round) {
    for (int prompt = 0; prompt < 3; ++prompt) {
      const Reply reply = cluster->client().Generate(Request(1000 + 1000 * prompt));
      ASSERT_TRUE(Succeeded(reply));
      if (round == 0) {
        ASSERT_GT(reply.finish.usage().prompt_tokens(), 64u * 16 / 2) << "two prompts would fit";
        answers.push_back(reply.answer);
        const double pages = static_cast<double>(reply.finish.usage().prompt_tokens() / 16);
        ASSERT_TRUE(WaitStored(*cluster, "p0", (prompt + 1) * (pages - 2)));
      } else {
        EXPECT_EQ(reply.answer, answers[prompt]);
      }
    }
  }
  EXPECT_OK(cluster->WaitIdle());
  EXPECT_GT(Sum(*cluster, "p0", "baton_worker_kv_tier_hit_pages_total"), 0);
  EXPECT_GT(Sum(*cluster, "p0", "baton_worker_kv_tier_loaded_pages_total"), 0);
}

TEST_F(TiersTest, ManyRequestsAtOnceWithATinyPoolAnswerAsWithoutTiers) {
  std::vector<v1::GenerateRequest> requests;
  for (int i = 0; i < 24; ++i) requests.push_back(Request(1000 + 500 * (i % 6)));
  std::vector<Answer> expected;
  {
    ASSERT_OK_AND_ASSIGN(const auto cluster, Cluster::Start({.workers = {Both("b0", {"--pages=100"})}}));
    for (const Reply& reply : cluster->client().GenerateAll(requests)) expected.push_back(reply.answer);
  }
  std::vector<std::string> flags = WithFile();
  flags.insert(flags.end(), {"--pages=100", "--kv-tier-memory=1MiB"});
  ASSERT_OK_AND_ASSIGN(const auto cluster, Cluster::Start({.workers = {Both("b0", flags)}}));
  for (int round = 0; round < 3; ++round) {
    const std::vector<Reply> replies = cluster->client().GenerateAll(requests);
    for (size_t i = 0; i < replies.size(); ++i) {
      ASSERT_TRUE(Succeeded(replies[i]));
      EXPECT_EQ(replies[i].answer, expected[i]) << i;
    }
    // Clients that go away while loads run: nothing may leak.
    const std::vector<Reply> cancelled = cluster->client().GenerateAll(requests, {.cancel_after_chunks = 1});
    EXPECT_EQ(cancelled.size(), requests.size());
    EXPECT_OK(cluster->WaitIdle());
  }
  // Whether a load pays depends on the machine.
  EXPECT_GT(Sum(*cluster, "b0", "baton_worker_kv_tier_hit_pages_total"), 0);
}

}  // namespace
}  // namespace baton::testing
