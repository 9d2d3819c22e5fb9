// SPDX-License-Identifier: Apache-2.0
// The reports of two real engines to the router when a handoff is refused, unwanted or lost, and the prefill worker's
// metrics.
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/mutex.h"
#include "common/outcome_proto.h"
#include "common/steady_time.h"
#include "pipeline.h"
#include "tests/metrics_page.h"
#include "tests/status_matchers.h"

namespace baton::testing {
namespace {

constexpr absl::Duration kOutcomePatience = absl::Seconds(60);

// Keeps how the attempt failed, and that the first token came.
template <typename Event>
class OutcomeSink final : public EventSink<Event> {
 public:
  void Write(Event event, bool last) override {
    MutexLock lock(mutex_);
    if constexpr (requires { event.has_first_token(); }) computed_ = computed_ || event.has_first_token();
    if (event.has_failed()) outcome_ = FromProto(event.failed());
    over_ = over_ || last;
    changed_.NotifyAll();
  }
  bool cancelled() const override { return false; }

  bool WaitForFirstToken() {
    MutexLock lock(mutex_);
    const SteadyTime deadline = SteadyTime::Now() + kOutcomePatience;
    while (!computed_ && changed_.WaitUntil(mutex_, deadline)) {
    }
    return computed_;
  }
  // kFinished if the stream ended otherwise.
  Outcome Wait() {
    MutexLock lock(mutex_);
    const SteadyTime deadline = SteadyTime::Now() + kOutcomePatience;
    while (!over_ && changed_.WaitUntil(mutex_, deadline)) {
    }
    EXPECT_TRUE(over_) << "no terminal event";
    return outcome_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool computed_ ABSL_GUARDED_BY(mutex_) = false;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  Outcome outcome_ ABSL_GUARDED_BY(mutex_){Cause::kFinished, ""};
};

class HandoffOutcomeTest : public ::testing::Test {
 protected:
  HandoffOutcomeTest() {
    attempt_.key = {{7, 1}, 1};
    attempt_.due = absl::Now();
    attempt_.prompt.assign(20, 5);
    attempt_.sampling.max_tokens = 4;
  }

  void Open() { ASSERT_OK(decode_->Open(attempt_, /*local=*/false, decode_sink_)); }
  void Submit() { prefill_.Submit(attempt_, decode_->target(), prefill_sink_); }
  double FailedTransfers() {
    const auto page = MetricsPage::Parse(prometheus::TextSerializer().Serialize(prefill_.registry().Collect()));
    return page.Sum("baton_worker_kv_transfer_failures_total");
  }

  Attempt attempt_;
  PrefillNode prefill_{"prefill", TinyNode()};
  std::unique_ptr<DecodeNode> decode_ = std::make_unique<DecodeNode>("decode", TinyNode());
  const std::shared_ptr<OutcomeSink<v1::PrefillEvent>> prefill_sink_ =
      std::make_shared<OutcomeSink<v1::PrefillEvent>>();
  const std::shared_ptr<OutcomeSink<v1::DecodeEvent>> decode_sink_ = std::make_shared<OutcomeSink<v1::DecodeEvent>>();
};

TEST_F(HandoffOutcomeTest, ARefusalOfADrainingDecodeWorkerIsNoFailedTransferAndLeavesThePairWhole) {
  Open();
  decode_->StartDraining();
  decode_->receiver().StartDraining();
  Submit();
  const Outcome prefill = prefill_sink_->Wait();
  EXPECT_EQ(prefill.cause, Cause::kDraining);
  EXPECT_EQ(prefill.at_fault, Fault::kPeer);
  EXPECT_FALSE(BreaksPair(prefill));
  const Outcome decode = decode_sink_->Wait();
  EXPECT_EQ(decode.cause, Cause::kDraining);
  EXPECT_EQ(decode.at_fault, Fault::kReporter);
  EXPECT_FALSE(BreaksPair(decode));
  EXPECT_EQ(FailedTransfers(), 0);
}

TEST_F(HandoffOutcomeTest, WhatTheRouterCancelledAtTheDecodeWorkerIsNoFailedTransfer) {
  prefill_.transport().HoldPuts();
  Open();
  Submit();
  ASSERT_TRUE(prefill_sink_->WaitForFirstToken());
  decode_->Cancel(attempt_.key, /*local=*/false);
  // Close is a command of the decode engine: the revocation is on its way once the attempt is gone there.
  const SteadyTime deadline = SteadyTime::Now() + kOutcomePatience;
  while (decode_->receiver().load().revoking == 0 && SteadyTime::Now() < deadline)
    absl::SleepFor(absl::Milliseconds(1));
  prefill_.transport().ReleasePuts();
  const Outcome prefill = prefill_sink_->Wait();
  EXPECT_EQ(prefill.cause, Cause::kRevoked);
  EXPECT_EQ(prefill.at_fault, Fault::kNobody);
  EXPECT_EQ(FailedTransfers(), 0);
}

TEST_F(HandoffOutcomeTest, ALostDecodeWorkerIsAFailedTransferAndBreaksThePair) {
  prefill_.transport().HoldPuts();
  Open();
  Submit();
  ASSERT_TRUE(prefill_sink_->WaitForFirstToken());
  decode_.reset();
  prefill_.transport().ReleasePuts();
  const Outcome prefill = prefill_sink_->Wait();
  EXPECT_EQ(prefill.cause, Cause::kPeerLost);
  EXPECT_TRUE(BreaksPair(prefill));
  EXPECT_EQ(FailedTransfers(), 1);
}

}  // namespace
}  // namespace baton::testing
