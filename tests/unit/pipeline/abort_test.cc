// SPDX-License-Identifier: Apache-2.0
// A caller leaves at every step of a handoff, on real engines, and either call ends first. Both workers always release
// everything (I2, I3). The decode worker releases no page before the puts into the page are over (I1).
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "common/steady_time.h"
#include "pipeline.h"
#include "tests/status_matchers.h"
#include "tests/tiny_models.h"

namespace baton::testing {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr int kPages = 16;
constexpr int kPromptTokens = 20;  // two pages

NodeOptions ATokenAtATime() {
  return {.model_folder = TinyModel("llama_gqa").string(),
          .pages = kPages,
          .schedule = {.token_budget = 8, .chunk_tokens = 1, .max_sequences = 8}};
}

bool Becomes(const std::function<bool()>& condition) {
  const SteadyTime deadline = SteadyTime::Now() + kPatience;
  while (!condition()) {
    if (SteadyTime::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return true;
}

template <typename Event>
class CallSink final : public EventSink<Event> {
 public:
  void Write(Event event, bool) override {
    if (on_event) on_event(event);
  }
  bool cancelled() const override {
    if (on_asked) on_asked(++asked_);
    return left;
  }

  std::function<void(const Event&)> on_event;  // set before the call starts
  std::function<void(int times)> on_asked;     // after each layer of each step
  std::atomic<bool> left = false;

 private:
  mutable std::atomic<int> asked_ = 0;
};

enum class First { kPrefill, kDecode, kBoth };

// The two calls of one attempt.
class Calls {
 public:
  Calls(PrefillNode& prefill, DecodeNode& decode, First first) : prefill_(prefill), decode_(decode), first_(first) {
    static std::atomic<uint64_t> next_request{1};
    attempt_.key = {{next_request++, 1}, 1};
    attempt_.due = absl::Now();
    attempt_.prompt.assign(kPromptTokens, 5);
    attempt_.sampling.max_tokens = 4;
  }

  CallSink<v1::PrefillEvent>& prefill_sink() { return *prefill_sink_; }

  void Start() {
    ASSERT_OK(decode_.Open(attempt_, /*local=*/false, decode_sink_));
    prefill_.Submit(attempt_, decode_.target(), prefill_sink_);
  }
  // The call that is to end first does, or both do. From any thread.
  void Leave() {
    if (first_ != First::kDecode) LeavePrefill();
    if (first_ != First::kPrefill) LeaveDecode();
  }
  // The other call ends, too, once the first is over. False if an engine keeps the attempt.
  bool End() {
    if (!Becomes([this] { return first_ == First::kDecode ? DecodeIsOver() : PrefillIsOver(); })) return false;
    LeavePrefill();
    LeaveDecode();
    return Becomes([this] { return PrefillIsOver() && DecodeIsOver(); });
  }

 private:
  void LeavePrefill() {
    prefill_sink_->left = true;
    prefill_.Cancel(attempt_.key);
  }
  void LeaveDecode() {
    decode_sink_->left = true;
    decode_.Cancel(attempt_.key, /*local=*/false);
  }
  // Everything that knows the attempt holds its sink.
  bool PrefillIsOver() const { return prefill_sink_.use_count() == 1; }
  bool DecodeIsOver() const { return decode_sink_.use_count() == 1; }

  PrefillNode& prefill_;
  DecodeNode& decode_;
  const First first_;
  Attempt attempt_;
  const std::shared_ptr<CallSink<v1::PrefillEvent>> prefill_sink_ = std::make_shared<CallSink<v1::PrefillEvent>>();
  const std::shared_ptr<CallSink<v1::DecodeEvent>> decode_sink_ = std::make_shared<CallSink<v1::DecodeEvent>>();
};

class AbortTest : public ::testing::TestWithParam<First> {
 protected:
  // Takes all the pages, so that nobody else gets any until they are given back.
  static std::vector<PageRef> TakeAll(Node& node) {
    absl::StatusOr<std::vector<PageRef>> pages = node.pool().Allocate(static_cast<int>(node.pool().counts().free));
    EXPECT_OK(pages);
    return pages.ok() ? *std::move(pages) : std::vector<PageRef>();
  }

  void ExpectNothingLeft() {
    EXPECT_TRUE(prefill_.BecomesEmpty());
    EXPECT_TRUE(decode_.BecomesEmpty());
    EXPECT_TRUE(Becomes([this] {
      const HandoffReceiver::Load load = decode_.receiver().load();
      return load.queued + load.granted + load.revoking + load.received == 0;
    }));
  }

  PrefillNode prefill_{"prefill", ATokenAtATime()};
  DecodeNode decode_{"decode", ATokenAtATime()};
  Calls calls_{prefill_, decode_, GetParam()};
};

std::string FirstName(const ::testing::TestParamInfo<First>& info) {
  return info.param == First::kPrefill ? "Prefill" : info.param == First::kDecode ? "Decode" : "Both";
}

INSTANTIATE_TEST_SUITE_P(First, AbortTest, ::testing::Values(First::kPrefill, First::kDecode, First::kBoth), FirstName);

TEST_P(AbortTest, WhileWaitingForThePrefillWorkersPages) {
  std::vector<PageRef> taken = TakeAll(prefill_);
  calls_.Start();
  calls_.Leave();
  if (GetParam() == First::kDecode) taken.clear();  // then it asks for pages of an attempt that is over
  EXPECT_TRUE(calls_.End());
  taken.clear();
  ExpectNothingLeft();
}

TEST_P(AbortTest, WhileTheReservationIsUnanswered) {
  decode_.transport().Pause();
  calls_.Start();
  ASSERT_TRUE(Becomes([this] { return prefill_.pool().counts().used > 0; }));
  calls_.Leave();
  decode_.transport().Resume();
  EXPECT_TRUE(calls_.End());
  ExpectNothingLeft();
}

TEST_P(AbortTest, WhileQueuedAtTheDecodeWorker) {
  std::vector<PageRef> taken = TakeAll(decode_);
  calls_.Start();
  ASSERT_TRUE(Becomes([this] { return decode_.receiver().load().queued == 1; }));
  calls_.Leave();
  EXPECT_TRUE(calls_.End());
  EXPECT_EQ(decode_.receiver().load().queued, 0);
  taken.clear();
  ExpectNothingLeft();
}

TEST_P(AbortTest, WhenGrantedButOutOfPagesOfItsOwn) {
  std::vector<PageRef> of_decode = TakeAll(decode_);
  calls_.Start();
  ASSERT_TRUE(Becomes([this] {
    return decode_.receiver().load().queued == 1 && prefill_.pool().counts().free == kPages;  // it gave its own back
  }));
  std::vector<PageRef> of_prefill = TakeAll(prefill_);
  of_decode.clear();
  ASSERT_TRUE(Becomes([this] { return decode_.receiver().load().granted == 1; }));
  calls_.Leave();
  EXPECT_TRUE(calls_.End());
  EXPECT_TRUE(decode_.BecomesEmpty());
  of_prefill.clear();
  ExpectNothingLeft();
}

TEST_P(AbortTest, AfterAnyLayerOfAnyChunk) {
  int layers = 0;
  for (bool reached = true; reached; ++layers) {
    reached = false;
    Calls calls(prefill_, decode_, GetParam());
    std::atomic<bool> left = false;
    std::atomic<bool> answered = false;
    calls.prefill_sink().on_asked = [&](int times) {
      if (times != layers + 1) return;
      left = true;
      calls.Leave();
    };
    calls.prefill_sink().on_event = [&](const v1::PrefillEvent& event) {
      if (event.has_first_token() && left && GetParam() != First::kDecode) answered = true;
    };
    calls.Start();
    EXPECT_TRUE(calls.End()) << "after layer " << layers;
    EXPECT_FALSE(answered) << "after layer " << layers;
    ExpectNothingLeft();
    if (HasFailure()) return;
    reached = left;
  }
  EXPECT_EQ(layers, kPromptTokens * 2 + 1) << "two layers, a token at a time";
}

TEST_P(AbortTest, WhileTheLastPutsAreUnderWayNoPageComesBack) {
  std::atomic<bool> committing = false;
  calls_.prefill_sink().on_event = [&](const v1::PrefillEvent& event) {
    if (event.has_first_token()) committing = true;
  };
  prefill_.transport().HoldPuts();
  calls_.Start();
  ASSERT_TRUE(Becomes([&] { return committing.load(); }));
  calls_.Leave();
  // Both engines have time to do what they must not.
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_LT(decode_.pool().counts().free, kPages);
  EXPECT_LT(prefill_.pool().counts().free, kPages);
  prefill_.transport().ReleasePuts();
  EXPECT_TRUE(calls_.End());
  ExpectNothingLeft();
}

TEST_P(AbortTest, AsSoonAsTheFirstTokenIsOut) {
  std::atomic<bool> left = false;
  calls_.prefill_sink().on_event = [&](const v1::PrefillEvent& event) {
    if (!event.has_first_token()) return;
    left = true;
    calls_.Leave();
  };
  calls_.Start();
  EXPECT_TRUE(calls_.End());
  EXPECT_TRUE(left);
  ExpectNothingLeft();
}

TEST_P(AbortTest, AsSoonAsTheDecodeWorkerHasIt) {
  std::atomic<bool> left = false;
  calls_.prefill_sink().on_event = [&](const v1::PrefillEvent& event) {
    if (!event.has_handed_over()) return;
    left = true;
    calls_.Leave();
  };
  calls_.Start();
  // The decode worker may finish before its answer to Commit reaches the prefill worker.
  EXPECT_TRUE(Becomes([&] { return left.load(); }));
  EXPECT_TRUE(calls_.End());
  ExpectNothingLeft();
}

}  // namespace
}  // namespace baton::testing
