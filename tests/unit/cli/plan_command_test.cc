// SPDX-License-Identifier: Apache-2.0
// The command `baton plan`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/formats/step_profile.h"
#include "fake_router.h"
#include "tests/status_matchers.h"
#include "tests/temp_folder.h"

namespace baton {
namespace {

using nlohmann::json;
using testing::CliResult;
using ::testing::HasSubstr;
using testing::RunCli;

class PlanCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    StepProfile profile{.model = "m",
                        .numerics_id = "id",
                        .threads = 1,
                        .layers = 4,
                        .page_tokens = 16,
                        .kv_token_bytes = 1000,
                        .max_context_tokens = 2048,
                        .cost = {.step = 0.01, .prompt_token = 1e-4, .decode_row = 1e-3},
                        .steps = {}};
    ASSERT_OK(WriteStepProfile(profile, File("fast.json")));
    profile.cost.step = 0.03;
    ASSERT_OK(WriteStepProfile(profile, File("slow.json")));
  }

  std::string File(const std::string& name) const { return (folder_.path() / name).string(); }
  CliResult Plan(std::vector<std::string> arguments, const std::string& profile = "fast.json") const {
    arguments.insert(arguments.begin(), {"plan", "--profile", File(profile), "--threads", "1", "--seconds", "10"});
    return RunCli(arguments);
  }
  static int Workers(const json& deployment) {
    return deployment["prefill"].get<int>() + deployment["decode"].get<int>() + deployment["both"].get<int>();
  }

  const testing::TempFolder folder_;
};

TEST_F(PlanCommandTest, ComparesDeployments) {
  const CliResult result = Plan({"--slo", "ttft=300ms,tpot=20ms", "--max-workers", "2", "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const json plan = json::parse(result.out);
  EXPECT_EQ(plan["tpot_slo"], 0.02);
  ASSERT_EQ(plan["deployments"].size(), 4);  // both; prefill and decode; prefill and both; two both
  for (const json& deployment : plan["deployments"]) EXPECT_GT(deployment["goodput"], 1);
  const CliResult table = Plan({"--slo", "ttft=300ms,tpot=20ms", "--prefill", "1", "--decode", "1"});
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("1 prefill + 1 decode"));
}

TEST_F(PlanCommandTest, FindsTheCheapestDeployment) {
  const std::vector<std::string> load = {"--slo", "ttft=300ms,tpot=20ms", "--rate", "25", "--json"};
  const CliResult result = Plan(load);
  ASSERT_EQ(result.code, 0) << result.err;
  const json deployments = json::parse(result.out)["deployments"];
  const auto cheapest = std::ranges::find_if(deployments, [](const json& d) { return d["cheapest"].get<bool>(); });
  ASSERT_NE(cheapest, deployments.end()) << result.out;
  EXPECT_GE((*cheapest)["at_rate"]["attained"], 0.9);
  for (const json& deployment : deployments) EXPECT_LE(Workers(deployment), Workers(*cheapest));
  const CliResult none = Plan({"--slo", "ttft=300ms,tpot=20ms", "--rate", "1000", "--max-workers", "1"});
  EXPECT_EQ(none.code, 0) << none.err;
  EXPECT_THAT(none.out, HasSubstr("None of these deployments carries the rate."));
}

TEST_F(PlanCommandTest, DecodeWorkersMayBeOfAnotherKind) {
  const std::vector<std::string> deployment = {"--slo", "ttft=300ms,tpot=20ms", "--prefill", "1", "--decode", "1",
                                               "--json"};
  std::vector<std::string> slow_decode = deployment;
  slow_decode.insert(slow_decode.end(), {"--decode-profile", File("slow.json")});
  EXPECT_GT(json::parse(Plan(deployment).out)["deployments"][0]["goodput"], 0);
  EXPECT_EQ(json::parse(Plan(slow_decode).out)["deployments"][0]["goodput"], 0) << "a step takes 31 ms there";
}

TEST_F(PlanCommandTest, TakesTheLengthsOfATrace) {
  folder_.Write("trace.csv",
                "TIMESTAMP,ContextTokens,GeneratedTokens\n"
                "2023-11-16 18:15:46.0,100,10\n"
                "2023-11-16 18:15:47.0,5000,10\n");
  const std::vector<std::string> load = {
      "--slo", "ttft=300ms,tpot=20ms", "--both", "2", "--trace", File("trace.csv"), "--rate", "2", "--json"};
  EXPECT_NEAR(json::parse(Plan(load).out)["deployments"][0]["at_rate"]["attained"].get<double>(), 0.5, 0.01);
  std::vector<std::string> dropped = load;
  dropped.insert(dropped.end(), {"--too-long", "drop"});
  EXPECT_EQ(json::parse(Plan(dropped).out)["deployments"][0]["at_rate"]["attained"], 1);
}

TEST_F(PlanCommandTest, SaysWhatIsWrong) {
  EXPECT_EQ(Plan({}).code, 2) << "needs --slo";
  EXPECT_EQ(Plan({"--slo", "ttft=1s"}).code, 2) << "needs both objectives";
  CliResult result = Plan({"--slo", "ttft=1s,tpot=1s", "--prefill", "2"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("expected --prefill with --decode or --both"));
  EXPECT_EQ(Plan({"--slo", "ttft=1s,tpot=1s", "--network", "1,x"}).code, 2);
  EXPECT_EQ(Plan({"--slo", "ttft=1s,tpot=1s", "--both", "1", "--max-workers", "2"}).code, 2);
  result = Plan({"--slo", "ttft=1s,tpot=1s", "--both", "1", "--kv-memory", "1e-5"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("--kv-memory holds 0"));
  result = Plan({"--slo", "ttft=1s,tpot=1s"}, "none.json");
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("none.json"));
}

}  // namespace
}  // namespace baton
