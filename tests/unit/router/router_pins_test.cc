// SPDX-License-Identifier: Apache-2.0
// Pinned requests through the whole router.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "router_fixture.h"

namespace baton::router {
namespace {

v1::GenerateRequest Pinned(v1::GenerateRequest request, const std::string& prefill, const std::string& decode) {
  request.mutable_pin()->set_prefill_worker(prefill);
  request.mutable_pin()->set_decode_worker(decode);
  return request;
}

class RouterPinTest : public RouterTest {
 protected:
  // p1, d1, d2 and b1, with all pairs ready.
  void StartPairs() {
    AddWorker("p1", v1::WORKER_ROLE_PREFILL);
    AddWorker("d1", v1::WORKER_ROLE_DECODE);
    AddWorker("d2", v1::WORKER_ROLE_DECODE);
    AddWorker("b1", v1::WORKER_ROLE_BOTH);
    StartReadyRouter();
    ASSERT_TRUE(WaitFor([&] {
      const v1::GetStatusResponse status = Status();
      return status.pairs_size() == 4 &&
             std::ranges::all_of(status.pairs(), [](const v1::PairInfo& pair) { return pair.state() == "ready"; });
    }));
  }
};

TEST_F(RouterPinTest, APinnedRequestRunsOnItsPair) {
  StartPairs();
  for (const auto& [prefill, decode] : {std::pair{"p1", "d1"}, {"p1", "d2"}, {"p1", "b1"}, {"b1", "b1"}, {"", "b1"}}) {
    for (int i = 0; i < 3; ++i) {
      const Answer answer = Generate(Pinned(Request(4), prefill, decode));
      ExpectCanned(answer, 4);
      ASSERT_EQ(answer.finish->attempts_size(), 1);
      EXPECT_EQ(answer.finish->attempts(0).prefill_worker(), std::string(prefill) == "p1" ? "p1" : "");
      EXPECT_EQ(answer.finish->attempts(0).decode_worker(), decode);
    }
  }
}

TEST_F(RouterPinTest, AFailedAttemptIsFollowedByOneOnTheSamePair) {
  StartPairs();
  int calls = 0;
  workers_[1]->SetDecodeScript([&](const v1::DecodeRequest&, const std::shared_ptr<DecodeStream>& stream) {
    v1::DecodeEvent failed;
    failed.mutable_failed()->set_cause(v1::CAUSE_INTERNAL);
    failed.mutable_failed()->set_message("broken");
    if (++calls == 2) workers_[1]->SetDecodeScript(nullptr);
    stream->Send(failed);
    stream->End();
  });
  const Answer answer = Generate(Pinned(Request(4), "p1", "d1"));
  ExpectCanned(answer, 4);
  ASSERT_EQ(answer.finish->attempts_size(), 3);
  for (const v1::AttemptInfo& attempt : answer.finish->attempts()) EXPECT_EQ(attempt.decode_worker(), "d1");
}

TEST_F(RouterPinTest, APairThatDoesNotBecomeReadyIsUnavailable) {
  options_.placement_wait = absl::Milliseconds(200);
  StartPairs();
  Kill(1);
  ASSERT_TRUE(WaitFor([&] { return Status().workers(1).state() == "lost"; }));
  const Answer answer = Generate(Pinned(Request(4), "p1", "d1"));
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(answer.status.error_message(), "the pinned pair p1+d1 cannot serve: d1 is lost");
  ExpectCanned(Generate(Request(4)), 4);
}

TEST_F(RouterPinTest, RefusalsNameTheFieldOrTheOption) {
  StartPairs();
  const Answer unknown = Generate(Pinned(Request(4), "p1", "d9"));
  EXPECT_EQ(unknown.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(unknown.status.error_message(), "pin.decode_worker: d9 is no worker of this router; expected b1, d1, d2");

  options_.pins = "off";
  StartReadyRouter();
  const Answer refused = Generate(Pinned(Request(4), "p1", "d1"));
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(refused.status.error_message(), "pin: this router takes no pinned requests (--pins off)");
  ExpectCanned(Generate(Request(4)), 4);
}

}  // namespace
}  // namespace baton::router
