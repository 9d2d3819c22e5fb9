// SPDX-License-Identifier: Apache-2.0
// ControlService over a real gRPC server and client on loopback.
#include "worker/control_service.h"

#include <gmock/gmock.h>

#include <atomic>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/grpc.h"
#include "common/mutex.h"
#include "common/steady_time.h"
#include "engine/kv/prefix_index.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

AssetFiles Assets() { return {{"a.json", "{}"}, {"tokenizer.json", std::string((5 << 20) / 2, 'x')}}; }

class ControlServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(server_, GrpcServer::Start({.listen = "127.0.0.1:0"}, {&service_}));
    stub_ = v1::WorkerControl::NewStub(MakeChannel(absl::StrCat("127.0.0.1:", server_->port())));
    context_.set_deadline(GrpcDeadline(absl::Seconds(20)));
  }
  v1::WorkerStatus Snapshot() {
    v1::WorkerStatus status;
    status.set_worker_id("w0");
    status.mutable_load()->set_running_sequences(++snapshots_);
    return status;
  }
  static v1::WatchStatusRequest Watch(uint32_t interval_ms) {
    v1::WatchStatusRequest request;
    request.set_protocol(v1::WORKER_PROTOCOL_CURRENT);
    request.set_heartbeat_interval_ms(interval_ms);
    return request;
  }

  PageNews News(uint64_t version) {
    MutexLock lock(mutex_);
    return index_.NewsSince(version);
  }
  void Publish(uint8_t letter) {
    MutexLock lock(mutex_);
    index_.Insert(PageId{letter}, {letter}, std::nullopt);
    index_.SetIdle(PageId{letter});
  }
  void Evict() {
    MutexLock lock(mutex_);
    index_.Evict();
  }

  absl::Status ChangeRole(const RoleChange& change) {
    MutexLock lock(mutex_);
    asked_ = change;
    return change.force ? absl::OkStatus() : absl::FailedPreconditionError("not now");
  }

  std::atomic<uint32_t> snapshots_{0};
  Mutex mutex_;
  PrefixIndex index_ ABSL_GUARDED_BY(mutex_){8};
  RoleChange asked_ ABSL_GUARDED_BY(mutex_);
  ControlService service_{Assets(),
                          {.status = [this] { return Snapshot(); },
                           .pages = [this](uint64_t v) { return News(v); },
                           .change_role = [this](const RoleChange& change) { return ChangeRole(change); }}};
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<v1::WorkerControl::Stub> stub_;
  grpc::ClientContext context_;
};

TEST_F(ControlServiceTest, SendsTheStatusAtOnceAndThenHeartbeats) {
  auto reader = stub_->WatchStatus(&context_, Watch(10));
  v1::WorkerStatus status;
  uint32_t last = 0;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(reader->Read(&status));
    EXPECT_EQ(status.worker_id(), "w0");
    EXPECT_GT(status.load().running_sequences(), last);
    last = status.load().running_sequences();
  }
  context_.TryCancel();
}

TEST_F(ControlServiceTest, AnnouncesAChangeBeforeTheHeartbeatIsDue) {
  auto reader = stub_->WatchStatus(&context_, Watch(10'000));
  v1::WorkerStatus status;
  ASSERT_TRUE(reader->Read(&status));
  const SteadyTime start = SteadyTime::Now();
  service_.Announce();
  ASSERT_TRUE(reader->Read(&status));
  EXPECT_LT(SteadyTime::Now() - start, absl::Seconds(5));
  context_.TryCancel();
}

TEST_F(ControlServiceTest, PassesAChangeOfTheRoleOnWithTheAnswer) {
  v1::ChangeRoleRequest request;
  request.set_from(v1::WORKER_ROLE_DECODE);
  request.set_to(v1::WORKER_ROLE_BOTH);
  request.set_reason(std::string(254, 'x') + "\u20ac and more");
  v1::ChangeRoleResponse response;
  const auto ask = [&] {
    grpc::ClientContext context;
    context.set_deadline(GrpcDeadline(absl::Seconds(20)));
    return stub_->ChangeRole(&context, request, &response);
  };
  EXPECT_EQ(ask().error_message(), "protocol is 0, this worker speaks 2");
  request.set_protocol(v1::WORKER_PROTOCOL_CURRENT);
  const grpc::Status refused = ask();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(refused.error_message(), "not now");
  request.set_force(true);
  EXPECT_TRUE(ask().ok());
  MutexLock lock(mutex_);
  EXPECT_EQ(asked_.from, v1::WORKER_ROLE_DECODE);
  EXPECT_EQ(asked_.to, v1::WORKER_ROLE_BOTH);
  EXPECT_EQ(asked_.reason, std::string(254, 'x')) << "256 bytes would end inside a character";
}

TEST_F(ControlServiceTest, EndsItsStreamsAndTakesNoMoreWhenTheWorkerStops) {
  auto reader = stub_->WatchStatus(&context_, Watch(10'000));
  v1::WorkerStatus status;
  ASSERT_TRUE(reader->Read(&status));
  service_.EndWatches();
  ASSERT_TRUE(reader->Read(&status));
  EXPECT_FALSE(reader->Read(&status));
  EXPECT_TRUE(reader->Finish().ok());

  grpc::ClientContext again;
  reader = stub_->WatchStatus(&again, Watch(10'000));
  EXPECT_FALSE(reader->Read(&status));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(ControlServiceTest, RefusesAnotherProtocolVersionByNumber) {
  v1::WatchStatusRequest request = Watch(100);
  request.set_protocol(77);
  auto reader = stub_->WatchStatus(&context_, request);
  v1::WorkerStatus status;
  EXPECT_FALSE(reader->Read(&status));
  const absl::Status end = FromGrpc(reader->Finish());
  EXPECT_TRUE(testing::Fails(end, absl::StatusCode::kFailedPrecondition, "protocol is 77"));
}

TEST_F(ControlServiceTest, TellsAllPagesAndThenWhatChanged) {
  Publish(3);
  v1::WatchPagesRequest request;
  request.set_protocol(v1::WORKER_PROTOCOL_CURRENT);
  request.set_interval_ms(10);
  auto reader = stub_->WatchPages(&context_, request);
  v1::PageNews news;
  ASSERT_TRUE(reader->Read(&news));
  EXPECT_TRUE(news.whole());
  EXPECT_THAT(news.added(), ::testing::ElementsAre(3));
  Publish(5);
  ASSERT_TRUE(reader->Read(&news));
  EXPECT_FALSE(news.whole());
  EXPECT_THAT(news.added(), ::testing::ElementsAre(5));
  EXPECT_THAT(news.removed(), ::testing::IsEmpty());
  Evict();
  ASSERT_TRUE(reader->Read(&news));
  EXPECT_THAT(news.added(), ::testing::IsEmpty());
  EXPECT_THAT(news.removed(), ::testing::ElementsAre(3));
  service_.EndWatches();
  while (reader->Read(&news)) EXPECT_EQ(news.added_size() + news.removed_size(), 0);
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(ControlServiceTest, RefusesToTellPagesInAnotherProtocol) {
  auto reader = stub_->WatchPages(&context_, {});
  v1::PageNews news;
  EXPECT_FALSE(reader->Read(&news));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(ControlServiceTest, DeliversAssetsInPieces) {
  v1::GetModelAssetsRequest request;
  request.set_assets_fingerprint(AssetsFingerprint(Assets()));
  auto reader = stub_->GetModelAssets(&context_, request);
  AssetFiles files;
  v1::ModelAssetPiece piece;
  while (reader->Read(&piece)) {
    EXPECT_LE(piece.data().size(), 1u << 20);
    files[piece.name()] += piece.data();
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(files, Assets());
}

TEST_F(ControlServiceTest, RefusesAnUnknownFingerprint) {
  v1::GetModelAssetsRequest request;
  request.set_assets_fingerprint("beef");
  auto reader = stub_->GetModelAssets(&context_, request);
  v1::ModelAssetPiece piece;
  EXPECT_FALSE(reader->Read(&piece));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
}

}  // namespace
}  // namespace baton
