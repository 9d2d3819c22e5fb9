// SPDX-License-Identifier: Apache-2.0
// `baton bench serve` against an OpenAI-compatible server: times against the server's own record, and failures.
#include "cli/load/openai_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/load/load_generator.h"
#include "cli/report/load_report.h"
#include "fake_openai.h"
#include "fake_router.h"
#include "tests/files.h"
#include "tests/status_matchers.h"
#include "tests/temp_folder.h"

namespace baton {
namespace {

using ::baton::testing::Fails;
using ::baton::testing::FakeOpenAi;
using ::baton::testing::TokensAfter;
using ::testing::HasSubstr;
using Exchange = FakeOpenAi::Exchange;

constexpr char kToken[] = R"({"choices": [{"text": "a"}]})";

// Waits for the end of one request.
class Waiter final : public RequestObserver {
 public:
  void OnTokens(SteadyTime /*at*/, int tokens) override { tokens_ += tokens; }
  void OnEnd(RequestEnd end) override {
    MutexLock lock(mutex_);
    end_ = std::move(end);
    has_ended_ = true;
    ended_.NotifyAll();
  }
  RequestEnd Wait() {
    MutexLock lock(mutex_);
    const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(60);
    while (!has_ended_ && SteadyTime::Now() < deadline) ended_.WaitUntil(mutex_, deadline);
    EXPECT_TRUE(has_ended_);
    return end_;
  }
  int tokens() const { return tokens_; }

 private:
  std::atomic<int> tokens_ = 0;
  Mutex mutex_;
  CondVar ended_;
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
  RequestEnd end_ ABSL_GUARDED_BY(mutex_);
};

class OpenAiTargetTest : public ::testing::Test {
 protected:
  OpenAiTarget& target() {
    if (!target_) {
      auto created =
          OpenAiTarget::Create({.url = server_.url(), .api_key = "key", .completions = {}}, absl::Seconds(10));
      EXPECT_OK(created);
      target_ = *std::move(created);
    }
    return *target_;
  }

  std::shared_ptr<Waiter> Start(absl::Duration timeout = absl::Seconds(60)) {
    auto waiter = std::make_shared<Waiter>();
    target().Start({.model = "tiny", .prompt = {1, 2, 3}, .output_tokens = 4}, SteadyTime::Now() + timeout, waiter);
    return waiter;
  }

  FakeOpenAi server_;
  std::unique_ptr<OpenAiTarget> target_;
};

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.at(values.size() / 2);
}

// An event cannot arrive before it was sent, whatever the machine does. From the sending to the arrival passes the time
// of the loopback and of a thread's wake-up: on an idle machine well under 1 ms. The bound is 25 ms, and the median of
// many events bears a busy machine. Only a wrong clock or a time stamp in the wrong place can fail. LoadArithmetic in
// load_report_test.cc has the arithmetic, with given times.
TEST_F(OpenAiTargetTest, TimesOfTokensAreTheServersOwn) {
  server_.on_completion = TokensAfter(absl::Milliseconds(20), absl::Milliseconds(10));
  Workload workload;
  workload.model = "tiny";
  workload.vocab_size = 1000;
  workload.rate = 40;
  workload.requests = 20;
  workload.prompt_tokens = 5;
  workload.output_tokens = 12;
  Interrupt interrupt;
  std::vector<double> delays, ttft, tpot, itl;
  for (int i = 0; i < 5; ++i) {
    const auto waiter = std::make_shared<Waiter>();
    target().Start(MakeRequest(workload, i), SteadyTime::Now() + absl::Seconds(60), waiter);
    const RequestEnd end = waiter->Wait();
    ASSERT_EQ(end.error, "") << end.reason;
    const Exchange truth = server_.exchanges().at(static_cast<size_t>(i));
    ASSERT_EQ(end.arrivals.size(), truth.sent.size());
    for (size_t k = 0; k < truth.sent.size(); ++k) {
      const double delay = absl::ToDoubleMilliseconds(end.arrivals[k].at - truth.sent[k]);
      EXPECT_GE(delay, 0);
      delays.push_back(delay);
    }
  }
  EXPECT_LT(Median(delays), 250);

  const LoadReport report = MakeReport(GenerateLoad(target(), workload, {}, interrupt));
  ASSERT_EQ(report.completed, 20u);
  EXPECT_EQ(report.short_answers, 0u);
  EXPECT_EQ(report.prompt_tokens, 100u);
  std::vector<Exchange> exchanges = server_.exchanges();
  for (size_t i = 5; i < exchanges.size(); ++i) {
    const std::vector<SteadyTime>& sent = exchanges[i].sent;
    ttft.push_back(absl::ToDoubleMilliseconds(sent.front() - exchanges[i].received));
    tpot.push_back(absl::ToDoubleMilliseconds(sent.back() - sent.front()) / static_cast<double>(sent.size() - 1));
    for (size_t k = 1; k < sent.size(); ++k) itl.push_back(absl::ToDoubleMilliseconds(sent[k] - sent[k - 1]));
  }
  for (std::vector<double>* values : {&ttft, &tpot, &itl}) std::ranges::sort(*values);
  // TTFT counts from the planned arrival, so that the client's own lateness is in it.
  EXPECT_GE(report.ttft.p50 * 1e3, Percentile(ttft, 0.5));
  EXPECT_LT(report.ttft.p50 * 1e3, Percentile(ttft, 0.5) + 1000);
  EXPECT_NEAR(report.tpot.p50 * 1e3, Percentile(tpot, 0.5), 100);
  EXPECT_NEAR(report.itl.p50 * 1e3, Percentile(itl, 0.5), 100);
  RecordProperty("delay_ms", absl::StrCat(Median(delays)));
  RecordProperty("tpot_off_ms", absl::StrCat(report.tpot.p50 * 1e3 - Percentile(tpot, 0.5)));
  RecordProperty("itl_off_ms", absl::StrCat(report.itl.p50 * 1e3 - Percentile(itl, 0.5)));
}

TEST_F(OpenAiTargetTest, SendsTheRequestWithTheKeyAndUsesConnectionsAgain) {
  for (int i = 0; i < 3; ++i) {
    const auto waiter = Start();
    const RequestEnd end = waiter->Wait();
    EXPECT_EQ(end.error, "") << end.reason;
    EXPECT_EQ(end.prompt_tokens, 3u);
    EXPECT_EQ(waiter->tokens(), 4);
  }
  EXPECT_EQ(server_.connections(), 1);
  const Exchange exchange = server_.exchanges().at(2);
  EXPECT_EQ(exchange.authorization, "Bearer key");
  EXPECT_EQ(exchange.body["prompt"], nlohmann::json({1, 2, 3}));
  EXPECT_EQ(exchange.body["max_tokens"], 4);
}

TEST_F(OpenAiTargetTest, AnIdleConnectionThatTheServerClosedIsReplaced) {
  const auto answer = TokensAfter({}, {});
  server_.on_completion = [answer](Exchange& exchange) {
    answer(exchange);
    exchange.Cut();
  };
  EXPECT_EQ(Start()->Wait().error, "");
  const auto second = Start()->Wait();
  EXPECT_EQ(second.error, "") << second.reason;
  EXPECT_EQ(server_.connections(), 2);
}

TEST_F(OpenAiTargetTest, RefusalsAreCountedByStatusWithTheServersReason) {
  server_.on_completion = [](Exchange& exchange) {
    exchange.SendJson(429, R"({"error": {"message": "too many requests", "type": "rate_limit"}})");
  };
  RequestEnd end = Start()->Wait();
  EXPECT_EQ(end.error, "HTTP_429");
  EXPECT_EQ(end.reason, "too many requests");
  server_.on_completion = [](Exchange& exchange) { exchange.SendJson(500, std::string(1 << 20, 'x')); };
  end = Start()->Wait();
  EXPECT_EQ(end.error, "HTTP_500");
  EXPECT_EQ(end.reason.size(), 203u) << "a long body is cut";
}

TEST_F(OpenAiTargetTest, BrokenAnswersAreNamed) {
  const auto run = [this](FakeOpenAi::Handler handler) {
    server_.on_completion = std::move(handler);
    return Start()->Wait();
  };
  RequestEnd end = run([](Exchange& exchange) {
    exchange.BeginEvents();
    exchange.SendEvent(kToken);
    exchange.Cut();
  });
  EXPECT_EQ(end.error, "BROKEN_STREAM");
  EXPECT_THAT(end.reason, HasSubstr("the server stopped in the middle of the answer: "));
  EXPECT_EQ(end.arrivals.size(), 1u);

  end = run([](Exchange& exchange) { exchange.Cut(); });
  EXPECT_EQ(end.error, "UNAVAILABLE");
  EXPECT_THAT(end.reason, HasSubstr("the server did not answer: "));

  end = run([](Exchange& exchange) { exchange.SendJson(200, R"({"choices": [{"text": "all at once"}]})"); });
  EXPECT_EQ(end.error, "BROKEN_STREAM");
  EXPECT_EQ(end.reason, "the stream ended without [DONE] and without a finish_reason");

  for (const auto& [event, error, reason] :
       {std::tuple{"data: {\"choices\": [{]\n\n", "MALFORMED_ANSWER", "expected an event with a JSON object"},
        std::tuple{"data: {\"error\": {\"message\": \"no memory\"}}\n\n", "SERVER_ERROR", "no memory"}}) {
    end = run([event = event](Exchange& exchange) {
      exchange.BeginEvents();
      exchange.SendRaw(event);
      exchange.WaitForClose();
    });
    EXPECT_EQ(end.error, error);
    EXPECT_THAT(end.reason, HasSubstr(reason));
  }
  end = run([](Exchange& exchange) {
    exchange.BeginEvents();
    for (int i = 0; i < 20; ++i) exchange.SendRaw(std::string(64 << 10, 'x'));
    exchange.WaitForClose();
  });
  EXPECT_EQ(end.error, "MALFORMED_ANSWER") << "an event without end is not kept";
  EXPECT_THAT(end.reason, HasSubstr("an event has more than 1048576 bytes"));
}

TEST_F(OpenAiTargetTest, AServerThatNeverAnswersMeetsTheDeadline) {
  for (const bool after_a_token : {false, true}) {
    server_.on_completion = [after_a_token](Exchange& exchange) {
      if (after_a_token) exchange.BeginEvents();
      if (after_a_token) exchange.SendEvent(kToken);
      exchange.WaitForClose();
    };
    const RequestEnd end = Start(absl::Milliseconds(200))->Wait();
    EXPECT_EQ(end.error, "DEADLINE_EXCEEDED");
    EXPECT_EQ(end.reason, "not done within --timeout");
    EXPECT_EQ(end.arrivals.size(), after_a_token ? 1u : 0u);
  }
}

TEST_F(OpenAiTargetTest, CancelAllEndsWhatRuns) {
  server_.on_completion = [](Exchange& exchange) {
    exchange.BeginEvents();
    exchange.SendEvent(kToken);
    exchange.WaitForClose();
  };
  const auto first = Start(absl::InfiniteDuration());
  const auto second = Start();
  while (first->tokens() + second->tokens() < 2) absl::SleepFor(absl::Milliseconds(1));
  target().CancelAll();
  EXPECT_EQ(first->Wait().error, "CANCELLED");
  EXPECT_EQ(second->Wait().error, "CANCELLED");
}

TEST(OpenAiTarget, SaysWhyThereIsNoServer) {
  std::string url;
  {
    const FakeOpenAi gone;
    url = gone.url();
  }
  ASSERT_OK_AND_ASSIGN(const auto target,
                       OpenAiTarget::Create({.url = url, .api_key = {}, .completions = {}}, absl::Seconds(10)));
  EXPECT_TRUE(
      Fails(target->Models(absl::Seconds(10)), absl::StatusCode::kUnavailable, "/v1/models: Connection refused"));
  const auto waiter = std::make_shared<Waiter>();
  target->Start({.model = "tiny", .prompt = {1}, .output_tokens = 1}, SteadyTime::Now() + absl::Seconds(60), waiter);
  const RequestEnd end = waiter->Wait();
  EXPECT_EQ(end.error, "UNAVAILABLE");
  EXPECT_EQ(end.reason, "the server cannot be reached: Connection refused");
  EXPECT_TRUE(Fails(OpenAiTarget::Create({.url = "https://x:1", .api_key = {}, .completions = {}}, absl::Seconds(1)),
                    absl::StatusCode::kInvalidArgument, "expected http://host:port"));
}

TEST_F(OpenAiTargetTest, TheBenchCommandMeasuresTheServer) {
  const testing::TempFolder folder;
  folder.Write("key", "secret\n");
  const std::string key = folder.path() / "key";
  const auto run = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"bench",           "serve", "--target",        server_.url(),
                                          "--rate",          "500",   "--requests",      "6",
                                          "--prompt-tokens", "7",     "--output-tokens", "3"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return testing::RunCli(arguments);
  };
  const auto result = run({"--api-key-file", key, "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["completed"], 6);
  EXPECT_EQ(json["model"], "tiny");
  EXPECT_EQ(json["all_prompt_tokens"], 42);
  EXPECT_EQ(json["itl_seconds"]["count"], 12);
  const std::vector<Exchange> exchanges = server_.exchanges();
  ASSERT_EQ(exchanges.size(), 6u);
  EXPECT_EQ(exchanges[0].authorization, "Bearer secret");
  // The run's salt is in the prompts, for servers that do not know cache_salt.
  const auto head = [](const Exchange& exchange) {
    const std::vector<int> prompt = exchange.body["prompt"];
    return std::vector<int>(prompt.begin(), prompt.begin() + 4);
  };
  EXPECT_EQ(head(exchanges[0]), head(exchanges[5]));
  EXPECT_NE(exchanges[0].body["prompt"], exchanges[5].body["prompt"]);
  ASSERT_EQ(run({}).code, 0);
  EXPECT_NE(head(server_.exchanges().back()), head(exchanges[0]));

  EXPECT_THAT(run({"--model", "other"}).err, HasSubstr("serves tiny, not other"));
  EXPECT_THAT(run({"--api", "baton"}).err, HasSubstr("--api baton: expected --target HOST:PORT, got http://"));
  server_.models = R"({"data": [{"id": "tiny"}]})";
  EXPECT_THAT(run({}).err, HasSubstr("does not tell the size of tiny's vocabulary: expected --vocab-size"));
  EXPECT_EQ(run({"--vocab-size", "50"}).code, 0);
  server_.models = "";
  EXPECT_THAT(run({}).err, HasSubstr("/v1/models answered with HTTP status 404"));
  EXPECT_EQ(run({"--model", "tiny", "--vocab-size", "50"}).code, 0);
}

}  // namespace
}  // namespace baton
