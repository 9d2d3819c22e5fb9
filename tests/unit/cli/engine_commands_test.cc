// SPDX-License-Identifier: Apache-2.0
// Commands that run the engine in this process.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/formats/step_profile.h"
#include "fake_router.h"
#include "tests/files.h"
#include "tests/status_matchers.h"
#include "tests/temp_folder.h"

namespace baton {
namespace {

using testing::CliResult;
using testing::RunCli;

using nlohmann::json;
using ::testing::HasSubstr;

std::string DemoModel() { return (testing::SourceFolder() / "models/demo-chat").string(); }

CliResult BenchEngine(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"bench", "engine", "--model", DemoModel(), "--repeats", "1"});
  return RunCli(arguments);
}

TEST(BenchEngineTest, MeasuresWhatWasAskedFor) {
  const CliResult result = BenchEngine({"--prompt-tokens", "40", "--context-tokens", "8", "--sequences", "1,3",
                                        "--output-tokens", "2", "--quantize", "int8", "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const json report = json::parse(result.out);
  EXPECT_THAT(report["numerics_id"].get<std::string>(), HasSubstr("-bf16-to-q8_0/"));
  for (const char* limit : {"read_bytes", "int8_operations", "f32_operations"}) EXPECT_GT(report["limits"][limit], 0);
  ASSERT_EQ(report["measurements"].size(), 3);
  EXPECT_EQ(report["measurements"][0]["work"], "prefill");
  EXPECT_EQ(report["measurements"][0]["prompt_tokens"], 40);
  EXPECT_EQ(report["measurements"][2]["work"], "decode");
  EXPECT_EQ(report["measurements"][2]["sequences"], 3);
  for (const json& measured : report["measurements"]) {
    EXPECT_GT(measured["tokens_per_second"], 0);
    double parts = 0;
    for (const char* part : {"products", "attention", "kv", "element_wise", "sampling", "rest"}) {
      EXPECT_GE(measured[part], 0) << part;
      parts += measured[part].get<double>();
    }
    EXPECT_NEAR(parts, measured["step_seconds"], 1e-6);
    EXPECT_GT(measured["products"], 0);
  }
}

TEST(BenchEngineTest, TheTableHasALineForEachMeasurement) {
  const CliResult result = BenchEngine({"--prompt-tokens", "9", "--sequences", "2", "--output-tokens", "1"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("prefill 9"));
  EXPECT_THAT(result.out, HasSubstr("decode 2 after 128"));
  EXPECT_THAT(result.out, HasSubstr("machine limits"));
}

TEST(BenchEngineTest, SaysWhatIsWrong) {
  CliResult result = BenchEngine({"--prompt-tokens", "4096"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("the model has 2048 positions, the measurements would need 4096"));
  result = BenchEngine({"--kernels", "sse"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("unknown kernels \"sse\""));
  for (const char* sequences : {"", "0", "1,", "a", "-1", "99999"}) {
    EXPECT_EQ(BenchEngine({"--sequences", sequences}).code, 2) << sequences;
  }
  result = BenchEngine({"--quantize", "int3"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("off, int8, int4"));
  result = RunCli({"bench", "engine", "--model", "/nope"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("/nope"));
}

TEST(BenchEngineTest, WritesAProfileOfEveryCombination) {
  const testing::TempFolder folder;
  const std::string file = (folder.path() / "profile.json").string();
  const std::vector<std::string> grid = {"--profile",        file,    "--sequences",        "1,3",
                                         "--profile-chunks", "16,40", "--profile-contexts", "20"};
  CliResult result = BenchEngine(grid);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("errors of this fit"));
  ASSERT_OK_AND_ASSIGN(const StepProfile profile, ReadStepProfile(file));
  EXPECT_EQ(profile.model, "demo-chat");
  EXPECT_EQ(profile.kv_token_bytes, 3072);
  EXPECT_EQ(profile.max_context_tokens, 2048);
  EXPECT_TRUE(profile.cost.known());
  ASSERT_EQ(profile.steps.size(), 3 * 3 - 1);
  for (const StepProfile::Step& step : profile.steps) {
    EXPECT_EQ(step.context_tokens, 20);
    EXPECT_GT(step.prompt_tokens + step.decode_rows, 0);
  }
  std::vector<std::string> too_long = grid;
  too_long.back() = "2030";
  result = BenchEngine(too_long);
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("the model has 2048 positions, the largest context and chunk need 2070"));
  EXPECT_EQ(BenchEngine({"--profile-chunks", "16"}).code, 2) << "needs --profile";
}

// Of the beginning of the held-out text: enough to tell one type of weights from another.
double PerplexityOf(const std::vector<std::string>& arguments) {
  constexpr size_t kTextBytes = 20'000;
  const std::string text = testing::ReadFile(testing::SourceFolder() / "tests/golden/demo/heldout.txt");
  const testing::TempFolder folder;
  folder.Write("text.txt", text.substr(0, text.rfind('\n', kTextBytes)));
  std::vector<std::string> words = {
      "perplexity", "--model", DemoModel(), "--text", (folder.path() / "text.txt").string(), "--json"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const CliResult result = RunCli(words);
  EXPECT_EQ(result.code, 0) << result.err;
  return result.code == 0 ? json::parse(result.out)["perplexity"].get<double>() : 0;
}

TEST(PerplexityTest, QuantizedWeightsPredictAlmostAsWell) {
  const double exact = PerplexityOf({});
  EXPECT_GT(exact, 1.5);
  EXPECT_LT(exact, 10);
  EXPECT_NEAR(PerplexityOf({"--quantize", "int8"}) / exact, 1, 0.01);
  EXPECT_NEAR(PerplexityOf({"--quantize", "int4"}) / exact, 1.05, 0.1);
  EXPECT_NEAR(PerplexityOf({"--kv-dtype", "f32"}) / exact, 1, 0.005);
  EXPECT_NEAR(PerplexityOf({"--kv-dtype", "int8"}) / exact, 1, 0.005);
  EXPECT_NEAR(PerplexityOf({"--kv-dtype", "fp8"}) / exact, 1, 0.02);
}

TEST(PerplexityTest, ATextMustFillAChunk) {
  const testing::TempFolder folder;
  folder.Write("short.txt", "Too short.");
  const CliResult result =
      RunCli({"perplexity", "--model", DemoModel(), "--text", (folder.path() / "short.txt").string()});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("expected at least a chunk of 512"));
}

}  // namespace
}  // namespace baton
