// SPDX-License-Identifier: Apache-2.0
// Cancels, deadlines, slow clients, limits, draining and stopping.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "router_fixture.h"
#include "tests/metrics_page.h"

namespace baton::router {
namespace {

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
    EXPECT_THAT(
        Generate(Request(1)).status.error_code(),
        ::testing::AnyOf(grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::CANCELLED));  // no connection, or just ended
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

}  // namespace
}  // namespace baton::router
