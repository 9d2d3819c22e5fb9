// SPDX-License-Identifier: Apache-2.0
// EventStream over a real gRPC server and client on loopback.
#include "worker/event_stream.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "baton/v1/worker.grpc.pb.h"
#include "common/grpc.h"
#include "common/steady_time.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using Stream = EventStream<v1::ModelAssetPiece>;

class StreamService final : public v1::WorkerControl::CallbackService {
 public:
  explicit StreamService(Stream::Merge merge) : next_(std::make_shared<Stream>(merge)) {}

  grpc::ServerWriteReactor<v1::ModelAssetPiece>* GetModelAssets(grpc::CallbackServerContext*,
                                                                const v1::GetModelAssetsRequest*) override {
    {
      MutexLock lock(mutex_);
      stream_ = next_;
    }
    opened_.NotifyAll();
    return Stream::Serve(next_, [this] {
      {
        MutexLock lock(mutex_);
        ++cancels_;
      }
      opened_.NotifyAll();
    });
  }

  bool WaitOpened() {
    MutexLock lock(mutex_);
    const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(10);
    while (stream_ == nullptr) {
      if (!opened_.WaitUntil(mutex_, deadline)) return false;
    }
    return true;
  }
  bool WaitCancelled() {
    MutexLock lock(mutex_);
    const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(10);
    while (cancels_ == 0) {
      if (!opened_.WaitUntil(mutex_, deadline)) return false;
    }
    return true;
  }
  int cancels() {
    MutexLock lock(mutex_);
    return cancels_;
  }

  const std::shared_ptr<Stream> next_;

 private:
  Mutex mutex_;
  CondVar opened_;
  std::shared_ptr<Stream> stream_ ABSL_GUARDED_BY(mutex_);
  int cancels_ ABSL_GUARDED_BY(mutex_) = 0;
};

class EventStreamTest : public ::testing::Test {
 protected:
  explicit EventStreamTest(Stream::Merge merge = nullptr) : service_(merge) {}
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(server_, GrpcServer::Start({.listen = "127.0.0.1:0"}, {&service_}));
    stub_ = v1::WorkerControl::NewStub(MakeChannel(absl::StrCat("127.0.0.1:", server_->port())));
    context_.set_deadline(GrpcDeadline(absl::Seconds(20)));
  }
  static v1::ModelAssetPiece Piece(const std::string& name) {
    v1::ModelAssetPiece piece;
    piece.set_name(name);
    return piece;
  }

  StreamService service_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<v1::WorkerControl::Stub> stub_;
  grpc::ClientContext context_;
};

TEST_F(EventStreamTest, DeliversEventsInOrderAndEndsWithOkAfterTheLast) {
  auto reader = stub_->GetModelAssets(&context_, {});
  ASSERT_TRUE(service_.WaitOpened());
  std::thread writer([&] {
    for (int i = 0; i < 1000; ++i) service_.next_->Write(Piece(absl::StrCat(i)), i == 999);
    service_.next_->Write(Piece("after the last"), false);
  });
  v1::ModelAssetPiece piece;
  std::vector<std::string> names;
  while (reader->Read(&piece)) names.push_back(piece.name());
  EXPECT_TRUE(reader->Finish().ok());
  writer.join();
  ASSERT_EQ(names.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(names[i], absl::StrCat(i));
  EXPECT_EQ(service_.cancels(), 0);
}

TEST_F(EventStreamTest, TellsTheOwnerOnceWhenTheCallerIsGoneAndTakesLaterWrites) {
  auto reader = stub_->GetModelAssets(&context_, {});
  ASSERT_TRUE(service_.WaitOpened());
  EXPECT_FALSE(service_.next_->cancelled());
  context_.TryCancel();
  EXPECT_TRUE(service_.WaitCancelled());
  EXPECT_TRUE(service_.next_->cancelled());
  for (int i = 0; i < 10; ++i) service_.next_->Write(Piece("late"), i == 9);
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(service_.cancels(), 1);
}

class MergingEventStreamTest : public EventStreamTest {
 protected:
  MergingEventStreamTest() : EventStreamTest(&Concatenate) {}
  static bool Concatenate(v1::ModelAssetPiece& last, v1::ModelAssetPiece& next) {
    if (next.name() == "alone") return false;
    last.set_name(last.name() + next.name());
    return true;
  }
};

TEST_F(MergingEventStreamTest, JoinsEventsThatNobodyHasTakenYet) {
  for (const char* name : {"a", "b", "c", "alone"}) service_.next_->Write(Piece(name), /*last=*/false);
  service_.next_->Write(Piece("d"), /*last=*/true);
  auto reader = stub_->GetModelAssets(&context_, {});
  v1::ModelAssetPiece piece;
  std::vector<std::string> names;
  while (reader->Read(&piece)) names.push_back(piece.name());
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(names, (std::vector<std::string>{"abc", "aloned"}));
}

}  // namespace
}  // namespace baton
