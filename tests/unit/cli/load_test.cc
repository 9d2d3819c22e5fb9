// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "cli/client.h"
#include "cli/load/grpc_target.h"
#include "cli/load/load_generator.h"
#include "cli/load/trace.h"
#include "cli/load/workload.h"
#include "cli/report/load_report.h"
#include "common/steady_time.h"
#include "fake_router.h"
#include "tests/files.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using ::baton::testing::EchoAnswer;
using ::baton::testing::Fails;
using ::baton::testing::FakeRouter;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

Workload SmallWorkload() {
  Workload workload;
  workload.rate = 500;
  workload.requests = 40;
  workload.prompt_tokens = 16;
  workload.output_tokens = 4;
  workload.vocab_size = 4096;
  return workload;
}

TEST(PoissonArrivals, AscendWithTheAskedRateAndRepeatWithTheirSeed) {
  Workload workload = SmallWorkload();
  workload.requests = 20000;
  const std::vector<absl::Duration> arrivals = Arrivals(workload);

  EXPECT_TRUE(std::is_sorted(arrivals.begin(), arrivals.end()));
  // The mean gap of 20,000 is within 5 % unless the distribution is wrong.
  EXPECT_THAT(absl::ToDoubleSeconds(arrivals.back()) / workload.requests, DoubleNear(1 / workload.rate, 1e-4));
  EXPECT_EQ(arrivals, Arrivals(workload));
  workload.seed = 1;
  EXPECT_NE(arrivals, Arrivals(workload));
}

TEST(Arrivals, ComeAsTheProcessSays) {
  Workload workload = SmallWorkload();
  workload.requests = 20000;
  const auto variation = [&] {  // the squared coefficient of variation of the gaps
    const std::vector<absl::Duration> arrivals = Arrivals(workload);
    EXPECT_TRUE(std::is_sorted(arrivals.begin(), arrivals.end()));
    EXPECT_THAT(absl::ToDoubleSeconds(arrivals.back()) / workload.requests, DoubleNear(1 / workload.rate, 2e-4));
    double squares = 0;
    for (size_t i = 1; i < arrivals.size(); ++i) {
      squares += std::pow(absl::ToDoubleSeconds(arrivals[i] - arrivals[i - 1]) * workload.rate - 1, 2);
    }
    return squares / static_cast<double>(arrivals.size() - 1);
  };
  EXPECT_NEAR(variation(), 1, 0.1);
  workload.arrivals = ArrivalProcess::kConstant;
  EXPECT_NEAR(variation(), 0, 1e-6);
  workload.arrivals = ArrivalProcess::kGamma;
  workload.burstiness = 0.25;
  EXPECT_NEAR(variation(), 4, 0.5);
}

TEST(MakeRequest, DrawsDifferentPromptsAwayFromTheEndsOfTheVocabulary) {
  const Workload workload = SmallWorkload();
  const LoadRequest request = MakeRequest(workload, 3);

  EXPECT_EQ(request.prompt.size(), 16u);
  EXPECT_THAT(request.prompt, Each(::testing::AllOf(::testing::Ge(256), ::testing::Lt(3687))));
  EXPECT_EQ(request.output_tokens, 4);
  EXPECT_EQ(request.prompt, MakeRequest(workload, 3).prompt);
  EXPECT_NE(request.prompt, MakeRequest(workload, 4).prompt);
}

constexpr char kTraceLines[] =
    R"({"timestamp": 9000, "input_length": 1030, "output_length": 8, "hash_ids": [0, 1, 2]}
{"timestamp": 5000, "input_length": 600, "output_length": 500, "hash_ids": [0, 3]}

{"timestamp": 10000, "input_length": 5, "output_length": 1, "hash_ids": [9]}
)";

TEST(Trace, GivesArrivalsLengthsAndCommonBeginnings) {
  ASSERT_OK_AND_ASSIGN(const Trace trace,
                       ParseTrace(kTraceLines, "t", {.max_requests = 2, .length_scale = 1.0 / 8, .speed = 2}));
  Workload workload = SmallWorkload();
  workload.trace = trace;
  workload.arrivals = ArrivalProcess::kTrace;
  EXPECT_EQ(Arrivals(workload), (std::vector<absl::Duration>{absl::ZeroDuration(), absl::Seconds(2)}));
  const LoadRequest first = MakeRequest(workload, 0);
  const LoadRequest second = MakeRequest(workload, 1);
  EXPECT_EQ(first.prompt.size(), 75u);
  EXPECT_EQ(first.output_tokens, 63);
  EXPECT_EQ(second.prompt.size(), 129u);
  EXPECT_EQ(second.output_tokens, 1);
  const auto begins_like = [&](int tokens) {
    return std::equal(first.prompt.begin(), first.prompt.begin() + tokens, second.prompt.begin());
  };
  EXPECT_TRUE(begins_like(64)) << "a block is 512 / 8 tokens";
  EXPECT_FALSE(begins_like(75));
}

TEST(Trace, RecordedConversationsAreReadWhole) {
  const auto path = testing::SharedData("traces/mooncake_conversation.jsonl");
  if (!path.ok()) GTEST_SKIP() << path.status().message();
  ASSERT_OK_AND_ASSIGN(const Trace trace, ReadTrace(*path, {.max_requests = 1'000'000}));
  EXPECT_EQ(trace.requests.size(), 12031u);
  EXPECT_GT(trace.requests.back().arrival, absl::Minutes(50));
}

TEST(Trace, AzuresFormHasPromptsOfTheirOwn) {
  constexpr char kCsv[] =
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
      "2023-11-16 18:15:50.9951690,396,109\r\n"
      "2023-11-16 18:15:46.6805900,374,44\r\n";
  ASSERT_OK_AND_ASSIGN(const Trace trace, ParseTrace(kCsv, "t", {}));
  Workload workload = SmallWorkload();
  workload.trace = trace;
  workload.arrivals = ArrivalProcess::kTrace;
  EXPECT_EQ(Arrivals(workload), (std::vector<absl::Duration>{absl::ZeroDuration(), absl::Microseconds(4314579)}));
  const LoadRequest first = MakeRequest(workload, 0);
  const LoadRequest second = MakeRequest(workload, 1);
  EXPECT_EQ(first.prompt.size(), 374u);
  EXPECT_EQ(second.output_tokens, 109u);
  EXPECT_NE(first.prompt[0], second.prompt[0]);

  const auto fails = [](const std::string& line, const std::string& message) {
    return Fails(ParseTrace(absl::StrCat("TIMESTAMP,ContextTokens,GeneratedTokens\n", line), "t", {}),
                 absl::StatusCode::kInvalidArgument, message);
  };
  EXPECT_TRUE(fails("2023-11-16 18:15:46.68,1", "t:2: expected three fields"));
  EXPECT_TRUE(fails("yesterday,1,1", "t:2: expected TIMESTAMP"));
  EXPECT_TRUE(fails("2023-11-16 18:15:46.68,0,1", "t:2: expected ContextTokens"));
  EXPECT_TRUE(fails("2023-11-16 18:15:46.68,1,x", "t:2: expected GeneratedTokens"));
}

TEST(Trace, RequestsThatDoNotFitAreSentCutOrDropped) {
  const Trace recorded = {.block_tokens = 512,
                          .requests = {{.arrival = {}, .input_tokens = 60, .output_tokens = 40, .blocks = {}},
                                       {.arrival = {}, .input_tokens = 90, .output_tokens = 40, .blocks = {}},
                                       {.arrival = {}, .input_tokens = 5, .output_tokens = 400, .blocks = {}}}};
  const auto lengths = [&](TooLong treatment) {
    Trace trace = recorded;
    EXPECT_EQ(FitTrace(trace, treatment, 100), 2);
    std::vector<std::pair<int, int>> lengths;
    for (const TraceRequest& request : trace.requests)
      lengths.emplace_back(request.input_tokens, request.output_tokens);
    return lengths;
  };
  using Lengths = std::vector<std::pair<int, int>>;
  EXPECT_EQ(lengths(TooLong::kSend), (Lengths{{60, 40}, {90, 40}, {5, 400}}));
  EXPECT_EQ(lengths(TooLong::kCut), (Lengths{{60, 40}, {60, 40}, {1, 99}}));
  EXPECT_EQ(lengths(TooLong::kDrop), (Lengths{{60, 40}}));
}

TEST(Slo, IsParsedOrRefused) {
  ASSERT_OK_AND_ASSIGN(const Slo both, ParseSlo("tpot=22ms,ttft=1.3s"));
  EXPECT_EQ(both.ttft, absl::Milliseconds(1300));
  EXPECT_EQ(both.tpot, absl::Milliseconds(22));
  ASSERT_OK_AND_ASSIGN(const Slo one, ParseSlo("ttft=1s"));
  EXPECT_EQ(one.tpot, absl::InfiniteDuration());
  for (const char* const text : {"", "ttft", "ttft=0s", "tpot=-1s", "ttft=fast", "itl=1s", "ttft=1s,ttft=2s"}) {
    EXPECT_TRUE(Fails(ParseSlo(text), absl::StatusCode::kInvalidArgument, "expected times such as")) << text;
  }
}

TEST(Trace, BadLinesAreRefusedByNumberAndField) {
  const auto fails = [](const std::string& line, const std::string& message) {
    return Fails(ParseTrace(absl::StrCat(R"({"timestamp": 0, "input_length": 5, "output_length": 1, "hash_ids": [9]})",
                                         "\n", line),
                            "t", {}),
                 absl::StatusCode::kInvalidArgument, message);
  };
  EXPECT_TRUE(fails("nonsense", "t:2: expected a line of JSON"));
  EXPECT_TRUE(fails(R"({"timestamp": -1})", "t:2: expected timestamp, a whole number from 0"));
  EXPECT_TRUE(fails(R"({"timestamp": 1, "input_length": "many"})", "t:2: expected input_length"));
  EXPECT_TRUE(fails(R"({"timestamp": 1, "input_length": 5, "output_length": 0})", "t:2: expected output_length"));
  EXPECT_TRUE(fails(R"({"timestamp": 1, "input_length": 5, "output_length": 2})", "t:2: expected hash_ids"));
  EXPECT_TRUE(fails(R"({"timestamp": 1, "input_length": 5, "output_length": 2, "hash_ids": [1, 2]})",
                    "t:2: expected one of hash_ids for each 512 of 5 tokens"));
  EXPECT_TRUE(Fails(ParseTrace("\n", "t", {}), absl::StatusCode::kInvalidArgument, "t: expected a request a line"));
  EXPECT_TRUE(Fails(ReadTrace("/nowhere/t", {}), absl::StatusCode::kNotFound, "/nowhere/t"));
}

TEST(MakeRequest, StaysInsideATinyVocabulary) {
  Workload workload = SmallWorkload();
  workload.vocab_size = 1;
  EXPECT_THAT(MakeRequest(workload, 0).prompt, Each(0));
}

class LoadTest : public ::testing::Test {
 protected:
  LoadResult Run(const Workload& workload, const LoadOptions& options) {
    auto client = Client::Connect(router_.target(), absl::Seconds(10), interrupt_);
    EXPECT_OK(client);
    GrpcTarget target(**client);
    return GenerateLoad(target, workload, options, interrupt_);
  }

  FakeRouter router_;
  Interrupt interrupt_;
};

TEST_F(LoadTest, SendsEveryRequestAndSeesEveryToken) {
  const LoadResult result = Run(SmallWorkload(), {});

  EXPECT_EQ(result.outcomes.size(), 40);
  EXPECT_EQ(router_.requests().size(), 40);
  for (const RequestOutcome& outcome : result.outcomes) {
    EXPECT_EQ(outcome.error, "");
    ASSERT_EQ(outcome.arrivals.size(), 3);
    EXPECT_EQ(outcome.arrivals[0].tokens, 1);
    EXPECT_EQ(outcome.arrivals[1].tokens, 2);
    EXPECT_LE(outcome.arrivals.back().at, outcome.total);
  }
}

TEST_F(LoadTest, DoesNotWaitForAnswersBeforeSendingMore) {
  // Given a server that answers nobody before all have asked
  SteadyTime deadline = SteadyTime::Now() + absl::Seconds(30);
  router_.on_generate = [this, deadline](auto& context, const auto& request, auto& writer) {
    while (router_.requests().size() < 5 && SteadyTime::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
    return EchoAnswer(context, request, writer);
  };
  Workload workload = SmallWorkload();
  workload.requests = 5;

  const LoadResult result = Run(workload, {});

  EXPECT_EQ(result.outcomes.size(), 5);
  EXPECT_LT(SteadyTime::Now(), deadline);
}

TEST_F(LoadTest, CountsArrivalsBeyondTheLimitInsteadOfQueueingThem) {
  router_.on_generate = [](grpc::ServerContext& context, const auto&, auto&) {
    while (!context.IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return grpc::Status::CANCELLED;
  };
  Workload workload = SmallWorkload();
  workload.requests = 6;

  const LoadResult result = Run(workload, {.max_in_flight = 2, .request_timeout = absl::Milliseconds(500)});

  EXPECT_EQ(result.not_sent, 4);
  ASSERT_EQ(result.outcomes.size(), 2);
  EXPECT_EQ(result.outcomes[0].error, "DEADLINE_EXCEEDED");
  EXPECT_EQ(result.outcomes[0].reason, "not done within --timeout");
}

TEST_F(LoadTest, AClosedLoopKeepsAsManyRequestsUnanswered) {
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(30);
  router_.on_generate = [&](auto& context, const auto& request, auto& writer) {
    for (int now = ++running, old = most; now > old && !most.compare_exchange_weak(old, now);) {
    }
    // On a busy machine, the first three may be slow to come together.
    while (most < 3 && SteadyTime::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
    absl::SleepFor(absl::Milliseconds(2));
    --running;
    return EchoAnswer(context, request, writer);
  };
  Workload workload = SmallWorkload();
  workload.rate = 1e-3;  // does not count

  const LoadResult result = Run(workload, {.concurrency = 3, .warmup = 10});

  EXPECT_EQ(router_.requests().size(), 40u);
  EXPECT_EQ(result.outcomes.size(), 30u) << "the first are not measured";
  EXPECT_EQ(result.not_sent, 0);
  EXPECT_EQ(most, 3);
}

TEST_F(LoadTest, ATurnCarriesTheEarlierPromptAndAnswerAfterTheThinkTime) {
  Workload workload = SmallWorkload();
  workload.requests = 3;
  workload.turns = 3;
  workload.think_time = absl::Milliseconds(20);

  const LoadResult result = Run(workload, {.warmup = 1});

  EXPECT_EQ(result.outcomes.size(), 6u) << "the first conversation is not measured";
  EXPECT_EQ(result.unknown_answers, 0);
  EXPECT_EQ(result.skipped_turns, 0);
  std::vector<v1::GenerateRequest> requests = router_.requests();
  ASSERT_EQ(requests.size(), 9u);
  const auto ids = [](const v1::GenerateRequest& request) {
    return std::vector<int32_t>(request.token_ids().ids().begin(), request.token_ids().ids().end());
  };
  int turns_seen[3] = {};
  for (const v1::GenerateRequest& request : requests) {
    const std::vector<int32_t> prompt = ids(request);
    const size_t turn = (prompt.size() - 16) / 20;
    ASSERT_EQ(prompt.size(), 16 + 20 * turn) << "a turn adds 4 tokens of the answer and 16 of its own";
    ++turns_seen[turn];
    if (turn == 0) continue;
    const std::vector<int32_t> answer(prompt.end() - 20, prompt.end() - 16);
    EXPECT_EQ(answer, (std::vector<int32_t>{1, 2, 3, 4}));
    const std::vector<int32_t> before(prompt.begin(), prompt.end() - 20);
    EXPECT_TRUE(std::ranges::any_of(requests, [&](const auto& other) { return ids(other) == before; }));
  }
  EXPECT_THAT(turns_seen, Each(3));
  for (const RequestOutcome& outcome : result.outcomes) {
    if (outcome.turn == 0) continue;
    // Some outcome of the turn before ended at least the think time earlier.
    EXPECT_TRUE(std::ranges::any_of(result.outcomes, [&](const RequestOutcome& earlier) {
      return earlier.turn == outcome.turn - 1 && earlier.start + earlier.total + workload.think_time <= outcome.start;
    }));
  }
}

TEST_F(LoadTest, ATurnThatFailsEndsItsConversation) {
  router_.on_generate = [](auto& context, const auto& request, auto& writer) {
    if (request.token_ids().ids_size() > 16) return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "full");
    return EchoAnswer(context, request, writer);
  };
  Workload workload = SmallWorkload();
  workload.requests = 2;
  workload.turns = 4;
  workload.think_time = absl::ZeroDuration();

  const LoadResult result = Run(workload, {.concurrency = 1});

  EXPECT_EQ(result.outcomes.size(), 4u);
  EXPECT_EQ(result.skipped_turns, 4);
  const LoadReport report = MakeReport(result, Slo{});
  EXPECT_EQ(report.errors.at("SKIPPED_TURN").count, 4u);
  EXPECT_EQ(report.slo->requests, 8u);
  EXPECT_EQ(report.slo->met, 2u);
}

TEST(NextTurn, FillsInForAnAnswerThatTheServerDidNotTell) {
  const Workload workload = SmallWorkload();
  const LoadRequest next = NextTurn(workload, 7, 1, {1, 2}, {9});
  EXPECT_EQ(next.prompt.size(), 2u + 4 + 16);
  EXPECT_EQ(next.prompt[2], 9);
  EXPECT_NE(next.prompt, NextTurn(workload, 8, 1, {1, 2}, {9}).prompt);
  EXPECT_NE(next.prompt, NextTurn(workload, 7, 2, {1, 2}, {9}).prompt);
}

TEST_F(LoadTest, AnInterruptSendsNothingMoreAndCancelsWhatRuns) {
  router_.on_generate = [this](grpc::ServerContext& context, const auto&, auto&) {
    interrupt_.Trigger();
    while (!context.IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return grpc::Status::CANCELLED;
  };
  Workload workload = SmallWorkload();
  workload.rate = 5;
  workload.requests = 100'000;

  const LoadResult result = Run(workload, {});

  EXPECT_GE(result.outcomes.size(), 1);
  EXPECT_LT(result.outcomes.size(), 1000);
  EXPECT_EQ(result.outcomes[0].error, "CANCELLED");
}

}  // namespace
}  // namespace baton
