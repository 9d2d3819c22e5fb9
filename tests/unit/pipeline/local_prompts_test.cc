// SPDX-License-Identifier: Apache-2.0
// A decode worker that computes prompts itself, among reservations of prefill workers.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "common/steady_time.h"
#include "pipeline.h"
#include "tests/status_matchers.h"

namespace baton::testing {
namespace {

// Keeps the first failure.
class FirstFailure final : public EventSink<v1::DecodeEvent> {
 public:
  void Write(v1::DecodeEvent event, bool last) override {
    if (event.has_failed()) failed_.set_value(event.failed());
    EXPECT_EQ(event.has_failed(), last);
  }
  bool cancelled() const override { return false; }
  v1::AttemptFailed Get() {
    std::future<v1::AttemptFailed> failed = failed_.get_future();
    if (failed.wait_for(std::chrono::seconds(60)) != std::future_status::ready) return {};
    return failed.get();
  }

 private:
  std::promise<v1::AttemptFailed> failed_;
};

Attempt LocalAttempt(int prompt_tokens) {
  Attempt attempt;
  attempt.key = {{1, 1}, 1};
  attempt.due = absl::Now();
  attempt.prompt.assign(static_cast<size_t>(prompt_tokens), 5);
  attempt.sampling.max_tokens = 4;
  return attempt;
}

// Callers that serve one request after the other, so that younger requests keep coming.
class Callers {
 public:
  Callers(const Placement& placement, const Request& request, int callers, int each) {
    for (int i = 0; i < callers; ++i) {
      threads_.emplace_back([this, placement, request, each] {
        for (int j = 0; j < each; ++j) {
          EXPECT_EQ(Serve(placement, request).error, "");
          ++done_;
        }
      });
    }
  }
  ~Callers() {
    for (std::thread& thread : threads_) thread.join();
  }
  int done() const { return done_; }

 private:
  std::atomic<int> done_ = 0;
  std::vector<std::thread> threads_;
};

void WaitUntilQueued(DecodeNode& decode, int count) {
  const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(60);
  while (decode.receiver().load().queued < count && SteadyTime::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_LT(SteadyTime::Now(), deadline) << "no reservations wait";
}

TEST(LocalPromptsTest, APromptGetsASlotBeforeYoungerReservations) {
  constexpr int kCallers = 4;
  constexpr int kEach = 8;
  NodeOptions one_slot = TinyNode();
  one_slot.schedule.max_sequences = 1;
  PrefillNode prefill("prefill", TinyNode());
  DecodeNode decode("decode", one_slot);
  Request request;
  request.prompt.assign(20, 5);
  request.sampling.max_tokens = 200;
  {
    const Callers remote({.prefill = &prefill, .decode = {&decode}}, request, kCallers, kEach);
    WaitUntilQueued(decode, 2);
    EXPECT_EQ(Serve({.decode = {&decode}}, request).error, "");
    EXPECT_LT(remote.done(), kCallers * (kEach - 3)) << "it waited for nearly all of them";
  }
  EXPECT_TRUE(decode.BecomesEmpty());
}

// Three of the small ones fill the pool, and one of the large ones needs the pages of two.
constexpr int kPoolPages = 24;
constexpr int kSmallTokens = 100;
constexpr int kLargeTokens = 250;

NodeOptions SmallPool() {
  NodeOptions options = TinyNode(kPoolPages);
  options.growth_watermark_pages = 0;
  return options;
}

Request Unshared(int tokens) {
  Request request;
  request.prompt.assign(static_cast<size_t>(tokens), 5);
  request.sampling.max_tokens = 20;
  request.shares_pages = false;
  return request;
}

constexpr int kCallers = 8;
constexpr int kEach = 20;

TEST(LocalPromptsTest, APromptThatNeedsManyPagesIsNotPassedForEverByReservations) {
  PrefillNode prefill("prefill", TinyNode());
  DecodeNode decode("decode", SmallPool());
  {
    const Callers remote({.prefill = &prefill, .decode = {&decode}}, Unshared(kSmallTokens), kCallers, kEach);
    WaitUntilQueued(decode, 1);
    EXPECT_EQ(Serve({.decode = {&decode}}, Unshared(kLargeTokens)).error, "");
    EXPECT_LT(remote.done(), kCallers * (kEach - 3)) << "it waited for nearly all of them";
  }
  EXPECT_TRUE(decode.BecomesEmpty());
}

TEST(LocalPromptsTest, AReservationThatNeedsManyPagesIsNotPassedForEverByPrompts) {
  PrefillNode prefill("prefill", TinyNode());
  DecodeNode decode("decode", SmallPool());
  {
    const Callers local({.decode = {&decode}}, Unshared(kSmallTokens), kCallers, kEach);
    const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(60);
    while (local.done() < kCallers && SteadyTime::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
    EXPECT_GE(local.done(), kCallers) << "no prompts are served";
    EXPECT_EQ(Serve({.prefill = &prefill, .decode = {&decode}}, Unshared(kLargeTokens)).error, "");
    EXPECT_LT(local.done(), kCallers * (kEach - 3)) << "it waited for nearly all of them";
  }
  EXPECT_TRUE(decode.BecomesEmpty());
}

TEST(LocalPromptsTest, APromptDoesNotWaitForPagesInQuarantine) {
  DecodeNode node("both", TinyNode(8));
  std::vector<PageRef> taken = *node.pool().Allocate(7);
  for (PageRef& page : taken) page.SetQuarantined(true);
  const auto sink = std::make_shared<FirstFailure>();
  ASSERT_OK(node.Open(LocalAttempt(40), /*local=*/true, sink));
  EXPECT_EQ(sink->Get().cause(), v1::CAUSE_QUARANTINED);
  for (PageRef& page : taken) page.SetQuarantined(false);
  taken.clear();
  EXPECT_TRUE(node.BecomesEmpty());
}

// A faulty router asks for the same attempt in both ways.
TEST(LocalPromptsTest, AnAttemptThatIsHereAlreadyIsNotLeftOpenAtTheReceiver) {
  DecodeNode node("both", TinyNode(8));
  std::vector<PageRef> taken = *node.pool().Allocate(8);  // the first waits
  const Attempt attempt = LocalAttempt(20);
  const auto first = std::make_shared<FirstFailure>();
  ASSERT_OK(node.Open(attempt, /*local=*/true, first));
  const auto second = std::make_shared<FirstFailure>();
  ASSERT_OK(node.Open(attempt, /*local=*/false, second));
  EXPECT_EQ(second->Get().cause(), v1::CAUSE_INVALID);
  EXPECT_TRUE(
      Fails(node.receiver().OpenAttempt(attempt.key, attempt.due), absl::StatusCode::kFailedPrecondition, "before"))
      << "not: it is open";
  node.Cancel(attempt.key, /*local=*/true);
  taken.clear();
  EXPECT_TRUE(node.BecomesEmpty());
}

}  // namespace
}  // namespace baton::testing
