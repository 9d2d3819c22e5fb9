// SPDX-License-Identifier: Apache-2.0
// The commands `baton bench serve` and `baton bench compare` against a router.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/formats/file.h"
#include "fake_router.h"
#include "tests/status_matchers.h"
#include "tests/temp_folder.h"

namespace baton {
namespace {

using ::baton::testing::EchoAnswer;
using ::baton::testing::FakeRouter;
using ::testing::HasSubstr;
using ::testing::Not;

class BenchServeTest : public ::testing::Test {
 protected:
  FakeRouter router_;
};

TEST_F(BenchServeTest, TheCommandFindsTheModelAndReportsAsJson) {
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

TEST_F(BenchServeTest, TheCommandReportsObjectivesAndRefusesWhatMakesNoSense) {
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

TEST_F(BenchServeTest, TheCommandSearchesTheGoodputRepeatsRunsAndWritesFiles) {
  router_.models.add_models()->set_name("demo");
  router_.models.mutable_models(0)->set_max_context_tokens(1000);
  v1::WorkerInfo& worker = *router_.status.add_workers();
  worker.set_worker_id("decode-0");
  worker.set_running_sequences(3);
  const testing::TempFolder folder;
  const std::string html = folder.path() / "report.html";
  const std::string aiperf = folder.path() / "profile_export_aiperf.json";
  const auto run = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"bench", "serve",           "--target", router_.target(),  "--rate",
                                          "500",   "--prompt-tokens", "8",        "--output-tokens", "4"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return testing::RunCli(arguments);
  };
  const auto lines_of = [](const std::string& text) {
    std::vector<nlohmann::json> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  };
  // No answer takes an hour, and no run takes longer than a minute: every rate meets the objective.
  auto result = run({"--goodput", "--slo", "ttft=1h", "--requests", "50", "--max-runs", "2", "--json", "--html", html});
  ASSERT_EQ(result.code, 0) << result.err;
  const std::vector<nlohmann::json> search = lines_of(result.out);
  ASSERT_EQ(search.size(), 3u);
  EXPECT_NE(search[0]["cache_salt"], search[1]["cache_salt"]);
  EXPECT_EQ(search[1]["rate"], 1000);
  EXPECT_EQ(search[2]["goodput_search"]["goodput_requests_per_second"], 1000);
  EXPECT_TRUE(search[2]["goodput_search"]["missed"].is_null());
  ASSERT_OK_AND_ASSIGN(const std::string page, ReadTextFile(html, 1 << 24));
  EXPECT_THAT(page, HasSubstr("goodput 1000/s"));
  EXPECT_THAT(page, HasSubstr("decode-0"));

  result = run({"--runs", "2", "--requests", "5", "--json"});
  ASSERT_EQ(lines_of(result.out).size(), 2u);
  EXPECT_EQ(lines_of(result.out)[1]["seed"], 1) << "another run has other arrivals and prompts";
  folder.Write("a", result.out);
  const auto compared = testing::RunCli({"bench", "compare", folder.path() / "a", folder.path() / "a"});
  EXPECT_EQ(compared.code, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("TTFT p50, ms"));

  result = run({"--duration", "100ms", "--turns", "2", "--think-time", "0s", "--export-aiperf", aiperf});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out,
              HasSubstr("50 conversations of 2 turns at 500/s, 8 prompt tokens and 4 output tokens a turn\n"));
  ASSERT_OK_AND_ASSIGN(const std::string exported, ReadTextFile(aiperf, 1 << 24));
  EXPECT_EQ(nlohmann::json::parse(exported)["request_count"]["avg"], 100);

  EXPECT_THAT(run({"--turns", "90"}).err,
              HasSubstr("--turns 90: the last turn has 1080 tokens, expected at most the model's 1000"));
  EXPECT_THAT(run({"--html", "/nowhere/x"}).err, HasSubstr("cannot write /nowhere/x: No such file"));
  EXPECT_THAT(run({"--goodput"}).err, HasSubstr("--slo"));
  EXPECT_THAT(run({"--think-time", "-1s"}).err, HasSubstr("--think-time: \"-1s\", expected a duration"));
}

TEST_F(BenchServeTest, RunsShareNoPrefixesUnlessTold) {
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

TEST_F(BenchServeTest, TheCommandSaysWhyEveryRequestFailedAndMeasuresNothing) {
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

TEST_F(BenchServeTest, TheCommandSucceedsWhenOneRequestDoes) {
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

TEST_F(BenchServeTest, TheCommandRefusesNumbersOutOfItsLimits) {
  const std::pair<const char*, const char*> cases[] = {
      {"--rate", "nan"}, {"--rate", "0"}, {"--requests", "0"}, {"--seed", "-1"}, {"--prompt-tokens", "1.5"}};
  for (const auto& [flag, value] : cases) {
    const auto run = testing::RunCli({"bench", "serve", flag, value});
    EXPECT_EQ(run.code, 2);
    EXPECT_THAT(run.err, HasSubstr(absl::StrCat(flag, ": \"", value, "\", expected a ")));
  }
}

TEST_F(BenchServeTest, TheCommandNamesTheModelsThereAreWhenItsOwnIsNot) {
  router_.models.add_models()->set_name("demo");
  const auto run = testing::RunCli({"bench", "serve", "--target", router_.target(), "--model", "other"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("serves demo, not other"));
}

}  // namespace
}  // namespace baton
