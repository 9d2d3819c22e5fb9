// SPDX-License-Identifier: Apache-2.0
// Cancels and deadlines.
#include <gtest/gtest.h>

#include <memory>

#include "request_machine_fixture.h"
#include "tests/status_matchers.h"

namespace baton::router {
namespace {

using testing::Fails;

TEST_F(RequestMachineTest, CancelReleasesBothWorkersInEveryState) {
  struct Case {
    const char* name;
    std::function<void()> begin;
    int decode;  // cancelled calls
    int prefill;
  };
  const std::vector<Case> cases = {
      {"placing",
       [&] {
         machine_ = std::make_unique<RequestMachine>(spec_, tokenizer_, policy_, kStart);
         machine_->Start();
       },
       0, 0},
      {"opened", [&] { Begin(); }, 1, 0},
      {"accepted", [&] { BeginAccepted(); }, 1, 1},
      {"handed over", [&] { BeginDecoding(); }, 1, 0},
      {"waiting",
       [&] {
         Begin();
         DecodeEnds(1, absl::UnavailableError(""));
         PlaceNowhere(PlacementResult::Kind::kNoneReady);
       },
       0, 0},
  };
  for (const bool deadline : {false, true}) {
    for (const Case& one : cases) {
      SCOPED_TRACE(one.name);
      actions_.clear();
      one.begin();
      const int decode_before = Count<action::CancelDecode>();
      deadline ? machine_->OnDeadline(now_) : machine_->OnCancelled(now_, absl::CancelledError("by the test"));
      for (Action& action : machine_->TakeActions()) actions_.push_back(std::move(action));
      EXPECT_EQ(Count<action::CancelDecode>() - decode_before, one.decode);
      EXPECT_EQ(Count<action::CancelPrefill>(), one.prefill);
      EXPECT_TRUE(machine_->done());
      if (!deadline) {
        EXPECT_EQ(Failure().message(), "by the test");
      }
      EXPECT_EQ(Failure().code(), deadline ? absl::StatusCode::kDeadlineExceeded : absl::StatusCode::kCancelled);
      // The machine ignores later events.
      const size_t actions = actions_.size();
      machine_->OnCancelled(now_, absl::CancelledError());
      machine_->OnDeadline(now_);
      PlaceOn("p1", "d1");
      Decode(1, Tokens(1, {1}));
      PrefillEnds(1, absl::CancelledError());
      DecodeEnds(1, absl::CancelledError());
      EXPECT_EQ(actions_.size(), actions);
    }
  }
}

TEST_F(RequestMachineTest, ACompleteAnswerDoesNotFailAnyMore) {
  for (const bool deadline : {false, true}) {
    actions_.clear();
    BeginDecoding();
    Decode(1, Tokens(1, {kEnd}));  // the workers' figures are awaited
    deadline ? machine_->OnDeadline(now_) : machine_->OnCancelled(now_, absl::CancelledError("the router stops"));
    for (Action& action : machine_->TakeActions()) actions_.push_back(std::move(action));
    EXPECT_TRUE(machine_->done());
    EXPECT_EQ(Count<action::CancelDecode>(), 1);
    EXPECT_EQ(Count<action::Fail>(), 0);
    EXPECT_EQ(Last<action::Finish>().finish.usage().completion_tokens(), 2U);
  }
}

TEST_F(RequestMachineTest, AWorkersDeadlineIsTheRequests) {
  BeginDecoding();
  DecodeEnds(1, absl::DeadlineExceededError("late"));
  EXPECT_TRUE(Fails(Failure(), absl::StatusCode::kDeadlineExceeded, "1 output tokens sent"));
}

}  // namespace
}  // namespace baton::router
