// ControlService over a real gRPC server and client on loopback.
#include "worker/control_service.h"

#include <atomic>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/grpc.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

AssetFiles Assets() { return {{"a.json", "{}"}, {"tokenizer.json", std::string((5 << 20) / 2, 'x')}}; }

class ControlServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(server_, GrpcServer::Start({.listen = "127.0.0.1:0"}, {&service_}));
    stub_ = v1::WorkerControl::NewStub(MakeChannel(absl::StrCat("127.0.0.1:", server_->port())));
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
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

  std::atomic<uint32_t> snapshots_{0};
  ControlService service_{Assets(), [this] { return Snapshot(); }};
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
  const absl::Time start = absl::Now();
  service_.Announce();
  ASSERT_TRUE(reader->Read(&status));
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
  context_.TryCancel();
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
