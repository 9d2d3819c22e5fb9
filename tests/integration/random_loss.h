// SPDX-License-Identifier: Apache-2.0
// Kills and stops workers at random times under a steady load with clients that come and go. Prints the seed;
// BATON_TEST_SEED repeats a run's choices, not its timing.
#pragma once

#include <gmock/gmock.h>
#include <signal.h>

#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "background_load.h"
#include "cluster_test.h"
#include "golden.h"

namespace baton::testing {

class RandomLossTest : public ClusterTest {
 protected:
  static void SetUpTestSuite() {
    StartCluster({.workers = {Prefill("p0"), Prefill("p1"), Decode("d0"), Decode("d1")},
                  .worker_flags = {"--chunk-tokens=128"}});
  }

  // Runs rounds of `requests` each. In four rounds, each kind of worker is killed once and stopped once.
  void Disturb(int rounds, int requests, uint64_t seed) {
    if (const char* given = std::getenv("BATON_TEST_SEED")) {  // NOLINT(concurrency-mt-unsafe)
      seed = std::strtoull(given, nullptr, 10);
    }
    std::cout << "BATON_TEST_SEED=" << seed << std::endl;
    random_.seed(seed);
    for (int i = 0; i < requests; ++i) requests_.push_back(RandomRequest(i));
    for (const Reply& reply : cluster_->client().GenerateAll(requests_, {}, kAtOnce)) {
      ASSERT_TRUE(Succeeded(reply));
      expected_.push_back(reply.answer);
    }
    for (int round = 0; round < rounds && !HasFatalFailure(); ++round) {
      SCOPED_TRACE(round);
      RunRound(/*kind=*/round % 2 == 0 ? "p" : "d", /*kill=*/round / 2 % 2 == 0);
    }
    EXPECT_GT(retried_, 0) << "nothing was lost";
  }

 private:
  static constexpr int kAtOnce = 12;

  static v1::GenerateRequest RandomRequest(int i) {
    v1::GenerateRequest request = GreedyRequest(GoldenCases()[i % 12].prompt, 20 + 3 * i);
    request.mutable_sampling()->set_logprobs(2);
    if (i % 2 == 1) {
      request.mutable_sampling()->set_temperature(1);
      request.mutable_sampling()->set_seed(i);
      request.mutable_sampling()->set_frequency_penalty(0.3);
    }
    return request;
  }

  int Draw(size_t below) { return std::uniform_int_distribution<int>(0, static_cast<int>(below) - 1)(random_); }

  void RunRound(const std::string& kind, bool kill) {
    BackgroundLoad load(cluster_->client(), requests_, kAtOnce);
    ASSERT_TRUE(load.WaitForTokens(Draw(20 * requests_.size()) + 1, kPatience));
    DisturbOne(kind + std::to_string(Draw(2)), kill);
    // A client that leaves meanwhile.
    (void)Generate(requests_[Draw(requests_.size())], {.timeout = absl::Milliseconds(1 + Draw(100))});

    const std::vector<Reply> replies = load.Replies();
    for (size_t i = 0; i < requests_.size(); ++i) {
      EXPECT_TRUE(Succeeded(replies[i])) << "request " << i;
      EXPECT_EQ(replies[i].answer, expected_[i]) << "request " << i;
      retried_ += replies[i].finish.attempts_size() > 1 ? 1 : 0;
    }
    ASSERT_OK(cluster_->WaitReady());
    ASSERT_OK(cluster_->WaitIdle());
  }

  // Kills or stops `worker`, which returns soon afterwards.
  void DisturbOne(const std::string& worker, bool kill) {
    const absl::Duration pause = absl::Milliseconds(Draw(4000));
    if (kill) {
      cluster_->Kill(worker);
      absl::SleepFor(pause);
      ASSERT_OK(cluster_->Restart(worker));
    } else {
      ASSERT_OK(cluster_->process(worker).Signal(SIGSTOP));
      absl::SleepFor(pause);
      ASSERT_OK(cluster_->process(worker).Signal(SIGCONT));
    }
  }

  std::mt19937_64 random_;
  std::vector<v1::GenerateRequest> requests_;
  std::vector<Answer> expected_;
  int retried_ = 0;
};

}  // namespace baton::testing
