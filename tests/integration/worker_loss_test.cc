// SPDX-License-Identifier: Apache-2.0
// I1 to I4 with real processes: workers and the router are killed and stopped under load. Clients get every token of
// the undisturbed answers once. Afterwards workers hold nothing of the requests.
#include <gmock/gmock.h>
#include <signal.h>

#include "background_load.h"
#include "cluster_test.h"
#include "common/steady_time.h"
#include "golden.h"

namespace baton::testing {
namespace {

constexpr int kRequests = 16;
constexpr int kAtOnce = 8;

class WorkerLossTest : public ClusterTest {
 protected:
  static void SetUpTestSuite() {
    // The same prompts come again and again, and take their time each time.
    StartCluster({.workers = {Prefill("p0"), Prefill("p1"), Decode("d0"), Decode("d1")},
                  .worker_flags = {"--prefix-cache=off"}});
  }

  // Half of the prompts have 1102 tokens, and the other half's answers are long: at any moment some are being computed
  // or handed over, and some are decoded.
  static std::vector<v1::GenerateRequest> Requests() {
    std::vector<v1::GenerateRequest> requests;
    for (int i = 0; i < kRequests; ++i) {
      const std::string& prompt = GoldenCases()[i % 2 == 0 ? 9 : i % 12].prompt;
      v1::GenerateRequest& request = requests.emplace_back(GreedyRequest(prompt, (i % 2 == 0 ? 40 : 160) + i));
      request.mutable_sampling()->set_logprobs(1);
      if (i % 3 == 0) {
        request.mutable_sampling()->set_temperature(1);
        request.mutable_sampling()->set_seed(1000 + i);
      }
    }
    return requests;
  }

  // Returns the answers of undisturbed workers.
  static const std::vector<Answer>& Expected() {
    static const std::vector<Answer> answers = [] {
      std::vector<Answer> undisturbed;
      for (const Reply& reply : cluster_->client().GenerateAll(Requests(), {}, kAtOnce)) {
        EXPECT_TRUE(Succeeded(reply));
        undisturbed.push_back(reply.answer);
      }
      return undisturbed;
    }();
    return answers;
  }

  // Waits until the worker has had several sequences for a while, or one if no more come: not all sequences end at
  // once.
  static absl::Status WaitBusy(const std::string& worker) {
    const SteadyTime start = SteadyTime::Now();
    const SteadyTime deadline = start + kPatience;
    for (int busy = 0; busy < 2;) {
      const absl::StatusOr<v1::WorkerStatus> status = cluster_->WorkerStatus(worker);
      if (!status.ok()) return status.status();
      const bool asks_for_several = SteadyTime::Now() - start < absl::Milliseconds(500);
      // A prefill worker is busy for a while only with tokens left to compute.
      const uint32_t tokens = status->role() != v1::WORKER_ROLE_PREFILL ? 0 : asks_for_several ? 200 : 1;
      const bool is_busy =
          status->load().running_sequences() >= (asks_for_several ? 2 : 1) && status->load().waiting_tokens() >= tokens;
      busy = is_busy ? busy + 1 : 0;
      if (SteadyTime::Now() >= deadline) return absl::DeadlineExceededError(worker + " has nothing to do");
      absl::SleepFor(absl::Milliseconds(5));
    }
    return absl::OkStatus();
  }

  // Runs the load and, once tokens flow and `victim` is busy, `disturb`. Every client gets its answer all the same,
  // some of them on another attempt.
  static void ExpectUnseenByClients(const std::string& victim, const std::function<void()>& disturb) {
    const std::vector<Answer>& expected = Expected();
    BackgroundLoad load(cluster_->client(), Requests(), kAtOnce);
    EXPECT_TRUE(load.WaitForTokens(60, kPatience));
    EXPECT_OK(WaitBusy(victim));
    disturb();
    const std::vector<Reply> replies = load.Replies();
    for (size_t i = 0; i < replies.size(); ++i) {
      EXPECT_TRUE(Succeeded(replies[i])) << "request " << i;
      EXPECT_EQ(replies[i].answer, expected[i]) << "request " << i;
    }
    EXPECT_TRUE(std::any_of(replies.begin(), replies.end(), [](const Reply& reply) {
      return reply.finish.attempts_size() > 1;
    })) << "the worker had nothing to lose";
  }

  static void Stop(const std::string& worker) { ASSERT_OK(cluster_->process(worker).Signal(SIGSTOP)); }

  // A stopped prefill worker may continue to write to its granted pages. These pages are in quarantine, which operators
  // see, and no request waits for them.
  static void ExpectQuarantine() {
    const auto quarantined = [](const auto& pages_of) {
      const SteadyTime deadline = SteadyTime::Now() + kAbortPatience;
      while (SteadyTime::Now() < deadline) {
        if (pages_of("d0") + pages_of("d1") > 0) return true;
        absl::SleepFor(absl::Milliseconds(20));
      }
      return false;
    };
    EXPECT_TRUE(quarantined([](const std::string& worker) {
      const auto status = cluster_->WorkerStatus(worker);
      return status.ok() ? status->load().pages_quarantined() : 0;
    }));
    EXPECT_TRUE(quarantined([](const std::string& worker) {
      const auto page = cluster_->Metrics(worker);
      return page.ok() ? page->Sum("baton_worker_kv_pages", {{"state", "quarantined"}}) : 0;
    }));
    EXPECT_TRUE(quarantined([](const std::string& worker) {
      const auto page = cluster_->Metrics(worker);
      return page.ok() ? page->Sum("baton_worker_quarantine_oldest_seconds") : 0;
    }));
    EXPECT_OK(
        cluster_->WaitFor("the router's status shows pages in quarantine", [](const v1::GetStatusResponse& status) {
          return std::any_of(status.workers().begin(), status.workers().end(),
                             [](const v1::WorkerInfo& worker) { return worker.pages_quarantined() > 0; });
        }));
    EXPECT_TRUE(Succeeded(Generate(Requests()[0])));
  }

  // Waits for four workers, with every pair ready and every worker idle.
  static void ExpectWhole() {
    EXPECT_OK(cluster_->WaitReady());
    EXPECT_OK(cluster_->WaitIdle());
  }
};

TEST_F(WorkerLossTest, APrefillWorkersDeathIsNotSeenByClients) {
  ExpectUnseenByClients("p0", [] { cluster_->Kill("p0"); });
  EXPECT_OK(cluster_->WaitIdle());

  ASSERT_OK(cluster_->Restart("p0"));
  ExpectWhole();
}

TEST_F(WorkerLossTest, ADecodeWorkersDeathMidStreamIsNotSeenByClients) {
  ExpectUnseenByClients("d0", [] { cluster_->Kill("d0"); });
  EXPECT_OK(cluster_->WaitIdle());

  ASSERT_OK(cluster_->Restart("d0"));
  ExpectWhole();
}

TEST_F(WorkerLossTest, BothWorkersOfAPairMayDieAtOnce) {
  ExpectUnseenByClients("p1", [] {
    cluster_->Kill("d1");
    cluster_->Kill("p1");
  });

  ASSERT_OK(cluster_->Restart("p1"));
  ASSERT_OK(cluster_->Restart("d1"));
  ExpectWhole();
}

TEST_F(WorkerLossTest, AStoppedPrefillWorkerKeepsNobodyWaitingAndMayComeBack) {
  ExpectUnseenByClients("p0", [] { Stop("p0"); });
  ExpectQuarantine();

  ASSERT_OK(cluster_->process("p0").Signal(SIGCONT));
  ExpectWhole();
}

TEST_F(WorkerLossTest, AStoppedPrefillWorkersPagesComeBackWhenItDies) {
  ExpectUnseenByClients("p1", [] { Stop("p1"); });
  ExpectQuarantine();

  cluster_->Kill("p1");
  EXPECT_OK(cluster_->WaitIdle());
  ASSERT_OK(cluster_->Restart("p1"));
  ExpectWhole();
}

TEST_F(WorkerLossTest, AStoppedDecodeWorkerKeepsNobodyWaitingAndMayComeBack) {
  ExpectUnseenByClients("d1", [] { Stop("d1"); });

  ASSERT_OK(cluster_->process("d1").Signal(SIGCONT));
  ExpectWhole();
}

TEST_F(WorkerLossTest, ARoutersDeathFreesEverythingOnTheWorkers) {
  BackgroundLoad load(cluster_->client(), Requests(), kAtOnce);
  ASSERT_TRUE(load.WaitForTokens(60, kPatience));

  cluster_->Kill("router");

  int cut_off = 0;
  for (const Reply& reply : load.Replies()) {
    cut_off += reply.answer.token_ids.empty() || reply.status.ok() ? 0 : 1;
    EXPECT_TRUE(reply.status.ok() || reply.status.error_code() == grpc::StatusCode::UNAVAILABLE)
        << reply.status.error_message();
  }
  EXPECT_GT(cut_off, 0) << "nothing was left to free";
  EXPECT_OK(cluster_->WaitIdle());
  ASSERT_OK(cluster_->Restart("router"));
  ExpectWhole();
}

TEST_F(WorkerLossTest, WhenNoWorkerIsLeftClientsAreToldUnavailable) {
  cluster_->Kill("d0");
  cluster_->Kill("d1");
  const Reply reply = Generate(GreedyRequest("a", 4), {.timeout = kPatience});
  EXPECT_TRUE(Refused(reply, grpc::StatusCode::UNAVAILABLE, ""));

  ASSERT_OK(cluster_->Restart("d0"));
  ASSERT_OK(cluster_->Restart("d1"));
  ExpectWhole();
}

TEST_F(WorkerLossTest, ClientsThatLeaveAtAnyMomentLeaveNothingBehind) {
  std::vector<std::thread> threads;
  threads.reserve(24);
  for (int i = 0; i < 24; ++i) {
    threads.emplace_back([i] {
      // Cancels some requests before the first token, some in the handoff, some while decoding.
      const CallOptions options =
          i % 2 == 0 ? CallOptions{.timeout = absl::Milliseconds(2 * i)} : CallOptions{.cancel_after_chunks = i};
      const Reply reply = Generate(GreedyRequest(GoldenCases()[i % 12].prompt, 400), options);
      EXPECT_FALSE(reply.status.ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_OK(cluster_->WaitIdle());
}

}  // namespace
}  // namespace baton::testing
