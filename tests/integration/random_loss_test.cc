// Workers are killed and stopped at random moments, again and again, under a steady load with clients that come and go.
// The seed is printed; BATON_TEST_SEED repeats a run's choices (not its timing).
#include <gmock/gmock.h>
#include <signal.h>

#include <cstdlib>
#include <iostream>
#include <random>

#include "background_load.h"
#include "cluster_test.h"
#include "golden.h"

namespace baton::testing {
namespace {

constexpr int kRounds = 12;
constexpr int kRequests = 60;
constexpr int kAtOnce = 12;

uint64_t Seed() {
  const char* seed = std::getenv("BATON_TEST_SEED");  // NOLINT(concurrency-mt-unsafe)
  return seed != nullptr ? std::strtoull(seed, nullptr, 10) : std::random_device()();
}

class RandomLossTest : public ClusterTest {
 protected:
  static void SetUpTestSuite() {
    StartCluster({.workers = {Prefill("p0"), Prefill("p1"), Decode("d0"), Decode("d1")},
                  .worker_flags = {"--chunk-tokens=128"}});
  }

  int Draw(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }

  // Kills or stops one worker, and brings it back a moment later.
  void DisturbOne() {
    const std::string worker = std::vector<std::string>{"p0", "p1", "d0", "d1"}[Draw(4)];
    const absl::Duration pause = absl::Milliseconds(Draw(4000));
    if (Draw(2) == 0) {
      cluster_->Kill(worker);
      absl::SleepFor(pause);
      ASSERT_OK(cluster_->Restart(worker));
    } else {
      ASSERT_OK(cluster_->process(worker).Signal(SIGSTOP));
      absl::SleepFor(pause);
      ASSERT_OK(cluster_->process(worker).Signal(SIGCONT));
    }
  }

  const uint64_t seed_ = Seed();
  std::mt19937_64 random_{seed_};
};

v1::GenerateRequest RandomRequest(int i) {
  v1::GenerateRequest request = GreedyRequest(GoldenCases()[i % 12].prompt, 20 + 3 * i);
  request.mutable_sampling()->set_logprobs(2);
  if (i % 2 == 1) {
    request.mutable_sampling()->set_temperature(1);
    request.mutable_sampling()->set_seed(i);
    request.mutable_sampling()->set_frequency_penalty(0.3);
  }
  return request;
}

TEST_F(RandomLossTest, EveryAnswerIsTheUndisturbedOneAndNothingIsLeftBehind) {
  std::cout << "BATON_TEST_SEED=" << seed_ << std::endl;
  std::vector<v1::GenerateRequest> requests;
  requests.reserve(kRequests);
  for (int i = 0; i < kRequests; ++i) requests.push_back(RandomRequest(i));
  std::vector<Answer> expected;
  for (const Reply& reply : cluster_->client().GenerateAll(requests, {}, kAtOnce)) {
    ASSERT_TRUE(Succeeded(reply));
    expected.push_back(reply.answer);
  }

  for (int round = 0; round < kRounds && !HasFatalFailure(); ++round) {
    SCOPED_TRACE(round);
    BackgroundLoad load(cluster_->client(), requests, kAtOnce);
    ASSERT_TRUE(load.WaitForTokens(Draw(2000) + 1, kPatience));
    DisturbOne();
    // A client that leaves meanwhile.
    (void)Generate(requests[Draw(kRequests)], {.timeout = absl::Milliseconds(1 + Draw(100))});

    const std::vector<Reply> replies = load.Replies();
    for (int i = 0; i < kRequests; ++i) {
      EXPECT_TRUE(Succeeded(replies[i])) << "request " << i;
      EXPECT_EQ(replies[i].answer, expected[i]) << "request " << i;
    }
    ASSERT_OK(cluster_->WaitReady());
    ASSERT_OK(cluster_->WaitIdle());
  }
}

}  // namespace
}  // namespace baton::testing
