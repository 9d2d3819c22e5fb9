// SPDX-License-Identifier: Apache-2.0
// Summaries, plots, exports and comparisons of load runs.
#include "cli/report/load_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cli/console/interrupt.h"
#include "cli/load/load_target.h"
#include "cli/report/aiperf_export.h"
#include "cli/report/compare_report.h"
#include "cli/report/goodput_report.h"
#include "cli/report/html_report.h"
#include "cli/report/progress_line.h"
#include "cli/report/svg_plot.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using ::baton::testing::Fails;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

RequestOutcome Answer(std::vector<RequestOutcome::Arrival> arrivals, absl::Duration total) {
  RequestOutcome outcome;
  outcome.arrivals = std::move(arrivals);
  outcome.total = total;
  outcome.prompt_tokens = 10;
  return outcome;
}

RequestOutcome Refused(const std::string& reason) {
  RequestOutcome outcome;
  outcome.error = "RESOURCE_EXHAUSTED";
  outcome.reason = reason;
  return outcome;
}

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

TEST(MakeReport, MeasuresTokensNotMessagesAndCountsErrorsByStatus) {
  LoadResult result;
  result.duration = absl::Seconds(2);
  // Two tokens in one message, then a message of four 40 ms later, and a message of one 20 ms after that.
  result.outcomes.push_back(Answer({{.at = absl::Milliseconds(10), .tokens = 2},
                                    {.at = absl::Milliseconds(50), .tokens = 4},
                                    {.at = absl::Milliseconds(70), .tokens = 1}},
                                   absl::Milliseconds(90)));
  for (const char* reason : {"", "too many requests", "too many pages"}) result.outcomes.push_back(Refused(reason));
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
    return Answer(
        {{.at = absl::Milliseconds(first_ms), .tokens = 1}, {.at = absl::Milliseconds(last_ms), .tokens = 10}},
        absl::Milliseconds(last_ms));
  };
  LoadResult result;
  result.duration = absl::Seconds(2);
  result.outcomes = {answer(100, 200), answer(100, 201), answer(101, 110), answer(300, 900)};
  result.outcomes.push_back(Refused(""));
  // An answer of one token has no TPOT.
  result.outcomes.push_back(Answer({{.at = absl::Milliseconds(100), .tokens = 1}}, absl::Milliseconds(101)));
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

// A target that answers at times that the test chose, so that the arithmetic is exact.
class ScriptedTarget final : public LoadTarget {
 public:
  void Start(LoadRequest request, SteadyTime deadline, std::shared_ptr<RequestObserver> observer) override {
    const SteadyTime arrival = deadline - absl::Minutes(5);
    RequestEnd end;
    end.at = arrival + absl::Milliseconds(75);
    end.prompt_tokens = 40;
    end.cached_tokens = request.prompt.size() > 8 ? 20 : 0;
    for (int i = 0; i < request.output_tokens; ++i) {
      end.arrivals.push_back({.at = arrival + absl::Milliseconds(20 + 10 * i), .tokens = 1});
      end.answer.push_back(i);
    }
    observer->OnEnd(std::move(end));
  }
  void CancelAll() override {}
};

TEST(LoadArithmetic, IsExactForTimesThatAreGiven) {
  ScriptedTarget target;
  Interrupt interrupt;
  Workload workload;
  workload.rate = 1000;
  workload.requests = 4;
  workload.turns = 2;
  workload.think_time = absl::ZeroDuration();
  workload.prompt_tokens = 8;
  workload.output_tokens = 5;
  workload.vocab_size = 100;
  const LoadResult result = GenerateLoad(target, workload, {}, interrupt);
  const LoadReport report = MakeReport(result, Slo{.ttft = absl::Milliseconds(20), .tpot = absl::Milliseconds(10)});

  EXPECT_EQ(report.completed, 8u);
  EXPECT_DOUBLE_EQ(report.ttft.mean, 0.020);
  EXPECT_DOUBLE_EQ(report.tpot.p99, 0.010);
  EXPECT_DOUBLE_EQ(report.itl.max, 0.010);
  EXPECT_EQ(report.itl.count, 32u);
  EXPECT_DOUBLE_EQ(report.end_to_end.p50, 0.075);
  EXPECT_EQ(report.slo->met, 8u);
  ASSERT_EQ(report.turns.size(), 2u);
  EXPECT_EQ(report.turns[0].cached_tokens, 0u);
  EXPECT_EQ(report.turns[1].cached_tokens, 80u);
  EXPECT_EQ(report.turns[1].prompt_tokens, 160u);
  EXPECT_THAT(ToTable(workload, {}, report), HasSubstr("\nTURN  COMPLETED  PROMPT TOKENS  CACHED %  TTFT P50    P95\n"
                                                       "   1          4            160       0.0     20.00  20.00\n"
                                                       "   2          4            160      50.0     20.00  20.00\n"));
  const auto json = nlohmann::json::parse(ToJson("t", workload, {}, report));
  EXPECT_EQ(json["by_turn"][1]["cached_share"], 0.5);
  EXPECT_EQ(json["slo"]["attained_interval_95"].size(), 2u);
}

TEST(LoadSeries, KnowsShortAnswersAndTheRequestsInFlight) {
  LoadResult result;
  result.outcomes = {Answer({{.at = absl::Seconds(1), .tokens = 2}}, absl::Seconds(2)), Refused("")};
  result.outcomes[0].wanted_tokens = 3;
  result.outcomes[1].start = absl::Seconds(1);
  result.outcomes[1].total = absl::Seconds(1);
  EXPECT_TRUE(MakeSeries(result).requests.at(0).is_short);
  EXPECT_THAT(ToTable({}, {}, MakeReport(result)), HasSubstr("1 answer ended before the length that was asked for\n"));
  std::vector<std::pair<double, int>> steps;
  for (const InFlightStep& step : InFlight(result)) steps.emplace_back(step.at, step.requests);
  EXPECT_THAT(steps, ElementsAre(std::pair(0.0, 1), std::pair(1.0, 2), std::pair(2.0, 0)));
}

LoadResult TwoAnswers() {
  LoadResult result;
  result.duration = absl::Seconds(2);
  result.outcomes = {Answer({{.at = absl::Milliseconds(10), .tokens = 1}, {.at = absl::Milliseconds(30), .tokens = 2}},
                            absl::Milliseconds(40)),
                     Answer({{.at = absl::Milliseconds(30), .tokens = 1}, {.at = absl::Milliseconds(50), .tokens = 1}},
                            absl::Milliseconds(60)),
                     Refused("full")};
  return result;
}

TEST(AiperfExport, HasAiperfsFieldsAndUnits) {
  const LoadResult result = TwoAnswers();
  const auto json = nlohmann::json::parse(ToAiperfJson(result, MakeReport(result, Slo{}),
                                                       {.benchmark_id = "id",
                                                        .start = absl::UnixEpoch(),
                                                        .end = absl::UnixEpoch() + absl::Milliseconds(2500),
                                                        .was_cancelled = false}));
  EXPECT_EQ(json["schema_version"], "1.1");
  const auto& ttft = json["time_to_first_token"];
  EXPECT_EQ(ttft["unit"], "ms");
  EXPECT_DOUBLE_EQ(ttft["avg"], 20);
  EXPECT_DOUBLE_EQ(ttft["min"], 10);
  EXPECT_DOUBLE_EQ(ttft["max"], 30);
  EXPECT_DOUBLE_EQ(ttft["p25"], 15);
  EXPECT_NEAR(ttft["std"], 14.1421, 1e-4) << "of a sample";
  EXPECT_EQ(ttft["count"], 2);
  EXPECT_DOUBLE_EQ(ttft["sum"], 40);
  EXPECT_DOUBLE_EQ(json["inter_token_latency"]["avg"], 15) << "TPOT: 10 and 20 ms";
  EXPECT_DOUBLE_EQ(json["request_latency"]["avg"], 50);
  EXPECT_EQ(json["output_sequence_length"]["sum"], 5);
  EXPECT_EQ(json["request_throughput"], nlohmann::json({{"unit", "requests/sec"}, {"avg", 1.0}}));
  EXPECT_EQ(json["output_token_throughput"]["unit"], "tokens/sec");
  EXPECT_EQ(json["benchmark_duration"], nlohmann::json({{"unit", "sec"}, {"avg", 2.0}}));
  EXPECT_EQ(json["error_summary"][0]["error_details"]["type"], "RESOURCE_EXHAUSTED");
  EXPECT_EQ(json["error_summary"][0]["count"], 1);
  EXPECT_EQ(json["end_time"], "1970-01-01T00:00:02.500000Z");
  LoadResult nothing;
  EXPECT_FALSE(nlohmann::json::parse(ToAiperfJson(nothing, MakeReport(nothing), {})).contains("time_to_first_token"));
}

TEST(HtmlReport, StandsAloneAndEscapes) {
  LoadResult result = TwoAnswers();
  result.outcomes.back().reason = "<script>alert(1)</script>";
  HtmlPage page = {
      .target = "a&b", .model = "m", .load = "2 requests", .time = absl::UnixEpoch(), .search = {}, .runs = {}};
  for (const double rate : {2.0, 4.0}) {
    page.runs.push_back({.rate = rate, .result = result, .report = MakeReport(result, Slo{}), .workers = {}});
  }
  page.runs[1].workers["decode-0 (decode)"] = {{.at = absl::Seconds(1), .waiting = 2, .running = 7, .pages_used = 5}};
  const std::string html = ToHtml(page);
  EXPECT_THAT(html, HasSubstr("a&amp;b"));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert"));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("http")));
  for (const char* const title : {"Requests within their objectives", "TTFT, cumulative", "TPOT of each request",
                                  "Requests in flight", "Batch of each worker", "Queue of each worker"}) {
    EXPECT_THAT(html, HasSubstr(title));
  }
  EXPECT_THAT(ToSvg({.title = "none", .x_name = "x", .y_name = "y", .series = {}, .marks = {}}),
              HasSubstr("No measurements."));
}

TEST(Ticks, AreRound) {
  EXPECT_THAT(Ticks(0, 10, 5, Plot::Scale::kLinear), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(Ticks(0, 0.73, 5, Plot::Scale::kLinear),
              ElementsAre(0, 0.2, ::testing::DoubleEq(0.4), ::testing::DoubleEq(0.6)));
  EXPECT_THAT(Ticks(3, 40, 5, Plot::Scale::kLog), ElementsAre(5, 10, 20));
  EXPECT_EQ(Ticks(1, 1, 5, Plot::Scale::kLinear).size(), 0u);
}

TEST(ProgressLine, SaysWhatIsUnderWay) {
  RunProgress progress;
  progress.Begin(100);
  for (int i = 0; i < 3; ++i) progress.Sent();
  for (const int ms : {30, 10, 20}) progress.FirstToken(absl::Milliseconds(ms));
  progress.Ended(true);
  progress.Ended(false);
  RunProgress::Snapshot snapshot = progress.Take();
  snapshot.elapsed = absl::Seconds(2);
  snapshot.tokens = 50;
  EXPECT_EQ(ProgressLine(snapshot), "2 s: 3 of 100 sent, 1 done, 1 failed, 1 in flight, TTFT p50 20.0 ms, 25 tokens/s");
}

std::string RunLine(double ttft_ms, double rate = 4) {
  LoadResult result;
  result.duration = absl::Seconds(1);
  result.outcomes = {Answer({{.at = absl::Milliseconds(ttft_ms), .tokens = 1}}, absl::Milliseconds(100))};
  Workload workload;
  workload.rate = rate;
  return ToJson("t", workload, {}, MakeReport(result)) + "\n";
}

TEST(CompareResults, SaysWhichDifferencesAreBeyondTheSpread) {
  const CompareInput a = {.name = "a.json", .text = RunLine(10) + RunLine(12)};
  ASSERT_OK_AND_ASSIGN(std::string text, CompareResults(a, {.name = "b.json", .text = RunLine(13) + RunLine(15)}));
  ASSERT_OK_AND_ASSIGN(const std::string close,
                       CompareResults(a, {.name = "b.json", .text = RunLine(11.5) + RunLine(15)}));
  EXPECT_THAT(close, ::testing::ContainsRegex("TTFT p50, ms +11.00 [^\n]+ +13.25 [^\n]+ +1.205  no"));
  EXPECT_THAT(text, HasSubstr("A: a.json, 2 runs\nB: b.json, 2 runs\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex(
                        "TTFT p50, ms +11.00 \\(10.00 to 12.00\\) +14.00 \\(13.00 to 15.00\\) +1.273  yes"));
  EXPECT_THAT(text,
              ::testing::ContainsRegex("end to end p50, ms +100.00 \\(100.00 to 100.00\\) +100.00 [^\n]+ +1.000  no"));
  ASSERT_OK_AND_ASSIGN(text, CompareResults(a, {.name = "b", .text = RunLine(11, 5)}));
  EXPECT_THAT(text, HasSubstr("the results differ in rate: 4.0 and 5.0\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("TTFT p50, ms +11.00 [^\n]+ +11.00 +1.000  -\n"));

  const auto fails = [&a](const std::string& b, const char* message) {
    return Fails(CompareResults(a, {.name = "b", .text = b}), absl::StatusCode::kInvalidArgument, message);
  };
  EXPECT_TRUE(fails("", "b: expected a run a line, got none"));
  EXPECT_TRUE(fails("\n{}\n", "b:2: expected a line that `baton bench serve --json` printed"));
  EXPECT_TRUE(fails("nonsense", "b:1"));
  EXPECT_TRUE(fails(RunLine(1, 4) + RunLine(1, 5), "b: expected runs of one setting, got rate 4.0 and 5.0"));
}

TEST(CompareResults, ComparesSearchesByTheirIntervals) {
  const auto search = [](double met, double goodput, double missed) {
    const GoodputResult result = {
        .rates = {}, .goodput = goodput, .missed = missed, .surely_met = met, .surely_missed = missed};
    return RunLine(1) + GoodputJson({}, result);
  };
  ASSERT_OK_AND_ASSIGN(std::string text,
                       CompareResults({.name = "a", .text = search(3, 4, 5)}, {.name = "b", .text = search(5, 6, 7)}));
  EXPECT_THAT(text,
              ::testing::ContainsRegex("goodput, requests/s +4.000 \\(3.000 to 5.000\\) +6.000 [^\n]+ +1.500  yes"));
  ASSERT_OK_AND_ASSIGN(text,
                       CompareResults({.name = "a", .text = search(3, 4, 5)}, {.name = "b", .text = search(4, 6, 7)}));
  EXPECT_THAT(text, HasSubstr("1.500  no"));
}

}  // namespace
}  // namespace baton
