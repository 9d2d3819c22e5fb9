// SPDX-License-Identifier: Apache-2.0
// `baton admin`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_router.h"

namespace baton::testing {
namespace {

using ::testing::HasSubstr;

class AdminTest : public ::testing::Test {
 protected:
  AdminTest() { router_.status = State("decode", "serving"); }

  static v1::GetStatusResponse State(const std::string& role, const std::string& state,
                                     const std::string& switching_to = "", const std::string& failure = "") {
    v1::GetStatusResponse status;
    v1::WorkerInfo& worker = *status.add_workers();
    worker.set_worker_id("d1");
    worker.set_role(role);
    worker.set_state(state);
    worker.set_switching_to(switching_to);
    worker.set_role_failure(failure);
    worker.set_model("demo");
    worker.set_running_sequences(3);
    worker.set_pages_total(200);
    worker.set_pages_used(50);
    worker.set_role_changes(7);
    for (const char* possible : {"prefill", "decode", "both"}) worker.add_possible_roles(possible);
    return status;
  }
  // The router reports these states, one a call; the last one remains.
  void Report(std::vector<v1::GetStatusResponse> states) {
    router_.on_change_role = [this](const v1::ChangeWorkerRoleRequest& request, FakeRouter&) {
      asked_ = request;
      return grpc::Status::OK;
    };
    router_.on_get_status = [states = std::move(states), next = size_t{0}]() mutable {
      return states[std::min(next++, states.size() - 1)];
    };
  }
  CliResult Role(std::vector<std::string> arguments) {
    std::vector<std::string> all = {"admin", "role", "--target", router_.target()};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return RunCli(all);
  }

  FakeRouter router_;
  v1::ChangeWorkerRoleRequest asked_;
};

TEST_F(AdminTest, WorkersListsRoleStateAndLoad) {
  const CliResult result = RunCli({"admin", "workers", "--target", router_.target()});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("d1"));
  EXPECT_THAT(result.out, HasSubstr("25 %"));
  EXPECT_THAT(result.out, HasSubstr("prefill,decode,both"));
  const CliResult json = RunCli({"admin", "workers", "--json", "--target", router_.target()});
  EXPECT_THAT(json.out, HasSubstr("\"possible_roles\":[\"prefill\",\"decode\",\"both\"]"));
}

TEST_F(AdminTest, RoleReturnsOnceTheWorkerHasBegun) {
  Report({State("decode", "switching", "prefill")});
  const CliResult result = Role({"d1", "prefill", "--force"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "d1 changes from decode to prefill\n");
  EXPECT_EQ(asked_.worker_id(), "d1");
  EXPECT_EQ(asked_.role(), "prefill");
  EXPECT_TRUE(asked_.force());
}

TEST_F(AdminTest, WaitReturnsOnceTheWorkerServesInItsNewRole) {
  // The first report is of the time before the change, with the failure of an earlier change.
  Report({State("decode", "serving", "", "of an earlier change"), State("decode", "switching", "prefill"),
          State("prefill", "starting"), State("prefill", "serving")});
  const CliResult result = Role({"d1", "prefill", "--wait", "30s"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "d1 changed from decode to prefill\n");
  EXPECT_FALSE(asked_.force());
}

TEST_F(AdminTest, WaitSaysWhyTheWorkerKeepsItsRole) {
  Report({State("decode", "switching", "prefill"), State("decode", "serving", "", "attempts still ran")});
  const CliResult result = Role({"d1", "prefill", "--wait", "30s"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("worker d1 keeps role decode: attempts still ran; --force ends such attempts"));
}

TEST_F(AdminTest, WaitEndsWithItsTimeAndWithTheWorker) {
  Report({State("decode", "switching", "prefill")});
  const CliResult late = Role({"d1", "prefill", "--wait", "200ms"});
  EXPECT_EQ(late.code, 1);
  EXPECT_THAT(late.err, HasSubstr("has not taken role prefill within 200ms (--wait): 3 sequences running"));
  Report({State("decode", "switching", "prefill"), State("decode", "lost")});
  EXPECT_THAT(Role({"d1", "prefill", "--wait", "30s"}).err, HasSubstr("worker d1 is lost"));
  Report({State("decode", "switching", "prefill"), {}});
  EXPECT_THAT(Role({"d1", "prefill", "--wait", "30s"}).err, HasSubstr("worker d1 has left the router"));
}

TEST_F(AdminTest, TheRoutersRefusalIsShown) {
  const CliResult result = Role({"d1", "prefill"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("answered FAILED_PRECONDITION: not now"));
}

TEST_F(AdminTest, UsualMistakesAreUsageErrors) {
  EXPECT_EQ(RunCli({"admin"}).code, 2);
  EXPECT_THAT(RunCli({"admin"}).err, HasSubstr("expected a command: role, workers"));
  EXPECT_THAT(RunCli({"admin", "roles"}).err, HasSubstr("did you mean"));
  EXPECT_EQ(Role({"d1"}).code, 2);
  const CliResult unknown = Role({"d1", "prefil"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("\"prefil\", expected one of prefill, decode, both"));
  const CliResult wait = Role({"d1", "prefill", "--wait", "soon"});
  EXPECT_EQ(wait.code, 2);
  EXPECT_THAT(wait.err, HasSubstr("--wait"));
}

}  // namespace
}  // namespace baton::testing
