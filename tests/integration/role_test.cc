// SPDX-License-Identifier: Apache-2.0
// Workers change their roles while requests run: no stream is cut, and the answers are those of workers that change
// nothing.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "absl/strings/str_cat.h"
#include "background_load.h"
#include "cluster_test.h"
#include "common/grpc.h"
#include "common/steady_time.h"
#include "golden.h"
#include "tests/files.h"

namespace baton::testing {
namespace {

using ::testing::HasSubstr;

const v1::WorkerInfo* Find(const v1::GetStatusResponse& status, const std::string& worker) {
  const auto it = std::ranges::find(status.workers(), worker, &v1::WorkerInfo::worker_id);
  return it == status.workers().end() ? nullptr : &*it;
}

bool Serves(const v1::GetStatusResponse& status, const std::string& worker, const std::string& role) {
  const v1::WorkerInfo* info = Find(status, worker);
  return info != nullptr && info->state() == "serving" && info->role() == role;
}

std::vector<v1::GenerateRequest> MixedRequests(int count, int max_tokens) {
  std::vector<v1::GenerateRequest> requests;
  for (int i = 0; i < count; ++i) {
    v1::GenerateRequest& request = requests.emplace_back(
        GreedyRequest(GoldenCases()[i % 12].prompt, static_cast<uint32_t>(max_tokens / 2 + i * 7 % (max_tokens / 2))));
    request.mutable_sampling()->set_ignore_eos(true);
    request.mutable_sampling()->set_logprobs(2);
    if (i % 2 == 0) continue;
    request.mutable_sampling()->set_temperature(0.9F);
    request.mutable_sampling()->set_seed(static_cast<uint64_t>(i));
  }
  return requests;
}

class RoleTest : public ::testing::Test {
 protected:
  void Start(ClusterSpec spec) {
    spec.worker_flags.insert(spec.worker_flags.end(), {"--role-cooldown=0", "--drain-timeout=50s"});
    ASSERT_OK_AND_ASSIGN(cluster_, Cluster::Start(std::move(spec)));
    admin_ = v1::Admin::NewStub(MakeChannel(cluster_->target()));
  }
  grpc::Status ChangeRole(const std::string& worker, const std::string& role, bool force = false) const {
    grpc::ClientContext context;
    context.set_deadline(GrpcDeadline(kPatience));
    v1::ChangeWorkerRoleRequest request;
    request.set_worker_id(worker);
    request.set_role(role);
    request.set_force(force);
    v1::ChangeWorkerRoleResponse response;
    return admin_->ChangeWorkerRole(&context, request, &response);
  }
  absl::Status WaitForRole(const std::string& worker, const std::string& role) const {
    return cluster_->WaitFor(absl::StrCat(worker, " serves as ", role),
                             [&](const v1::GetStatusResponse& status) { return Serves(status, worker, role); });
  }
  void ChangeAndWait(const std::string& worker, const std::string& role) const {
    const grpc::Status begun = ChangeRole(worker, role);
    EXPECT_TRUE(begun.ok()) << worker << " to " << role << ": " << begun.error_message();
    EXPECT_OK(WaitForRole(worker, role));
  }
  std::vector<Answer> Undisturbed(const std::vector<v1::GenerateRequest>& requests, size_t at_once) const {
    std::vector<Answer> answers;
    for (const Reply& reply : cluster_->client().GenerateAll(requests, {}, at_once)) {
      EXPECT_TRUE(Succeeded(reply));
      answers.push_back(reply.answer);
    }
    return answers;
  }
  // Returns how many requests had more than one attempt.
  static int ExpectSame(const std::vector<Reply>& replies, const std::vector<Answer>& expected) {
    int moved = 0;
    for (size_t i = 0; i < replies.size(); ++i) {
      EXPECT_TRUE(Succeeded(replies[i])) << "request " << i;
      EXPECT_TRUE(replies[i].answer == expected[i]) << "request " << i;
      moved += replies[i].finish.attempts_size() > 1 ? 1 : 0;
    }
    return moved;
  }
  double Sum(const std::string& process, const std::string& metric, const std::map<std::string, std::string>& labels) {
    const absl::StatusOr<MetricsPage> page = cluster_->Metrics(process);
    return page.ok() ? page->Sum(metric, labels) : -1;
  }
  // Runs `baton admin role` and returns the exit code; the output goes to output_.
  int Admin(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"admin", "role", "--target", cluster_->target()});
    const std::string log =
        (std::filesystem::temp_directory_path() / absl::StrCat("baton-role-test-", getpid())).string();
    Process process({.name = "baton",
                     .binary = BinaryFolder() / "baton",
                     .arguments = std::move(arguments),
                     .environment = {},
                     .log_file = log});
    EXPECT_OK(process.Start());
    const absl::StatusOr<int> status = process.Wait(kPatience);
    output_ = process.Log();
    std::filesystem::remove(log);
    return status.ok() && WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
  }

  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<v1::Admin::Stub> admin_;
  std::string output_;
};

TEST_F(RoleTest, ADecodeWorkerThatBecomesAPrefillWorkerHandsItsSequencesOver) {
  Start({.workers = {Prefill("p0"), Decode("d0"), Decode("d1")}});
  const std::vector<v1::GenerateRequest> requests = MixedRequests(8, 500);
  const std::vector<Answer> expected = Undisturbed(requests, 8);

  BackgroundLoad load(cluster_->client(), requests);
  ASSERT_TRUE(load.WaitForTokens(8 * 30, kPatience));
  // The router may have placed all requests on one of the two.
  ASSERT_OK_AND_ASSIGN(const v1::WorkerStatus d1, cluster_->WorkerStatus("d1"));
  const std::string leaver = d1.load().running_sequences() > 0 ? "d1" : "d0";
  const std::string other = leaver == "d1" ? "d0" : "d1";
  EXPECT_EQ(Admin({leaver, "prefill", "--wait", "1m"}), 0) << output_;
  EXPECT_THAT(output_, HasSubstr(leaver + " changed from decode to prefill"));

  EXPECT_GT(ExpectSame(load.Replies(), expected), 0) << "no sequence moved";
  EXPECT_OK(cluster_->WaitIdle());
  ASSERT_OK(cluster_->WaitFor("the one prefills for the other", [&](const v1::GetStatusResponse& status) {
    return std::ranges::any_of(status.pairs(), [&](const v1::PairInfo& pair) {
      return pair.prefill_worker() == leaver && pair.decode_worker() == other && pair.state() == "ready";
    });
  }));
  ExpectSame(cluster_->client().GenerateAll(requests, {}, 8), expected);
  EXPECT_GT(Sum(leaver, "baton_worker_attempts_total", {{"role", "prefill"}, {"outcome", "handed_over"}}), 0);
  EXPECT_GT(Sum(leaver, "baton_worker_output_tokens_sampled_total", {{"role", "decode"}}), 0) << "of before";
  EXPECT_EQ(Sum(leaver, "baton_worker_max_running_sequences", {{"role", "decode"}}), 0);
  EXPECT_OK(cluster_->WaitIdle());
}

TEST_F(RoleTest, RolesThatChangeAllTheTimeChangeNoAnswer) {
  Start({.workers = {Prefill("p0"), Prefill("p1"), Decode("d0"), Decode("d1")},
         .worker_flags = {"--prefix-cache=off"},
         .router_flags = {"--placement-wait=50s"}});
  const std::vector<v1::GenerateRequest> requests = MixedRequests(120, 60);
  const std::vector<Answer> expected = Undisturbed(requests, 8);

  BackgroundLoad load(cluster_->client(), requests, /*at_once=*/8);
  ASSERT_TRUE(load.WaitForTokens(100, kPatience));
  ChangeAndWait("d1", "both");
  ChangeAndWait("d1", "decode");
  ChangeAndWait("p1", "decode");
  ChangeAndWait("d1", "prefill");
  ChangeAndWait("p1", "both");
  ChangeAndWait("d1", "decode");
  ChangeAndWait("p1", "prefill");
  EXPECT_LT(ExpectSame(load.Replies(), expected), 120);
  EXPECT_OK(cluster_->WaitIdle());
  ASSERT_OK_AND_ASSIGN(const v1::GetStatusResponse status, cluster_->Status());
  EXPECT_EQ(Find(status, "d1")->role_changes(), 4u);
  EXPECT_EQ(Find(status, "p1")->role_changes(), 3u);
}

TEST_F(RoleTest, TheLastWorkerOfARoleStaysUnlessForced) {
  Start(
      {.workers = {Prefill("p0"), Decode("d0")}, .router_flags = {"--placement-wait=200ms", "--role-changes=forced"}});
  EXPECT_EQ(Admin({"d0", "prefill"}), 1);
  EXPECT_THAT(output_, HasSubstr("worker d0 is the last serving worker of model demo"));
  EXPECT_EQ(Admin({"d9", "prefill"}), 1);
  EXPECT_THAT(output_, HasSubstr("\"d9\" is no worker of this router; expected one of d0, p0"));
  EXPECT_EQ(Admin({"d0", "decode"}), 1);
  EXPECT_THAT(output_, HasSubstr("worker d0: the worker has role decode"));
  EXPECT_EQ(Admin({"d0", "prefill", "--force", "--wait", "1m"}), 0) << output_;
  EXPECT_EQ(cluster_->client().Generate(GreedyRequest("a", 4)).status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Admin({"d0", "decode", "--wait", "1m"}), 0) << output_;
  ASSERT_OK(cluster_->WaitReady());
  EXPECT_TRUE(Succeeded(cluster_->client().Generate(GreedyRequest("a", 4))));
}

TEST_F(RoleTest, AWorkerKeepsItsRoleIfASequenceCannotLeave) {
  Start({.workers = {Prefill("p0"), Decode("d0"), Decode("d1", {"--drain-timeout=300ms"})},
         .worker_flags = {"--device=replay", "--replay-step=100ms"}});
  v1::GenerateRequest request = GreedyRequest(GoldenCases()[0].prompt, 300);  // 30 s
  request.mutable_sampling()->set_ignore_eos(true);
  request.mutable_pin()->set_prefill_worker("p0");
  request.mutable_pin()->set_decode_worker("d1");  // a pinned sequence stays
  BackgroundLoad load(cluster_->client(), {request});
  ASSERT_TRUE(load.WaitForTokens(2, kPatience));
  EXPECT_EQ(Admin({"d1", "prefill", "--wait", "1m"}), 1);
  EXPECT_THAT(output_, HasSubstr("worker d1 keeps role decode: attempts still ran"));
  EXPECT_OK(WaitForRole("d1", "decode"));
  const std::vector<Reply> replies = load.Replies();
  EXPECT_TRUE(Succeeded(replies[0]));
  EXPECT_EQ(replies[0].finish.attempts_size(), 1);
  request.mutable_sampling()->set_max_tokens(3);
  EXPECT_TRUE(Succeeded(cluster_->client().Generate(request))) << "d1 takes requests again";
  EXPECT_OK(cluster_->WaitIdle());
}

TEST_F(RoleTest, AWorkerThatIsKilledWhileItSwitchesLosesNoRequest) {
  Start({.workers = {Prefill("p0"), Decode("d0"), Decode("d1")}});
  const std::vector<v1::GenerateRequest> requests = MixedRequests(12, 400);
  const std::vector<Answer> expected = Undisturbed(requests, 12);
  for (int round = 0; round < 3; ++round) {
    BackgroundLoad load(cluster_->client(), requests);
    ASSERT_TRUE(load.WaitForTokens(12 * (20 + 20 * round), kPatience));
    EXPECT_TRUE(ChangeRole("d1", "prefill").ok());
    cluster_->Kill("d1");
    ExpectSame(load.Replies(), expected);
    ASSERT_OK(cluster_->Restart("d1"));
    ASSERT_OK(cluster_->WaitReady());
    EXPECT_OK(cluster_->WaitIdle());
  }
}

// The replay device computes tokens from the KV pages alone: a page that is lost or wrong changes an answer.
TEST_F(RoleTest, TheControllerFollowsAMixThatFlips) {
  Start({.workers = {Prefill("p0"), Prefill("p1"), Decode("d0"), Decode("d1")},
         .worker_flags = {"--device=replay", "--replay-step=10ms", "--replay-prefill-speed=2000", "--max-sequences=4",
                          "--prefix-cache=off", "--kv-memory=256MiB"},
         .router_flags = {"--balance=switch", "--balance-after=1s", "--balance-period=2s", "--overload-wait=10m"}});
  std::vector<v1::GenerateRequest> prompts;
  std::vector<v1::GenerateRequest> outputs;
  for (int i = 0; i < 150; ++i) {
    prompts.push_back(GreedyRequest(GoldenCases()[9].prompt, 2));  // 1102 tokens
    outputs.push_back(GreedyRequest(GoldenCases()[i % 4].prompt, 100));
    prompts.back().mutable_sampling()->set_ignore_eos(true);
    outputs.back().mutable_sampling()->set_ignore_eos(true);
  }
  const Reply prompt = cluster_->client().Generate(prompts[0]);
  ASSERT_TRUE(Succeeded(prompt));
  std::vector<Answer> expected = Undisturbed({outputs.begin(), outputs.begin() + 4}, 1);

  const auto prompts_replies = cluster_->client().GenerateAll(prompts, {.timeout = absl::Minutes(3)}, 32);
  for (const Reply& reply : prompts_replies) {
    ASSERT_TRUE(Succeeded(reply));
    EXPECT_TRUE(reply.answer == prompt.answer);
  }
  EXPECT_GE(Sum("router", "baton_role_switches_total", {{"role", "prefill"}, {"result", "begun"}}), 1);
  const double to_decode = Sum("router", "baton_role_switches_total", {{"role", "decode"}, {"result", "begun"}});

  const auto outputs_replies = cluster_->client().GenerateAll(outputs, {.timeout = absl::Minutes(3)}, 32);
  for (size_t i = 0; i < outputs_replies.size(); ++i) {
    ASSERT_TRUE(Succeeded(outputs_replies[i])) << i;
    EXPECT_TRUE(outputs_replies[i].answer == expected[i % 4]) << i;
  }
  EXPECT_GT(Sum("router", "baton_role_switches_total", {{"role", "decode"}, {"result", "begun"}}), to_decode);
  EXPECT_OK(cluster_->WaitIdle());
}

TEST_F(RoleTest, WorkersOfBothRolesJoinAndLeaveUnderLoadWithoutAFailedRequest) {
  Start(
      {.workers = {Prefill("p0"), Decode("d0")}, .router_flags = {"--discovery-interval=100ms"}, .workers_file = true});
  const std::vector<v1::GenerateRequest> requests = MixedRequests(100, 300);
  const std::vector<Answer> expected = Undisturbed(requests, 8);
  BackgroundLoad load(cluster_->client(), requests, /*at_once=*/8);
  ASSERT_TRUE(load.WaitForTokens(100, kPatience));
  for (const WorkerSpec& worker : {Prefill("p1"), Decode("d1")}) {
    ASSERT_OK(cluster_->Join(worker));
    ASSERT_OK(WaitForRole(worker.name, worker.kind == WorkerKind::kPrefill ? "prefill" : "decode"));
  }
  ASSERT_OK(cluster_->WaitFor("p1 and d1 are a pair", [](const v1::GetStatusResponse& status) {
    return std::ranges::any_of(status.pairs(), [](const v1::PairInfo& pair) {
      return pair.prefill_worker() == "p1" && pair.decode_worker() == "d1" && pair.state() == "ready";
    });
  }));
  for (const char* worker : {"p0", "d0"}) {
    cluster_->Leave(worker);
    EXPECT_OK(cluster_->Terminate(worker));
  }
  ExpectSame(load.Replies(), expected);
  EXPECT_OK(cluster_->WaitIdle());
}

}  // namespace
}  // namespace baton::testing
