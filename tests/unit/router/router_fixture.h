// SPDX-License-Identifier: Apache-2.0
// The whole router in this process, between a client and fake workers, over real gRPC.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "baton/v1/inference.grpc.pb.h"
#include "common/grpc.h"
#include "common/mutex.h"
#include "common/steady_time.h"
#include "demo_assets.h"
#include "fake_worker.h"
#include "router/router.h"
#include "tests/status_matchers.h"

namespace baton::router {

inline constexpr absl::Duration kPatience = absl::Seconds(30);  // liveness only: nothing is measured

struct Answer {
  grpc::Status status;
  std::vector<TokenId> tokens;
  std::string text;
  std::optional<v1::Finish> finish;
  std::string retry_after_ms;
};

class RouterTest : public ::testing::Test {
 protected:
  RouterTest() {
    options_.listen = "127.0.0.1:0";
    options_.metrics_listen = "";
    options_.peer_timeout = absl::Milliseconds(500);
    options_.heartbeat_interval = absl::Milliseconds(100);
  }
  ~RouterTest() override {
    heart_.reset();
    router_.reset();
    workers_.clear();
  }

  FakeWorker& AddWorker(const std::string& id, v1::WorkerRole role, const std::string& listen = "127.0.0.1:0") {
    workers_.push_back(std::make_unique<FakeWorker>(FakeWorkerOptions{id, role, listen, assets_, ""}, handoffs_));
    return *workers_.back();
  }
  // Starts the router with all workers so far.
  void StartRouter() {
    std::vector<std::string> addresses;
    for (const auto& worker : workers_) addresses.push_back(worker->address());
    StartRouter(std::move(addresses));
  }
  void StartRouter(std::vector<std::string> workers) {
    options_.discovery.workers = std::move(workers);
    ASSERT_OK_AND_ASSIGN(router_, Router::Start(options_));
    channel_ = MakeChannel(absl::StrCat("127.0.0.1:", router_->port()));
    client_ = v1::Inference::NewStub(channel_);
    admin_ = v1::Admin::NewStub(channel_);
    // Workers heartbeat by themselves in life; here the test does it.
    heart_ = std::make_unique<Heart>(workers_);
  }
  void StartReadyRouter() {
    StartRouter();
    ASSERT_TRUE(WaitFor([&] { return router_->ready(); }));
  }

  static bool WaitFor(const std::function<bool()>& condition) {
    const SteadyTime deadline = SteadyTime::Now() + kPatience;
    while (!condition()) {
      if (SteadyTime::Now() > deadline) return false;
      absl::SleepFor(absl::Milliseconds(5));
    }
    return true;
  }

  static v1::GenerateRequest Request(uint32_t max_tokens) {
    v1::GenerateRequest request;
    for (int id = 100; id < 120; ++id) request.mutable_token_ids()->add_ids(id);
    request.mutable_sampling()->set_max_tokens(max_tokens);
    request.mutable_sampling()->set_ignore_eos(true);
    return request;
  }

  // Runs a request to its end. `on_tokens` sees how many tokens there are after each chunk.
  Answer Generate(
      const v1::GenerateRequest& request, grpc::ClientContext& context,
      const std::function<void(size_t)>& on_tokens = [](size_t) {}) {
    Answer answer;
    const auto reader = client_->Generate(&context, request);
    v1::GenerateResponse response;
    while (reader->Read(&response)) {
      if (response.has_finish()) {
        answer.finish = response.finish();
        continue;
      }
      const v1::Chunk& chunk = response.chunk();
      EXPECT_EQ(chunk.output_index(), answer.tokens.size());
      answer.tokens.insert(answer.tokens.end(), chunk.token_ids().begin(), chunk.token_ids().end());
      answer.text += chunk.text();
      on_tokens(answer.tokens.size());
    }
    answer.status = reader->Finish();
    const auto hint = context.GetServerTrailingMetadata().find("retry-after-ms");
    if (hint != context.GetServerTrailingMetadata().end()) {
      answer.retry_after_ms.assign(hint->second.data(), hint->second.size());
    }
    return answer;
  }
  Answer Generate(const v1::GenerateRequest& request) {
    grpc::ClientContext context;
    context.set_deadline(GrpcDeadline(kPatience));
    return Generate(request, context);
  }

  static void ExpectCanned(const Answer& answer, uint32_t count) {
    EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
    std::vector<TokenId> expected;
    for (uint32_t i = 0; i < count; ++i) expected.push_back(CannedToken(i));
    EXPECT_EQ(answer.tokens, expected);
    ASSERT_TRUE(answer.finish.has_value());
    EXPECT_EQ(answer.finish->usage().completion_tokens(), count);
  }

  v1::GetStatusResponse Status() {
    grpc::ClientContext context;
    context.set_deadline(GrpcDeadline(kPatience));
    v1::GetStatusResponse response;
    EXPECT_TRUE(admin_->GetStatus(&context, {}, &response).ok());
    return response;
  }

  // A decode script: `count` tokens of the answer, then nothing more.
  static FakeWorker::DecodeScript StallAfter(uint32_t count) {
    return [count](const v1::DecodeRequest& request, const std::shared_ptr<DecodeStream>& stream) {
      const auto from = static_cast<uint32_t>(request.header().prior_output_token_ids_size());
      stream->Send(FakeWorker::Tokens(from, from + count));
    };
  }

  // Keeps the workers' statuses coming.
  class Heart {
   public:
    explicit Heart(std::vector<std::unique_ptr<FakeWorker>>& workers)
        : thread_([this, &workers] {
            while (!stopped_) {
              {
                MutexLock lock(mutex_);
                for (const auto& worker : workers) {
                  if (worker != nullptr) worker->Heartbeat();
                }
              }
              absl::SleepFor(absl::Milliseconds(50));
            }
          }) {}
    ~Heart() {
      stopped_ = true;
      thread_.join();
    }
    Mutex& mutex() { return mutex_; }

   private:
    Mutex mutex_;  // guards the list of workers
    std::atomic<bool> stopped_ = false;
    std::thread thread_;
  };

  void Kill(size_t worker) {
    std::unique_ptr<FakeWorker> dying;
    {
      MutexLock lock(heart_->mutex());
      dying = std::move(workers_[worker]);
    }
  }

  AssetFiles assets_ = DemoAssets();
  RouterOptions options_;
  Handoffs handoffs_;
  std::vector<std::unique_ptr<FakeWorker>> workers_;
  std::unique_ptr<Router> router_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Inference::Stub> client_;
  std::unique_ptr<v1::Admin::Stub> admin_;
  std::unique_ptr<Heart> heart_;
};

}  // namespace baton::router
