// SPDX-License-Identifier: Apache-2.0
// The main job, failing workers, and requests that are refused.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/trace_context.h"
#include "router_fixture.h"
#include "tests/metrics_page.h"
#include "tests/temp_folder.h"

namespace baton::router {
namespace {

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

TEST_F(RouterTest, WorkersJoinAndLeaveWithTheWorkersFile) {
  const testing::TempFolder folder;
  options_.discovery.workers_file = (folder.path() / "workers").string();
  options_.discovery.interval = absl::Milliseconds(10);
  FakeWorker& first = AddWorker("b1", v1::WORKER_ROLE_BOTH);
  FakeWorker& second = AddWorker("b2", v1::WORKER_ROLE_BOTH);
  folder.Replace("workers", first.address());
  StartRouter({});
  ASSERT_TRUE(WaitFor([&] { return router_->ready(); }));
  ExpectCanned(Generate(Request(5)), 5);

  folder.Replace("workers", second.address());
  ASSERT_TRUE(WaitFor([&] { return Status().workers_size() == 1 && Status().workers(0).worker_id() == "b2"; }));
  ASSERT_TRUE(WaitFor([&] { return router_->ready(); }));
  const int calls = first.decode_calls();
  ExpectCanned(Generate(Request(5)), 5);
  EXPECT_EQ(first.decode_calls(), calls);
}

TEST_F(RouterTest, ARequestAtAWorkerThatLeavesTheListGoesOn) {
  const testing::TempFolder folder;
  options_.discovery.workers_file = (folder.path() / "workers").string();
  options_.discovery.interval = absl::Milliseconds(10);
  FakeWorker& worker = AddWorker("b1", v1::WORKER_ROLE_BOTH);
  folder.Replace("workers", worker.address());
  StartRouter({});
  ASSERT_TRUE(WaitFor([&] { return router_->ready(); }));
  worker.SetDecodeScript(StallAfter(3));
  grpc::ClientContext context;
  context.set_deadline(GrpcDeadline(kPatience));
  const Answer answer = Generate(Request(20), context, [&](size_t tokens) {
    if (tokens < 3) return;
    folder.Replace("workers", "");
    EXPECT_TRUE(WaitFor([&] {
      const v1::GetStatusResponse status = Status();
      return status.workers_size() == 1 && status.workers(0).state() == "draining";
    }));
    context.TryCancel();
  });
  EXPECT_EQ(answer.tokens.size(), 3u);
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(WaitFor([&] { return Status().workers_size() == 0; })) << "forgotten once the request has ended";
}

TEST_F(RouterTest, AClientsTraceReachesTheWorkersAndIsFoundLater) {
  FakeWorker& worker = AddWorker("b1", v1::WORKER_ROLE_BOTH);
  StartReadyRouter();
  std::string traceparent;
  worker.SetDecodeScript([&](const v1::DecodeRequest& request, const std::shared_ptr<DecodeStream>& stream) {
    traceparent = request.header().traceparent();
    stream->Send(FakeWorker::Tokens(0, 3));
    stream->Send(FakeWorker::Finished());
    stream->End();
  });
  const std::string trace_id = "4bf92f3577b34da6a3ce929d0e0e4736";
  grpc::ClientContext context;
  context.set_deadline(GrpcDeadline(kPatience));
  context.AddMetadata("traceparent", "00-" + trace_id + "-00f067aa0ba902b7-01");
  const Answer answer = Generate(Request(3), context);
  ExpectCanned(answer, 3);
  const std::optional<TraceContext> sent = TraceContext::Parse(traceparent);
  ASSERT_TRUE(sent.has_value()) << traceparent;
  EXPECT_EQ(sent->trace_id, trace_id);
  EXPECT_TRUE(sent->sampled);

  const auto get = [&](const std::string& id, v1::Trace& trace) {
    grpc::ClientContext call;
    call.set_deadline(GrpcDeadline(kPatience));
    v1::GetTraceRequest request;
    request.set_id(id);
    return admin_->GetTrace(&call, request, &trace);
  };
  v1::Trace trace;
  ASSERT_TRUE(get(answer.finish->request_id(), trace).ok());
  EXPECT_EQ(trace.trace_id(), trace_id);
  EXPECT_EQ(trace.spans(0).parent_span_id(), 0x00f067aa0ba902b7u);
  std::vector<std::string> names;
  for (const v1::TraceSpan& span : trace.spans()) names.push_back(span.name());
  EXPECT_THAT(names, ::testing::ElementsAre("request", "tokenize", "place", "attempt", "decode"));
  EXPECT_TRUE(get(trace_id, trace).ok());
  EXPECT_EQ(get("unknown", trace).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(get("", trace).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(RouterTest, AssetsWithAnotherFingerprintAreNotUsed) {
  workers_.push_back(std::make_unique<FakeWorker>(
      FakeWorkerOptions{"b1", v1::WORKER_ROLE_BOTH, "127.0.0.1:0", assets_, std::string(64, '0')}, handoffs_));
  StartRouter();
  EXPECT_TRUE(WaitFor([&] { return Status().workers(0).detail().find("fingerprint") != std::string::npos; }));
  EXPECT_FALSE(router_->ready());
  EXPECT_EQ(Generate(Request(5)).status.error_code(), grpc::StatusCode::UNAVAILABLE);
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
  tenant.set_tenant(std::string(65, 't'));
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

TEST_F(RouterTest, APortInUseIsSaid) {
  AddWorker("b1", v1::WORKER_ROLE_BOTH);
  options_.listen = workers_[0]->address();
  EXPECT_TRUE(testing::Fails(Router::Start(options_), absl::StatusCode::kUnavailable,
                             absl::StrCat("listen: cannot listen on ", options_.listen)));
  options_.metrics_listen = options_.listen;
  EXPECT_TRUE(testing::Fails(Router::Start(options_), absl::StatusCode::kUnavailable,
                             absl::StrCat("metrics-listen: cannot listen on ", options_.listen)));
}

// A limit of this process that changes shows whether a status reads it again.
TEST_F(RouterTest, TheFactsOfARouterAreThoseOfItsStart) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  AddWorker("b1", v1::WORKER_ROLE_BOTH);
  StartReadyRouter();
  rlimit lower = before;
  --lower.rlim_cur;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &lower), 0);
  const v1::ProcessFacts facts = Status().router();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(facts.max_open_files(), before.rlim_cur);
  EXPECT_FALSE(facts.version().empty());
  EXPECT_GE(facts.cpus(), 1u);
}

}  // namespace
}  // namespace baton::router
