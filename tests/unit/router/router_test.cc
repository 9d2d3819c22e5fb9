// SPDX-License-Identifier: Apache-2.0
// The whole router in this process, between a client and fake workers, over real gRPC.
#include "router/router.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "baton/v1/inference.grpc.pb.h"
#include "common/steady_time.h"
#include "demo_assets.h"
#include "fake_worker.h"
#include "tests/metrics_page.h"
#include "tests/status_matchers.h"

namespace baton::router {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);  // liveness only: nothing is measured

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
  void StartRouter() {
    for (const auto& worker : workers_) options_.workers.push_back(worker->address());
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

TEST_F(RouterTest, StreamsAnAnswerThroughAPairOfWorkers) {
  AddWorker("p1", v1::WORKER_ROLE_PREFILL);
  AddWorker("d1", v1::WORKER_ROLE_DECODE);
  StartReadyRouter();
  const Answer answer = Generate(Request(50));
  ExpectCanned(answer, 50);
  EXPECT_FALSE(answer.text.empty());
  EXPECT_EQ(answer.finish->reason(), v1::FINISH_REASON_LENGTH);
  EXPECT_EQ(answer.finish->usage().prompt_tokens(), 20u);
  ASSERT_EQ(answer.finish->attempts_size(), 1);
  EXPECT_EQ(answer.finish->attempts(0).prefill_worker(), "p1");
  EXPECT_EQ(answer.finish->attempts(0).decode_worker(), "d1");
  EXPECT_EQ(answer.finish->attempts(0).kv_bytes(), 4096u);
}

TEST_F(RouterTest, AWorkerOfBothRolesServesAlone) {
  AddWorker("b1", v1::WORKER_ROLE_BOTH);
  StartReadyRouter();
  ExpectCanned(Generate(Request(5)), 5);
}

TEST_F(RouterTest, ADecodeWorkersDeathIsUnseenButForAPause) {
  AddWorker("p1", v1::WORKER_ROLE_PREFILL);
  AddWorker("d1", v1::WORKER_ROLE_DECODE);
  AddWorker("d2", v1::WORKER_ROLE_DECODE);
  StartReadyRouter();
  ASSERT_TRUE(WaitFor([&] { return Status().pairs(0).state() == "ready" && Status().pairs(1).state() == "ready"; }));
  for (size_t i = 1; i <= 2; ++i) workers_[i]->SetDecodeScript(StallAfter(3));
  grpc::ClientContext context;
  context.set_deadline(GrpcDeadline(kPatience));
  bool killed = false;
  const Answer answer = Generate(Request(20), context, [&](size_t tokens) {
    if (tokens < 3 || std::exchange(killed, true)) return;
    const size_t serving = workers_[1]->decode_calls() > 0 ? 1 : 2;
    workers_[3 - serving]->SetDecodeScript(nullptr);
    Kill(serving);
  });
  ExpectCanned(answer, 20);
  ASSERT_EQ(answer.finish->attempts_size(), 2);
  EXPECT_EQ(answer.finish->attempts(0).ended_by(), "decode_lost");
  EXPECT_NE(answer.finish->attempts(0).decode_worker(), answer.finish->attempts(1).decode_worker());
}

TEST_F(RouterTest, ASilentWorkersAttemptsMoveOn) {
  AddWorker("b1", v1::WORKER_ROLE_BOTH);
  AddWorker("b2", v1::WORKER_ROLE_BOTH);
  StartReadyRouter();
  ASSERT_TRUE(WaitFor([&] { return Status().pairs(0).state() == "ready" && Status().pairs(1).state() == "ready"; }));
  for (const auto& worker : workers_) worker->SetDecodeScript(StallAfter(3));
  grpc::ClientContext context;
  context.set_deadline(GrpcDeadline(kPatience));
  size_t serving = 0;
  bool silenced = false;
  const Answer answer = Generate(Request(20), context, [&](size_t tokens) {
    if (tokens < 3 || std::exchange(silenced, true)) return;
    serving = workers_[0]->decode_calls() > 0 ? 0 : 1;
    workers_[1 - serving]->SetDecodeScript(nullptr);
    workers_[serving]->FallSilent();
  });
  ExpectCanned(answer, 20);
  EXPECT_EQ(Status().workers(static_cast<int>(serving)).state(), "lost");
  workers_[serving]->Speak();
  EXPECT_TRUE(WaitFor([&] { return Status().workers(static_cast<int>(serving)).state() == "serving"; }));
}

TEST_F(RouterTest, ARestartedWorkerIsTakenBack) {
  AddWorker("b1", v1::WORKER_ROLE_BOTH);
  StartReadyRouter();
  const std::string address = workers_[0]->address();
  Kill(0);
  EXPECT_TRUE(WaitFor([&] { return !router_->ready(); }));
  {
    MutexLock lock(heart_->mutex());
    AddWorker("b1", v1::WORKER_ROLE_BOTH, address);
  }
  EXPECT_TRUE(WaitFor([&] { return router_->ready(); }));
  ExpectCanned(Generate(Request(5)), 5);
}

TEST_F(RouterTest, AssetsWithAnotherFingerprintAreNotUsed) {
  workers_.push_back(std::make_unique<FakeWorker>(
      FakeWorkerOptions{"b1", v1::WORKER_ROLE_BOTH, "127.0.0.1:0", assets_, std::string(64, '0')}, handoffs_));
  StartRouter();
  EXPECT_TRUE(WaitFor([&] { return Status().workers(0).detail().find("fingerprint") != std::string::npos; }));
  EXPECT_FALSE(router_->ready());
  EXPECT_EQ(Generate(Request(5)).status.error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(RouterTest, AClientsCancelReachesTheWorkers) {
  AddWorker("b1", v1::WORKER_ROLE_BOTH);
  StartReadyRouter();
  workers_[0]->SetDecodeScript(StallAfter(3));
  grpc::ClientContext context;
  const Answer answer = Generate(Request(20), context, [&](size_t tokens) {
    if (tokens >= 3) context.TryCancel();
  });
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(WaitFor([&] { return workers_[0]->open_calls() == 0; }));
  EXPECT_TRUE(WaitFor([&] { return Status().running_requests() == 0; }));
}

TEST_F(RouterTest, ADeadlineEndsTheRequestAndReachesTheWorkers) {
  AddWorker("b1", v1::WORKER_ROLE_BOTH);
  StartReadyRouter();
  workers_[0]->SetDecodeScript(StallAfter(3));
  grpc::ClientContext context;
  context.set_deadline(GrpcDeadline(absl::Milliseconds(300)));
  int open_calls = 0;
  const Answer answer = Generate(Request(20), context, [&](size_t) { open_calls = workers_[0]->open_calls(); });
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(answer.tokens.size(), 3u);
  EXPECT_GE(open_calls, 1) << "there was something to reach";
  EXPECT_TRUE(WaitFor([&] { return workers_[0]->open_calls() == 0; }));
}

TEST_F(RouterTest, ARequestWithoutADeadlineGetsTheDefault) {
  options_.default_deadline = absl::Milliseconds(300);
  AddWorker("b1", v1::WORKER_ROLE_BOTH);
  StartReadyRouter();
  workers_[0]->SetDecodeScript(StallAfter(3));
  grpc::ClientContext context;
  EXPECT_EQ(Generate(Request(20), context).status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
}

// More than what a connection of ClientOfSmallWindow takes without its client reading.
v1::DecodeEvent BulkyTokens(uint32_t count) {
  v1::DecodeEvent event = FakeWorker::Tokens(0, count);
  for (v1::TokenEvent& token : *event.mutable_tokens()->mutable_tokens()) {
    token.mutable_logprobs()->mutable_chosen()->set_token_id(token.token_id());
    for (int i = 0; i < 20; ++i) token.mutable_logprobs()->add_top()->set_logprob(-1);
  }
  return event;
}

std::unique_ptr<v1::Inference::Stub> ClientOfSmallWindow(int port) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // the window stays at HTTP/2's 64 KiB
  return v1::Inference::NewStub(
      grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials(), arguments));
}

TEST_F(RouterTest, AClientThatDoesNotReadKeepsItsPlaceNoLongerThanTheDeadline) {
  options_.default_deadline = absl::Milliseconds(300);
  AddWorker("b1", v1::WORKER_ROLE_BOTH);
  StartReadyRouter();
  const auto client = ClientOfSmallWindow(router_->port());
  constexpr uint32_t kTokens = 2000;
  v1::GenerateRequest request = Request(kTokens);
  request.mutable_sampling()->set_logprobs(20);
  for (const bool complete : {false, true}) {
    SCOPED_TRACE(complete);
    workers_[0]->SetDecodeScript([=](const v1::DecodeRequest&, const std::shared_ptr<DecodeStream>& stream) {
      stream->Send(BulkyTokens(complete ? kTokens : kTokens - 1));
      if (!complete) return;
      stream->Send(FakeWorker::Finished());
      stream->End();
    });
    const int calls = workers_[0]->decode_calls();
    grpc::ClientContext context;
    const auto reader = client->Generate(&context, request);
    ASSERT_TRUE(WaitFor([&] { return workers_[0]->decode_calls() > calls && workers_[0]->open_calls() == 0; }));
    EXPECT_EQ(Status().running_requests(), 1u) << "only what is to be read keeps it";
    EXPECT_TRUE(WaitFor([&] { return Status().running_requests() == 0; }));
    context.TryCancel();
    reader->Finish();
  }
}

TEST_F(RouterTest, AClientThatReadsLateGetsTheStatus) {
  options_.default_deadline = absl::Milliseconds(300);
  AddWorker("b1", v1::WORKER_ROLE_BOTH);
  StartReadyRouter();
  workers_[0]->SetDecodeScript(
      [](const v1::DecodeRequest&, const std::shared_ptr<DecodeStream>& stream) { stream->Send(BulkyTokens(1999)); });
  v1::GenerateRequest request = Request(2000);
  request.mutable_sampling()->set_logprobs(20);
  grpc::ClientContext context;
  const auto client = ClientOfSmallWindow(router_->port());
  const auto reader = client->Generate(&context, request);
  // The run has ended, and with it its worker's call.
  ASSERT_TRUE(WaitFor([&] { return workers_[0]->decode_calls() > 0 && workers_[0]->open_calls() == 0; }));
  EXPECT_EQ(Status().running_requests(), 1u) << "a write is under way";
  v1::GenerateResponse response;
  int tokens = 0;
  while (reader->Read(&response)) tokens += response.chunk().token_ids_size();
  EXPECT_EQ(tokens, 1999);
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST_F(RouterTest, RequestsBeyondTheLimitAreRefusedWithAHint) {
  options_.max_requests = 1;
  AddWorker("b1", v1::WORKER_ROLE_BOTH);
  StartReadyRouter();
  workers_[0]->SetDecodeScript(StallAfter(3));
  grpc::ClientContext context;
  Answer second;
  Generate(Request(20), context, [&](size_t tokens) {
    if (tokens < 3) return;
    second = Generate(Request(1));
    context.TryCancel();
  });
  EXPECT_EQ(second.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(second.retry_after_ms, "1000");
}

TEST_F(RouterTest, WhatWouldBeRefusedAgainComesWithoutAHint) {
  assets_["chat_template.jinja"] = "{% for a in range(10000) %}{% for b in range(10000) %}{% endfor %}{% endfor %}";
  AddWorker("b1", v1::WORKER_ROLE_BOTH);
  StartReadyRouter();
  v1::GenerateRequest request = Request(1);
  v1::ChatMessage& message = *request.mutable_chat()->add_messages();
  message.set_role("user");
  message.set_content("Hi");
  const Answer answer = Generate(request);
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(answer.retry_after_ms, "");
}

TEST_F(RouterTest, DrainingRefusesNewRequestsAndLetsTheOthersFinish) {
  AddWorker("b1", v1::WORKER_ROLE_BOTH);
  StartReadyRouter();
  std::shared_ptr<DecodeStream> held;
  workers_[0]->SetDecodeScript([&](const v1::DecodeRequest&, const std::shared_ptr<DecodeStream>& stream) {
    held = stream;
    stream->Send(FakeWorker::Tokens(0, 3));
  });
  grpc::ClientContext context;
  bool drained = false;
  const Answer answer = Generate(Request(20), context, [&](size_t tokens) {
    if (tokens < 3 || std::exchange(drained, true)) return;
    router_->StartDraining();
    EXPECT_EQ(Generate(Request(1)).status.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_FALSE(router_->WaitDrained(SteadyTime::Now()));
    held->Send(FakeWorker::Tokens(3, 20));
    held->Send(FakeWorker::Finished());
    held->End();
  });
  ExpectCanned(answer, 20);
  EXPECT_TRUE(router_->WaitDrained(SteadyTime::Now() + kPatience));
}

TEST_F(RouterTest, AStoppedRouterEndsWhatStillRuns) {
  AddWorker("b1", v1::WORKER_ROLE_BOTH);
  StartReadyRouter();
  workers_[0]->SetDecodeScript(StallAfter(3));
  grpc::ClientContext context;
  const Answer answer = Generate(Request(20), context, [&](size_t tokens) {
    if (tokens >= 3) router_->Shutdown();
  });
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNAVAILABLE) << answer.status.error_message();
  EXPECT_TRUE(WaitFor([&] { return workers_[0]->open_calls() == 0; }));
}

TEST_F(RouterTest, AStopStringEndsTheAnswerAndTheWorkersCall) {
  AddWorker("b1", v1::WORKER_ROLE_BOTH);
  StartReadyRouter();
  workers_[0]->SetDecodeScript(StallAfter(20));
  const Answer whole = Generate([] {
    v1::GenerateRequest request = Request(20);
    return request;
  }());
  // The text of tokens 5 and 6 of the same answer.
  v1::DetokenizeRequest detokenize;
  detokenize.add_token_ids(CannedToken(5));
  detokenize.add_token_ids(CannedToken(6));
  v1::DetokenizeResponse stop;
  grpc::ClientContext context;
  ASSERT_TRUE(client_->Detokenize(&context, detokenize, &stop).ok());
  v1::GenerateRequest request = Request(40);
  request.mutable_sampling()->add_stop(stop.text());
  const Answer answer = Generate(request);
  ASSERT_TRUE(answer.finish.has_value()) << answer.status.error_message();
  EXPECT_EQ(answer.finish->stop_string(), stop.text());
  EXPECT_EQ(answer.tokens.size(), 7u);
  EXPECT_EQ(answer.text, whole.text.substr(0, whole.text.find(stop.text())));
  EXPECT_TRUE(WaitFor([&] { return workers_[0]->open_calls() == 0; }));
}

TEST_F(RouterTest, TokenizesDetokenizesAndListsModels) {
  AddWorker("b1", v1::WORKER_ROLE_BOTH);
  StartReadyRouter();
  v1::TokenizeRequest tokenize;
  tokenize.set_prompt("Hello there");
  v1::TokenizeResponse tokens;
  grpc::ClientContext first;
  ASSERT_TRUE(client_->Tokenize(&first, tokenize, &tokens).ok());
  ASSERT_GT(tokens.token_ids_size(), 1);
  EXPECT_EQ(tokens.token_ids(0), 4090) << "BOS";

  v1::DetokenizeRequest detokenize;
  *detokenize.mutable_token_ids() = tokens.token_ids();
  v1::DetokenizeResponse text;
  grpc::ClientContext second;
  ASSERT_TRUE(client_->Detokenize(&second, detokenize, &text).ok());
  EXPECT_EQ(text.text(), "Hello there");
  detokenize.add_token_ids(1 << 20);
  grpc::ClientContext third;
  EXPECT_EQ(client_->Detokenize(&third, detokenize, &text).error_code(), grpc::StatusCode::INVALID_ARGUMENT);

  tokenize.mutable_chat()->add_messages()->set_role("user");
  grpc::ClientContext fourth;
  ASSERT_TRUE(client_->Tokenize(&fourth, tokenize, &tokens).ok());
  EXPECT_NE(tokens.rendered().find("<|user|>"), std::string::npos);

  v1::ListModelsResponse models;
  grpc::ClientContext fifth;
  ASSERT_TRUE(client_->ListModels(&fifth, {}, &models).ok());
  ASSERT_EQ(models.models_size(), 1);
  EXPECT_EQ(models.models(0).name(), "demo");
  EXPECT_TRUE(models.models(0).ready());
}

TEST_F(RouterTest, RefusalsNameTheField) {
  AddWorker("b1", v1::WORKER_ROLE_BOTH);
  StartReadyRouter();
  v1::GenerateRequest unknown = Request(5);
  unknown.set_model("other");
  EXPECT_EQ(Generate(unknown).status.error_code(), grpc::StatusCode::NOT_FOUND);
  v1::GenerateRequest tenant = Request(5);
  tenant.set_tenant("t");
  const grpc::Status status = Generate(tenant).status;
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("tenant"), std::string::npos);
  EXPECT_EQ(Generate(Request(1 << 20)).status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(RouterTest, RequestsThatCannotBeParsedAreRefusedInWords) {
  AddWorker("b1", v1::WORKER_ROLE_BOTH);
  StartReadyRouter();
  grpc::GenericStub stub(channel_);
  for (const char* method : {"Inference/Generate", "Inference/Tokenize", "Inference/Detokenize", "Inference/ListModels",
                             "Admin/GetStatus"}) {
    grpc::ClientContext context;
    const grpc::Slice garbage("\xff\xff\xff");
    const grpc::ByteBuffer request(&garbage, 1);
    grpc::ByteBuffer response;
    absl::Notification done;
    grpc::Status status;
    stub.UnaryCall(&context, absl::StrCat("/baton.v1.", method), {}, &request, &response, [&](const grpc::Status& end) {
      status = end;
      done.Notify();
    });
    ASSERT_TRUE(done.WaitForNotificationWithTimeout(kPatience)) << method;
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method;
    EXPECT_NE(status.error_message().find("expected a baton.v1."), std::string::npos) << status.error_message();
  }
}

TEST_F(RouterTest, TimeSpentWaitingForRoomIsQueueTime) {
  options_.metrics_listen = "127.0.0.1:0";
  options_.overload_wait = kPatience;
  FakeWorker& worker = AddWorker("b1", v1::WORKER_ROLE_BOTH);
  StartReadyRouter();
  constexpr int kRefusals = 3;  // after the second there are pauses
  std::atomic<int> refusals = 0;
  worker.SetDecodeScript([&](const v1::DecodeRequest& request, const std::shared_ptr<DecodeStream>& stream) {
    v1::DecodeEvent event = FakeWorker::Tokens(0, request.header().sampling().max_tokens());
    if (++refusals <= kRefusals) {
      event.mutable_failed()->set_cause(v1::CAUSE_OVERLOADED);
    } else {
      stream->Send(event);
      event = FakeWorker::Finished();
    }
    stream->Send(event);
    stream->End();
  });
  ExpectCanned(Generate(Request(5)), 5);
  ASSERT_OK_AND_ASSIGN(const testing::MetricsPage page, testing::MetricsPage::Fetch(router_->metrics_port()));
  EXPECT_GE(page.Sum("baton_request_queue_seconds_sum", {{"model", "demo"}}), 0.05);
}

// Given a message of 3 tokens and, at least 20 ms later, one of 4.
TEST_F(RouterTest, TokensOfOneMessageShareTheGapBeforeIt) {
  options_.metrics_listen = "127.0.0.1:0";
  FakeWorker& worker = AddWorker("b1", v1::WORKER_ROLE_BOTH);
  StartReadyRouter();
  std::shared_ptr<DecodeStream> answer;
  worker.SetDecodeScript([&](const v1::DecodeRequest&, const std::shared_ptr<DecodeStream>& stream) {
    answer = stream;
    stream->Send(FakeWorker::Tokens(0, 3));
  });
  grpc::ClientContext context;
  context.set_deadline(GrpcDeadline(kPatience));
  const Answer whole = Generate(Request(7), context, [&](size_t tokens) {
    if (tokens != 3) return;
    absl::SleepFor(absl::Milliseconds(20));
    answer->Send(FakeWorker::Tokens(3, 7));
    answer->Send(FakeWorker::Finished());
    answer->End();
  });
  ExpectCanned(whole, 7);
  ASSERT_OK_AND_ASSIGN(const testing::MetricsPage page, testing::MetricsPage::Fetch(router_->metrics_port()));
  EXPECT_EQ(page.Sum("baton_time_to_first_token_seconds_count"), 1);
  EXPECT_EQ(page.Sum("baton_inter_token_latency_seconds_count"), 4);
  EXPECT_GE(page.Sum("baton_inter_token_latency_seconds_sum"), 0.02);
  EXPECT_LT(page.Sum("baton_inter_token_latency_seconds_sum"), 2 * whole.finish->timings().total_seconds());
  EXPECT_EQ(page.Sum("baton_inter_token_latency_seconds_bucket", {{"le", "0.0037"}}), 0);
}

TEST_F(RouterTest, AProbeCountsForNothing) {
  options_.metrics_listen = "127.0.0.1:0";
  AddWorker("b1", v1::WORKER_ROLE_BOTH);
  StartReadyRouter();
  ASSERT_OK_AND_ASSIGN(const testing::MetricsPage page, testing::MetricsPage::Fetch(router_->metrics_port()));
  EXPECT_EQ(page.Sum("baton_ready_pairs"), 1);
  for (const testing::MetricsSeries& series : page.series()) {
    EXPECT_EQ(series.name.rfind("baton_", 0) == 0 && series.name.find("_total") != std::string::npos, false)
        << series.name;
  }
}

TEST_F(RouterTest, ARequestLogsOneLine) {
  AddWorker("b1", v1::WORKER_ROLE_BOTH);
  StartReadyRouter();
  ::testing::internal::CaptureStderr();
  v1::GenerateRequest request = Request(5);
  request.set_request_label("label-of-a-client");
  const Answer answer = Generate(request);
  const std::string log = ::testing::internal::GetCapturedStderr();
  ExpectCanned(answer, 5);
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
  for (const char* part : {"INFO", "request.finished", "request=", "label=label-of-a-client", "model=demo",
                           "outcome=length", "attempts=1", "output_tokens=5", "ttft_seconds=", "total_seconds="}) {
    EXPECT_THAT(log, ::testing::HasSubstr(part));
  }
}

TEST_F(RouterTest, ARequestThatFailsLogsItsOutcomeOnce) {
  options_.metrics_listen = "127.0.0.1:0";
  FakeWorker& worker = AddWorker("b1", v1::WORKER_ROLE_BOTH);
  StartReadyRouter();
  worker.SetDecodeScript([&](const v1::DecodeRequest&, const std::shared_ptr<DecodeStream>& stream) {
    stream->Send(FakeWorker::Tokens(0, 3));  // and then nothing
  });
  grpc::ClientContext context;
  ::testing::internal::CaptureStderr();
  const Answer answer = Generate(Request(20), context, [&](size_t) { context.TryCancel(); });
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(WaitFor([&] {
    const auto page = testing::MetricsPage::Fetch(router_->metrics_port());
    return page.ok() && page->Sum("baton_requests_total", {{"outcome", "CANCELLED"}}) == 1;
  }));
  const std::string log = ::testing::internal::GetCapturedStderr();
  size_t lines = 0;
  for (size_t at = log.find("request="); at != std::string::npos; at = log.find("request=", at + 1)) ++lines;
  EXPECT_EQ(lines, 1u) << log;
  EXPECT_THAT(log, ::testing::HasSubstr("outcome=CANCELLED"));
}

TEST_F(RouterTest, APortInUseIsSaid) {
  AddWorker("b1", v1::WORKER_ROLE_BOTH);
  options_.listen = workers_[0]->address();
  EXPECT_TRUE(testing::Fails(Router::Start(options_), absl::StatusCode::kUnavailable,
                             absl::StrCat("listen: cannot listen on ", options_.listen)));
  options_.metrics_listen = options_.listen;
  EXPECT_TRUE(testing::Fails(Router::Start(options_), absl::StatusCode::kUnavailable,
                             absl::StrCat("metrics-listen: cannot listen on ", options_.listen)));
}

}  // namespace
}  // namespace baton::router
