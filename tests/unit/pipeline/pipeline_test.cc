// SPDX-License-Identifier: Apache-2.0
// The serving pipeline end to end, without processes and gRPC: invariants I1, I3 and I5 over engines, schedulers,
// handoff and page pools.
#include "pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/time/clock.h"
#include "tests/status_matchers.h"

namespace baton::testing {
namespace {

NodeOptions Options(int pages = 256, int chunk = 512) {
  NodeOptions options = TinyNode(pages);
  options.schedule.chunk_tokens = chunk;
  options.schedule.token_budget = std::max(chunk, 8);
  return options;
}

class PipelineTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    requests_ = new std::vector<Request>(MixedRequests(40, kTinyVocab, 70, 40));
    reference_ = new std::vector<Answer>(AnswersAlone(*requests_));
  }
  static void TearDownTestSuite() {
    delete requests_;
    delete reference_;
  }
  static const std::vector<Request>& requests() { return *requests_; }
  static const std::vector<Answer>& reference() { return *reference_; }

 private:
  static std::vector<Request>* requests_;
  static std::vector<Answer>* reference_;
};
std::vector<Request>* PipelineTest::requests_ = nullptr;
std::vector<Answer>* PipelineTest::reference_ = nullptr;

TEST_F(PipelineTest, TheReferenceAnswersEveryRequest) {
  for (const Answer& answer : reference()) {
    EXPECT_EQ(answer.error, "");
    EXPECT_FALSE(answer.tokens.empty());
  }
}

TEST_F(PipelineTest, OneByOneThroughTwoWorkersGivesTheSameBits) {
  PrefillNode prefill("prefill", Options());
  DecodeNode decode("decode", Options());
  std::vector<Answer> answers;
  for (const Request& request : requests()) {
    answers.push_back(Serve({.prefill = &prefill, .decode = {&decode}}, request));
  }
  ExpectSame(answers, reference());
  EXPECT_TRUE(prefill.BecomesEmpty());
  EXPECT_TRUE(decode.BecomesEmpty());
}

class PipelineChunks : public PipelineTest, public ::testing::WithParamInterface<int> {};

TEST_P(PipelineChunks, AllAtOnceThroughTwoWorkersGivesTheSameBits) {
  PrefillNode prefill("prefill", Options(256, GetParam()));
  DecodeNode decode("decode", Options());
  ExpectSame(ServeAll({.prefill = &prefill, .decode = {&decode}}, requests()), reference());
  EXPECT_TRUE(prefill.BecomesEmpty());
  EXPECT_TRUE(decode.BecomesEmpty());
}

TEST_P(PipelineChunks, AllAtOnceOnOneWorkerThatDoesBothGivesTheSameBits) {
  DecodeNode node("both", Options(256, GetParam()));
  ExpectSame(ServeAll({.decode = {&node}}, requests()), reference());
  EXPECT_TRUE(node.BecomesEmpty());
}

INSTANTIATE_TEST_SUITE_P(Sizes, PipelineChunks, ::testing::Values(1, 16, 512));

// Serves the requests until a sequence is preempted. Whether sequences meet in the pool is up to the scheduler: with
// luck they pass each other by.
void ExpectTheSameThroughPreemption(const Placement& placement, const std::vector<Request>& requests,
                                    const std::vector<Answer>& reference) {
  int preemptions = 0;
  for (int round = 0; preemptions == 0 && round < 20; ++round) {
    const std::vector<Answer> answers = ServeAll(placement, requests);
    ExpectSame(answers, reference);
    for (const Answer& answer : answers) preemptions += answer.preemptions;
  }
  EXPECT_GT(preemptions, 0) << "the pool is meant to be too small";
}

TEST_F(PipelineTest, PreemptionForLackOfPagesGivesTheSameBits) {
  NodeOptions tight = Options(12);
  tight.growth_watermark_pages = 0;
  PrefillNode prefill("prefill", tight);
  DecodeNode decode("decode", tight);
  ExpectTheSameThroughPreemption({.prefill = &prefill, .decode = {&decode}}, requests(), reference());
  EXPECT_TRUE(prefill.BecomesEmpty());
  EXPECT_TRUE(decode.BecomesEmpty());
}

TEST_F(PipelineTest, PreemptionOfLocalPromptsGivesTheSameBits) {
  DecodeNode node("both", Options(16, 16));
  ExpectTheSameThroughPreemption({.decode = {&node}}, requests(), reference());
  EXPECT_TRUE(node.BecomesEmpty());
}

TEST_F(PipelineTest, CancelledAtAnyTokenEverythingComesBack) {
  PrefillNode prefill("prefill", Options(64, 16));
  DecodeNode decode("decode", Options(64));
  std::atomic<uint32_t> turn{0};
  const std::vector<Answer> answers =
      ServeAll({.prefill = &prefill,
                .decode = {&decode},
                .cancel = [&](size_t tokens) { return tokens >= 1 + (turn++ * 7) % 5; }},
               requests());
  std::set<size_t> cut_after;
  for (size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i].error, "") << "request " << i;
    if (answers[i].tokens.size() < reference()[i].tokens.size()) cut_after.insert(answers[i].tokens.size());
  }
  EXPECT_THAT(cut_after, ::testing::SizeIs(::testing::Ge(3))) << "some at the first token, some at later ones";
  EXPECT_TRUE(prefill.BecomesEmpty());
  EXPECT_TRUE(decode.BecomesEmpty());
  const HandoffReceiver::Load load = decode.receiver().load();
  EXPECT_EQ(load.queued + load.granted + load.revoking + load.received, 0);
}

// A caller that goes away after the first layer of its prompt.
template <typename Event>
class LeavingSink final : public EventSink<Event> {
 public:
  void Write(Event event, bool) override {
    if constexpr (std::is_same_v<Event, v1::PrefillEvent>) answered_ = answered_ || event.has_first_token();
    if constexpr (std::is_same_v<Event, v1::DecodeEvent>) answered_ = answered_ || event.has_tokens();
  }
  bool cancelled() const override { return ++asked_ > 1; }

  bool WasAsked() const {
    for (int i = 0; asked_ < 2 && i < 1000; ++i) absl::SleepFor(absl::Milliseconds(5));
    return asked_ > 1;
  }
  bool answered() const { return answered_; }

 private:
  mutable std::atomic<int> asked_ = 0;
  std::atomic<bool> answered_ = false;
};

Attempt PromptOf(int tokens) {
  Attempt attempt;
  attempt.key = {{77, 0}, 1};
  attempt.prompt.assign(tokens, 5);
  attempt.sampling.max_tokens = 4;
  return attempt;
}

TEST_F(PipelineTest, ACallerWhoLeavesDuringAPrefillStepEndsItAndTheHandoff) {
  PrefillNode prefill("prefill", Options());
  DecodeNode decode("decode", Options());
  const Attempt attempt = PromptOf(60);
  ASSERT_OK(decode.Open(attempt, /*local=*/false, std::make_shared<LeavingSink<v1::DecodeEvent>>()));
  const auto sink = std::make_shared<LeavingSink<v1::PrefillEvent>>();

  prefill.Submit(attempt, decode.target(), sink);

  EXPECT_TRUE(sink->WasAsked());
  EXPECT_TRUE(prefill.BecomesEmpty());
  EXPECT_TRUE(decode.BecomesEmpty());
  EXPECT_FALSE(sink->answered());
}

TEST_F(PipelineTest, ACallerWhoLeavesDuringALocalPromptEndsItsStep) {
  DecodeNode node("both", Options());
  const auto sink = std::make_shared<LeavingSink<v1::DecodeEvent>>();

  ASSERT_OK(node.Open(PromptOf(60), /*local=*/true, sink));

  EXPECT_TRUE(sink->WasAsked());
  EXPECT_TRUE(node.BecomesEmpty());
  EXPECT_FALSE(sink->answered());
}

TEST_F(PipelineTest, ADecodeWorkersDeathMovesItsRequestsWithTheSameBits) {
  PrefillNode prefill("prefill", Options());
  auto doomed = std::make_unique<DecodeNode>("doomed", Options());
  DecodeNode spare("spare", Options());
  // The doomed worker dies when five first tokens are out. The handoffs of these five cannot be over: puts are held.
  prefill.transport().HoldPuts();
  std::atomic<int> tokens_seen{0};
  const std::vector<Answer> answers = ServeAll({.prefill = &prefill,
                                                .decode = {doomed.get(), &spare},
                                                .cancel =
                                                    [&](size_t) {
                                                      if (++tokens_seen == 5) {
                                                        doomed->transport().Kill();
                                                        prefill.transport().ReleasePuts();
                                                      }
                                                      return false;
                                                    }},
                                               requests());
  ExpectSame(answers, reference());
  int moved = 0;
  for (const Answer& answer : answers) moved += answer.attempts > 1 ? 1 : 0;
  EXPECT_GT(moved, 0) << "nothing had to be moved";
  EXPECT_TRUE(prefill.BecomesEmpty());
  EXPECT_TRUE(spare.BecomesEmpty());
}

}  // namespace
}  // namespace baton::testing
