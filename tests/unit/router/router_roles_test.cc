// SPDX-License-Identifier: Apache-2.0
// Changes of workers' roles, asked for by a client or by the balance controller.
#include <gmock/gmock.h>

#include "router_fixture.h"

namespace baton::router {
namespace {

class RouterRolesTest : public RouterTest {
 protected:
  grpc::Status ChangeRole(const std::string& worker, const std::string& role, bool force = false) {
    grpc::ClientContext context;
    context.set_deadline(GrpcDeadline(kPatience));
    v1::ChangeWorkerRoleRequest request;
    request.set_worker_id(worker);
    request.set_role(role);
    request.set_force(force);
    v1::ChangeWorkerRoleResponse response;
    grpc::Status status = admin_->ChangeWorkerRole(&context, request, &response);
    from_ = response.from();
    return status;
  }
  std::string RoleOf(const std::string& worker) {
    const v1::GetStatusResponse status = Status();
    for (const v1::WorkerInfo& info : status.workers()) {
      if (info.worker_id() == worker) return info.role();
    }
    return "";
  }
  void StartThree() {
    AddWorker("p1", v1::WORKER_ROLE_PREFILL);
    AddWorker("p2", v1::WORKER_ROLE_PREFILL);
    AddWorker("d1", v1::WORKER_ROLE_DECODE);
    StartReadyRouter();
    ASSERT_TRUE(WaitFor([&] { return RoleOf("p1") == "prefill" && RoleOf("p2") == "prefill"; }));
  }

  std::string from_;
};

TEST_F(RouterRolesTest, AClientsChangeReachesTheWorkerAndTheNewRoleServes) {
  options_.role_changes = "forced";
  StartThree();
  const grpc::Status status = ChangeRole("p2", "decode");
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(from_, "prefill");
  EXPECT_EQ(workers_[1]->role(), v1::WORKER_ROLE_DECODE);
  ASSERT_TRUE(WaitFor([&] { return RoleOf("p2") == "decode"; }));
  ASSERT_TRUE(WaitFor([&] {
    const v1::GetStatusResponse response = Status();
    return std::ranges::any_of(response.pairs(), [](const v1::PairInfo& pair) {
      return pair.prefill_worker() == "p1" && pair.decode_worker() == "p2" && pair.state() == "ready";
    });
  }));
  ExpectCanned(Generate(Request(5)), 5);
  EXPECT_EQ(ChangeRole("p1", "decode").error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(workers_[0]->role(), v1::WORKER_ROLE_PREFILL) << "the last one of its role";
  EXPECT_TRUE(ChangeRole("p1", "decode", /*force=*/true).ok());
  EXPECT_EQ(workers_[0]->role(), v1::WORKER_ROLE_DECODE);
}

TEST_F(RouterRolesTest, TheWorkersRefusalReachesTheClientWithTheWorkersName) {
  StartThree();
  workers_[1]->SetRoleAnswer({grpc::StatusCode::FAILED_PRECONDITION, "not so soon"});
  const grpc::Status status = ChangeRole("p2", "decode");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(status.error_message(), "worker p2: not so soon");
}

TEST_F(RouterRolesTest, ARouterMayRefuseClientsChanges) {
  options_.role_changes = "off";
  StartThree();
  const grpc::Status status = ChangeRole("p2", "decode");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("--role-changes off"));
  EXPECT_EQ(workers_[1]->role(), v1::WORKER_ROLE_PREFILL);
}

TEST_F(RouterRolesTest, OnlyAForcedRouterTakesForcedChanges) {
  StartThree();
  const grpc::Status status = ChangeRole("p2", "decode", /*force=*/true);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("--role-changes forced"));
  EXPECT_EQ(workers_[1]->role(), v1::WORKER_ROLE_PREFILL);
  EXPECT_TRUE(ChangeRole("p2", "decode").ok());
}

TEST_F(RouterRolesTest, TheControllerMovesOneWorkerToThePressedRole) {
  options_.balance = "switch";
  options_.balance_rules = {.after = absl::Seconds(1), .period = absl::Hours(1)};
  StartThree();
  v1::WorkerLoad full;
  full.set_running_sequences(64);
  workers_[2]->SetLoad(full);
  ASSERT_TRUE(WaitFor([&] { return workers_[1]->role() == v1::WORKER_ROLE_DECODE; })) << "the greatest id";
  EXPECT_EQ(workers_[0]->role(), v1::WORKER_ROLE_PREFILL);
}

TEST_F(RouterRolesTest, TheControllerOnlyAdvisesUnlessToldToSwitch) {
  options_.balance = "advise";
  options_.balance_rules = {.after = absl::Milliseconds(100), .period = absl::Milliseconds(100)};
  StartThree();
  v1::WorkerLoad full;
  full.set_running_sequences(64);
  workers_[2]->SetLoad(full);
  absl::SleepFor(absl::Seconds(3));
  EXPECT_EQ(workers_[1]->role(), v1::WORKER_ROLE_PREFILL);
}

}  // namespace
}  // namespace baton::router
