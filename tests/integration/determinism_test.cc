// SPDX-License-Identifier: Apache-2.0
// I5: the same requests give the same tokens and bitwise the same logprobs. Batch, chunks, workers, preemption and a
// worker's death change nothing.
#include <gmock/gmock.h>

#include <optional>

#include "background_load.h"
#include "cluster_test.h"
#include "golden.h"

namespace baton::testing {
namespace {

constexpr int kRequests = 40;

// Greedy and seeded, with penalties, truncation, bias, stops; all with logprobs.
v1::GenerateRequest MixedRequest(int i) {
  const GoldenCase& golden = GoldenCases()[i % GoldenCases().size()];
  // The one prompt of 1102 tokens comes once.
  const std::string& prompt = golden.prompt_ids.size() > 1000 && i > 12 ? GoldenCases()[8].prompt : golden.prompt;
  // The long answers of some outlast the prefill of all others: together they need more pages than a small pool has.
  v1::GenerateRequest request = GreedyRequest(prompt, (i % 4 == 1 ? 140 : 24) + i);
  v1::SamplingParams& sampling = *request.mutable_sampling();
  sampling.set_logprobs(3);
  if (i % 2 == 1) {
    sampling.set_temperature(0.6F + 0.05F * static_cast<float>(i % 16));
    sampling.set_seed(uint64_t{7919} * i);
  }
  switch (i % 5) {
    case 0: break;
    case 1:
      sampling.set_top_k(40);
      sampling.set_top_p(0.95);
      break;
    case 2: sampling.set_repetition_penalty(1.2); break;
    case 3:
      sampling.set_presence_penalty(0.8);
      sampling.set_frequency_penalty(0.4);
      sampling.set_min_tokens(8);
      break;
    case 4:
      sampling.set_min_p(0.05);
      (*sampling.mutable_logit_bias())[golden.greedy_ids[2]] = -100;
      sampling.set_ignore_eos(false);
      break;
    default: break;
  }
  return request;
}

class DeterminismTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { AnswerAlone(kRequests, /*shipped_numerics=*/false); }

  // Runs each of `requests` requests alone, on one prefill and one decode worker. All of the suite's workers have these
  // numerics.
  static void AnswerAlone(int requests, bool shipped_numerics) {
    shipped_numerics_ = shipped_numerics;
    requests_.clear();
    alone_.clear();
    for (int i = 0; i < requests; ++i) requests_.push_back(MixedRequest(i));
    ASSERT_OK_AND_ASSIGN(const auto cluster, Start({.workers = {Prefill("p0"), Decode("d0")}}));
    for (const v1::GenerateRequest& request : requests_) {
      const Reply reply = cluster->client().Generate(request);
      ASSERT_TRUE(Succeeded(reply));
      alone_.push_back(reply.answer);
    }
  }

  void SetUp() override { ASSERT_EQ(alone_.size(), requests_.size()); }

  static absl::StatusOr<std::unique_ptr<Cluster>> Start(ClusterSpec spec) {
    spec.shipped_numerics = shipped_numerics_;
    return Cluster::Start(std::move(spec));
  }

  static void ExpectAsAlone(const std::vector<Reply>& replies) {
    ASSERT_EQ(replies.size(), alone_.size());
    for (size_t i = 0; i < replies.size(); ++i) {
      ASSERT_TRUE(Succeeded(replies[i])) << "request " << i;
      EXPECT_EQ(replies[i].answer, alone_[i]) << "request " << i;
    }
  }

  // Runs all requests at once on a cluster of these workers, then calls `inspect` with the cluster.
  static std::vector<Reply> RunOn(ClusterSpec spec, const std::function<void(Cluster&)>& inspect = nullptr) {
    const auto cluster = Start(std::move(spec));
    EXPECT_OK(cluster);
    if (!cluster.ok()) return {};
    std::vector<Reply> replies = (*cluster)->client().GenerateAll(requests_);
    EXPECT_OK((*cluster)->WaitIdle());
    if (inspect) inspect(**cluster);
    return replies;
  }

  static double StepsOf(Cluster& cluster, const std::string& worker) {
    const absl::StatusOr<MetricsPage> page = cluster.Metrics(worker);
    EXPECT_OK(page);
    return page.ok() ? page->Sum("baton_worker_step_seconds_count") : 0;
  }

  static int CountAttemptsEndedBy(const std::vector<Reply>& replies, const std::string& cause) {
    int count = 0;
    for (const Reply& reply : replies) {
      for (const v1::AttemptInfo& attempt : reply.finish.attempts()) count += attempt.ended_by() == cause ? 1 : 0;
    }
    return count;
  }

  // The machine's speed decides how many requests run at once, and so whether pages run out: several tries.
  static void ExpectTheSameThroughPreemption(const ClusterSpec& spec) {
    int preempted = 0;
    for (int tries = 0; tries < 5 && preempted == 0; ++tries) {
      const std::vector<Reply> replies = RunOn(spec);
      ExpectAsAlone(replies);
      preempted = CountAttemptsEndedBy(replies, "preempted");
    }
    EXPECT_GT(preempted, 0);
  }

  static void ExpectTheSameThroughADecodeWorkersDeath() {
    ASSERT_OK_AND_ASSIGN(const auto cluster, Start({.workers = {Prefill("p0"), Decode("d0"), Decode("d1")}}));
    BackgroundLoad load(cluster->client(), requests_);
    ASSERT_TRUE(load.WaitForTokens(400, kPatience));

    cluster->Kill("d0");

    const std::vector<Reply> replies = load.Replies();
    ExpectAsAlone(replies);
    EXPECT_GT(CountAttemptsEndedBy(replies, "decode_lost"), 0);
    EXPECT_OK(cluster->WaitIdle());
  }

  static inline std::vector<v1::GenerateRequest> requests_;
  static inline std::vector<Answer> alone_;
  static inline bool shipped_numerics_ = false;
};

TEST_F(DeterminismTest, InOneBatch) {
  double tokens = 0;
  for (const Answer& answer : alone_) tokens += static_cast<double>(answer.token_ids.size());
  ExpectAsAlone(RunOn({.workers = {Prefill("p0"), Decode("d0")}}, [tokens](Cluster& cluster) {
    // Requests one after the other would take about one step per token.
    EXPECT_LT(StepsOf(cluster, "d0"), tokens * 3 / 4);
  }));
}

TEST_F(DeterminismTest, WithChunksOfOneToken) {
  ExpectAsAlone(RunOn({.workers = {Prefill("p0", {"--chunk-tokens=1"}), Decode("d0")}}, [](Cluster& cluster) {
    // As many as the longest prompt has tokens.
    EXPECT_GE(StepsOf(cluster, "p0"), 1102);
  }));
}

TEST_F(DeterminismTest, WithChunksOf16Tokens) {
  ExpectAsAlone(RunOn({.workers = {Prefill("p0", {"--chunk-tokens=16"}), Decode("d0")}}, [](Cluster& cluster) {
    EXPECT_GE(StepsOf(cluster, "p0"), 1102 / 16);
    EXPECT_LT(StepsOf(cluster, "p0"), 1102);
  }));
}

TEST_F(DeterminismTest, WithChunksOf512Tokens) {
  ExpectAsAlone(RunOn({.workers = {Prefill("p0", {"--chunk-tokens=512", "--token-budget=2048"}), Decode("d0")}},
                      [](Cluster& cluster) { EXPECT_LT(StepsOf(cluster, "p0"), 1102 / 16); }));
}

TEST_F(DeterminismTest, WithSeveralThreads) {
  ExpectAsAlone(RunOn({.workers = {Prefill("p0"), Decode("d0")}, .worker_flags = {"--threads=2"}}));
}

TEST_F(DeterminismTest, OnOneWorkerThatDoesBoth) {
  const std::vector<Reply> replies = RunOn({.workers = {Both("b0")}});
  ExpectAsAlone(replies);
  for (const Reply& reply : replies) EXPECT_EQ(reply.finish.attempts(0).prefill_worker(), "");
}

TEST_F(DeterminismTest, ThroughPreemption) {
  // The longest request needs 80 pages.
  ExpectTheSameThroughPreemption(
      {.workers = {Prefill("p0"), Decode("d0", {"--pages=84", "--growth-watermark-pages=0"})}});
}

TEST_F(DeterminismTest, ThroughPreemptionOnOneWorkerThatDoesBoth) {
  ExpectTheSameThroughPreemption({.workers = {Both("b0", {"--pages=90"})}});
}

TEST_F(DeterminismTest, ThroughADecodeWorkersDeathMidStream) { ExpectTheSameThroughADecodeWorkersDeath(); }

// Shows that the comparison can fail: other numerics give other answers.
TEST_F(DeterminismTest, AnotherKvTypeIsNotTheSame) {
  const std::vector<Reply> replies =
      RunOn({.workers = {Prefill("p0"), Decode("d0")}, .worker_flags = {"--kv-dtype=bf16"}});
  ASSERT_EQ(replies.size(), alone_.size());
  int different = 0;
  for (size_t i = 0; i < replies.size(); ++i) different += replies[i].answer == alone_[i] ? 0 : 1;
  EXPECT_GT(different, kRequests / 2);
}

// The defaults: 16-bit KV for this model, a compute thread per CPU.
class ShippedFlagsTest : public DeterminismTest {
 protected:
  static void SetUpTestSuite() { AnswerAlone(kRequests / 2, /*shipped_numerics=*/true); }
};

TEST_F(ShippedFlagsTest, InOneBatchWithSmallChunks) {
  ExpectAsAlone(RunOn({.workers = {Prefill("p0", {"--chunk-tokens=48"}), Decode("d0")}}));
}

TEST_F(ShippedFlagsTest, WithOneThread) {
  ExpectAsAlone(RunOn({.workers = {Prefill("p0"), Decode("d0")}, .worker_flags = {"--threads=1"}}));
}

TEST_F(ShippedFlagsTest, OnOneWorkerThatDoesBoth) { ExpectAsAlone(RunOn({.workers = {Both("b0")}})); }

TEST_F(ShippedFlagsTest, ThroughADecodeWorkersDeathMidStream) { ExpectTheSameThroughADecodeWorkersDeath(); }

// Scales travel with their pages.
TEST(EightBitKvTest, GivesTheSameOnOneWorkerAndOnTwo) {
  std::vector<v1::GenerateRequest> requests;
  for (int i = 0; i < kRequests / 4; ++i) requests.push_back(MixedRequest(i));
  for (const std::string dtype : {"int8", "fp8"}) {
    std::vector<std::vector<Answer>> answers;
    for (const std::vector<WorkerSpec>& workers : {std::vector{Prefill("p0"), Decode("d0")}, std::vector{Both("b0")}}) {
      ASSERT_OK_AND_ASSIGN(const auto cluster,
                           Cluster::Start({.workers = workers, .worker_flags = {"--kv-dtype=" + dtype}}));
      answers.emplace_back();
      for (const Reply& reply : cluster->client().GenerateAll(requests)) {
        ASSERT_TRUE(Succeeded(reply));
        answers.back().push_back(reply.answer);
      }
    }
    EXPECT_EQ(answers[0], answers[1]) << dtype;
  }
}

}  // namespace
}  // namespace baton::testing
