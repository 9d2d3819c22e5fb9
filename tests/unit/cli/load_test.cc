// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "cli/client.h"
#include "cli/load/load_generator.h"
#include "cli/load/trace.h"
#include "cli/load/workload.h"
#include "cli/report/load_report.h"
#include "common/steady_time.h"
#include "fake_router.h"
#include "tests/files.h"
#include "tests/status_matchers.h"
#include "tests/temp_folder.h"

namespace baton {
namespace {

using ::baton::testing::EchoAnswer;
using ::baton::testing::Fails;
using ::baton::testing::FakeRouter;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Percentile, InterpolatesBetweenRanksAsNumpyDoes) {
  EXPECT_DOUBLE_EQ(Percentile({7}, 0.99), 7);
  EXPECT_DOUBLE_EQ(Percentile({1, 2, 3, 4}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(Percentile({1, 2, 3, 4}, 0), 1);
  EXPECT_DOUBLE_EQ(Percentile({1, 2, 3, 4}, 1), 4);
  std::vector<double> hundred(101);
  std::iota(hundred.begin(), hundred.end(), 0);
  EXPECT_DOUBLE_EQ(Percentile(hundred, 0.95), 95);
}

TEST(Summarize, SortsAndOfNothingIsZero) {
  const LatencySummary summary = Summarize({3, 1, 2});
  EXPECT_EQ(summary.count, 3);
  EXPECT_DOUBLE_EQ(summary.mean, 2);
  EXPECT_DOUBLE_EQ(summary.p50, 2);
  EXPECT_DOUBLE_EQ(summary.max, 3);
  EXPECT_EQ(Summarize({}).count, 0);
}

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
  const v1::GenerateRequest request = MakeRequest(workload, 3);

  EXPECT_EQ(request.token_ids().ids_size(), 16);
  EXPECT_THAT(request.token_ids().ids(), Each(::testing::AllOf(::testing::Ge(256), ::testing::Lt(3687))));
  EXPECT_EQ(request.sampling().max_tokens(), 4u);
  EXPECT_TRUE(request.sampling().ignore_eos());
  EXPECT_EQ(request.SerializeAsString(), MakeRequest(workload, 3).SerializeAsString());
  EXPECT_NE(request.SerializeAsString(), MakeRequest(workload, 4).SerializeAsString());
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
  const v1::GenerateRequest first = MakeRequest(workload, 0);
  const v1::GenerateRequest second = MakeRequest(workload, 1);
  EXPECT_EQ(first.token_ids().ids_size(), 75);
  EXPECT_EQ(first.sampling().max_tokens(), 63);
  EXPECT_EQ(second.token_ids().ids_size(), 129);
  EXPECT_EQ(second.sampling().max_tokens(), 1);
  const auto begins_like = [&](int tokens) {
    return std::equal(first.token_ids().ids().begin(), first.token_ids().ids().begin() + tokens,
                      second.token_ids().ids().begin());
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
  const v1::GenerateRequest first = MakeRequest(workload, 0);
  const v1::GenerateRequest second = MakeRequest(workload, 1);
  EXPECT_EQ(first.token_ids().ids_size(), 374);
  EXPECT_EQ(second.sampling().max_tokens(), 109u);
  EXPECT_NE(first.token_ids().ids(0), second.token_ids().ids(0));

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
  EXPECT_THAT(MakeRequest(workload, 0).token_ids().ids(), Each(0));
}

TEST(MakeReport, MeasuresTokensNotMessagesAndCountsErrorsByStatus) {
  LoadResult result;
  result.duration = absl::Seconds(2);
  // Two tokens in one message, then a message of four 40 ms later, and a message of one 20 ms after that.
  result.outcomes.push_back({.code = grpc::StatusCode::OK,
                             .reason = "",
                             .arrivals = {{.at = absl::Milliseconds(10), .tokens = 2},
                                          {.at = absl::Milliseconds(50), .tokens = 4},
                                          {.at = absl::Milliseconds(70), .tokens = 1}},
                             .total = absl::Milliseconds(90)});
  for (const char* reason : {"", "too many requests", "too many pages"}) {
    result.outcomes.push_back(
        {.code = grpc::StatusCode::RESOURCE_EXHAUSTED, .reason = reason, .arrivals = {}, .total = {}});
  }
  result.not_sent = 3;

  const LoadReport report = MakeReport(result);

  EXPECT_EQ(report.completed, 1);
  EXPECT_EQ(report.errors.at("RESOURCE_EXHAUSTED").count, 3);
  EXPECT_EQ(report.errors.at("RESOURCE_EXHAUSTED").first_reason, "too many requests");
  EXPECT_EQ(report.errors.at("NOT_SENT").count, 3);
  EXPECT_THAT(ToTable({}, {}, report), HasSubstr("RESOURCE_EXHAUSTED: 3, the first: too many requests\n"));
  EXPECT_DOUBLE_EQ(report.ttft.p50, 0.010);
  EXPECT_DOUBLE_EQ(report.tpot.p50, 0.010);
  EXPECT_EQ(report.itl.count, 5);
  EXPECT_DOUBLE_EQ(report.itl.p50, 0.010) << "a message's gap is spread over its tokens";
  EXPECT_DOUBLE_EQ(report.itl.max, 0.020);
  EXPECT_DOUBLE_EQ(report.end_to_end.p50, 0.090);
  EXPECT_DOUBLE_EQ(report.output_tokens_per_second, 3.5);
}

TEST(MakeReport, CountsTheRequestsThatMetBothObjectives) {
  const auto answer = [](int first_ms, int last_ms) {
    return RequestOutcome{.code = grpc::StatusCode::OK,
                          .reason = "",
                          .arrivals = {{.at = absl::Milliseconds(first_ms), .tokens = 1},
                                       {.at = absl::Milliseconds(last_ms), .tokens = 10}},
                          .total = absl::Milliseconds(last_ms)};
  };
  LoadResult result;
  result.duration = absl::Seconds(2);
  result.outcomes = {answer(100, 200), answer(100, 201), answer(101, 110), answer(300, 900)};
  result.outcomes.push_back({.code = grpc::StatusCode::RESOURCE_EXHAUSTED, .reason = "", .arrivals = {}, .total = {}});
  // An answer of one token has no TPOT.
  result.outcomes.push_back({.code = grpc::StatusCode::OK,
                             .reason = "",
                             .arrivals = {{.at = absl::Milliseconds(100), .tokens = 1}},
                             .total = absl::Milliseconds(101)});
  result.not_sent = 2;

  const LoadReport report = MakeReport(result, Slo{.ttft = absl::Milliseconds(100), .tpot = absl::Milliseconds(10)});

  ASSERT_TRUE(report.slo.has_value());
  EXPECT_EQ(report.slo->requests, 8u);
  EXPECT_EQ(report.slo->ttft_met, 3u);
  EXPECT_EQ(report.slo->tpot_met, 3u);
  EXPECT_EQ(report.slo->met, 2u);
  EXPECT_DOUBLE_EQ(report.slo->goodput, 1);
  EXPECT_THAT(ToTable({}, {}, report), HasSubstr("TTFT within 100ms: 37.5 %; TPOT within 10ms: 37.5 %; all: 25.0 % of "
                                                 "8 requests, goodput 1.00 requests/s\n"));
  EXPECT_FALSE(MakeReport(result).slo.has_value());
}

class LoadTest : public ::testing::Test {
 protected:
  LoadResult Run(const Workload& workload, const LoadOptions& options) {
    auto client = Client::Connect(router_.target(), absl::Seconds(10), interrupt_);
    EXPECT_OK(client);
    return GenerateLoad(**client, workload, options, interrupt_);
  }

  FakeRouter router_;
  Interrupt interrupt_;
};

TEST_F(LoadTest, SendsEveryRequestAndSeesEveryToken) {
  const LoadResult result = Run(SmallWorkload(), {});

  EXPECT_EQ(result.outcomes.size(), 40);
  EXPECT_EQ(router_.requests().size(), 40);
  for (const RequestOutcome& outcome : result.outcomes) {
    EXPECT_EQ(outcome.code, grpc::StatusCode::OK);
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
  EXPECT_EQ(result.outcomes[0].code, grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(result.outcomes[0].reason, "not done within --timeout 500ms");
}

TEST_F(LoadTest, AClosedLoopKeepsAsManyRequestsUnanswered) {
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  router_.on_generate = [&](auto& context, const auto& request, auto& writer) {
    for (int now = ++running, old = most; now > old && !most.compare_exchange_weak(old, now);) {
    }
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
  EXPECT_EQ(result.outcomes[0].code, grpc::StatusCode::CANCELLED);
}

TEST_F(LoadTest, TheBenchCommandFindsTheModelAndReportsAsJson) {
  v1::ModelInfo& model = *router_.models.add_models();
  model.set_name("demo");
  model.set_vocab_size(4096);

  const auto run = testing::RunCli({"bench", "serve", "--target", router_.target(), "--rate", "200", "--requests", "10",
                                    "--prompt-tokens", "8", "--output-tokens", "4", "--json"});

  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["completed"], 10);
  EXPECT_EQ(json["model"], "demo");
  EXPECT_EQ(json["itl_seconds"]["count"], 30);
  EXPECT_EQ(router_.requests().at(0).model(), "demo");
}

TEST_F(LoadTest, TheBenchCommandReportsObjectivesAndRefusesWhatMakesNoSense) {
  router_.models.add_models()->set_name("demo");
  router_.models.mutable_models(0)->set_max_context_tokens(100);
  const testing::TempFolder folder;
  folder.Write("t.csv",
               "TIMESTAMP,ContextTokens,GeneratedTokens\n"
               "2023-11-16 18:15:46,90,4\n2023-11-16 18:15:47,400,4\n");
  const std::string trace = folder.path() / "t.csv";
  const auto run = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"bench", "serve", "--target", router_.target()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return testing::RunCli(arguments);
  };
  const auto cut = run({"--trace", trace, "--rate", "1000", "--too-long", "cut", "--slo", "ttft=1h", "--json"});
  ASSERT_EQ(cut.code, 0) << cut.err;
  EXPECT_EQ(cut.err, "1 of 2 requests are longer than the model's 100 tokens: cut (--too-long)\n");
  const auto json = nlohmann::json::parse(cut.out);
  EXPECT_EQ(json["slo"]["attained"], 1);
  EXPECT_TRUE(json["slo"]["tpot_seconds"].is_null());
  EXPECT_EQ(router_.requests().back().token_ids().ids_size(), 96);

  EXPECT_THAT(run({"--trace", trace, "--too-long", "drop", "--warmup", "1"}).err, HasSubstr("--warmup 1 leaves none"));
  EXPECT_THAT(run({"--arrivals", "trace"}).err, HasSubstr("--arrivals trace needs --trace"));
  EXPECT_THAT(run({"--slo", "fast"}).err, HasSubstr("--slo: \"fast\", expected times such as ttft=1.3s,tpot=22ms"));
  EXPECT_EQ(run({"--concurrency", "2", "--rate", "3"}).code, 2);
}

TEST_F(LoadTest, TheBenchCommandsRunsShareNoPrefixesUnlessTold) {
  router_.models.add_models()->set_name("demo");
  const std::vector<std::string> arguments = {"bench",  "serve", "--target",   router_.target(),
                                              "--rate", "1000",  "--requests", "2"};
  for (int run = 0; run < 2; ++run) {
    EXPECT_THAT(testing::RunCli(arguments).out,
                HasSubstr("prefixes of earlier runs are not reused (fresh cache_salt)"));
  }
  std::vector<std::string> reusing = arguments;
  reusing.emplace_back("--reuse-cache");
  EXPECT_THAT(testing::RunCli(reusing).out, HasSubstr("prefixes of earlier runs may be reused (--reuse-cache)"));

  const auto requests = router_.requests();
  ASSERT_EQ(requests.size(), 6);
  EXPECT_NE(requests[0].cache_salt(), "");
  EXPECT_EQ(requests[0].cache_salt(), requests[1].cache_salt());
  EXPECT_NE(requests[0].cache_salt(), requests[2].cache_salt());
  EXPECT_FALSE(requests[4].has_cache_salt());

  reusing.emplace_back("--json");
  EXPECT_TRUE(nlohmann::json::parse(testing::RunCli(reusing).out)["cache_salt"].is_null());
}

TEST_F(LoadTest, TheBenchCommandSaysWhyEveryRequestFailedAndMeasuresNothing) {
  router_.models.add_models()->set_name("demo");
  router_.on_generate = [](auto&, const auto&, auto&) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "the prompt has 4000 tokens, expected at most 2048");
  };
  std::vector<std::string> arguments = {"bench",  "serve", "--target",   router_.target(),
                                        "--rate", "1000",  "--requests", "3"};

  const auto table = testing::RunCli(arguments);
  EXPECT_EQ(table.code, 1);
  EXPECT_EQ(table.err, "baton bench serve: no request succeeded\n");
  EXPECT_THAT(table.out,
              HasSubstr("INVALID_ARGUMENT: 3, the first: the prompt has 4000 tokens, expected at most 2048\n"));
  EXPECT_THAT(table.out, HasSubstr("TTFT          -     -    -    -    -\n"));
  EXPECT_THAT(table.out, Not(HasSubstr("0.00\n")));

  arguments.emplace_back("--json");
  const auto json = testing::RunCli(arguments);
  EXPECT_EQ(json.code, 1);
  const auto report = nlohmann::json::parse(json.out);
  EXPECT_EQ(report["errors"]["INVALID_ARGUMENT"]["count"], 3);
  EXPECT_EQ(report["errors"]["INVALID_ARGUMENT"]["first_reason"], "the prompt has 4000 tokens, expected at most 2048");
  EXPECT_EQ(report["ttft_seconds"]["count"], 0);
  EXPECT_TRUE(report["ttft_seconds"]["p95"].is_null());
}

TEST_F(LoadTest, TheBenchCommandSucceedsWhenOneRequestDoes) {
  router_.models.add_models()->set_name("demo");
  std::atomic<int> call = 0;
  router_.on_generate = [&call](auto& context, const auto& request, auto& writer) {
    if (++call > 1) return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "full");
    return EchoAnswer(context, request, writer);
  };
  const auto run =
      testing::RunCli({"bench", "serve", "--target", router_.target(), "--rate", "1000", "--requests", "3"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("1 completed"));
  EXPECT_THAT(run.out, HasSubstr("RESOURCE_EXHAUSTED: 2, the first: full\n"));
}

TEST_F(LoadTest, TheBenchCommandRefusesNumbersOutOfItsLimits) {
  const std::pair<const char*, const char*> cases[] = {
      {"--rate", "nan"}, {"--rate", "0"}, {"--requests", "0"}, {"--seed", "-1"}, {"--prompt-tokens", "1.5"}};
  for (const auto& [flag, value] : cases) {
    const auto run = testing::RunCli({"bench", "serve", flag, value});
    EXPECT_EQ(run.code, 2);
    EXPECT_THAT(run.err, HasSubstr(absl::StrCat(flag, ": \"", value, "\", expected a ")));
  }
}

TEST_F(LoadTest, TheBenchCommandNamesTheModelsThereAreWhenItsOwnIsNot) {
  router_.models.add_models()->set_name("demo");
  const auto run = testing::RunCli({"bench", "serve", "--target", router_.target(), "--model", "other"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("serves demo, not other"));
}

}  // namespace
}  // namespace baton
