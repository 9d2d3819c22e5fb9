// SPDX-License-Identifier: Apache-2.0
// The commands that make, show and quantize models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "fake_router.h"
#include "tests/temp_folder.h"
#include "tests/tiny_models.h"

namespace baton::testing {
namespace {

using ::testing::HasSubstr;

TEST(ModelCommandsTest, MakeInspectAndQuantizeAFile) {
  const TempFolder folder;
  const std::string made = folder.path() / "m.gguf";
  CliResult run = RunCli({"models", "make", "--preset", "110m", "--dtype", "q4_0", "--out", made});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("m.gguf: 109529856 parameters, 0.06 GB, "));

  run = RunCli({"models", "inspect", made});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("m.gguf, gguf, 109.53 M parameters\nLlamaForCausalLM: 12 layers, hidden 768"));
  EXPECT_THAT(run.out, HasSubstr("Q4_0       85   109510656"));
  EXPECT_THAT(run.out, HasSubstr("bf16            36864"));
  run = RunCli({"models", "inspect", made, "--json"});
  EXPECT_EQ(run.code, 0) << run.err;
  const nlohmann::json json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["parameters"], 109529856);
  EXPECT_EQ(json["config"]["max_positions"], 1024);
  EXPECT_EQ(json["kv_bytes_per_token"]["bf16"], 36864);

  run = RunCli({"quantize", DemoModel("demo-chat"), folder.path() / "q.gguf", "--to", "q8_0"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("q.gguf: 43 matrices, 0.01 GB of weights in 0.01 GB, "));
}

TEST(ModelCommandsTest, ErrorsSayWhatWasExpected) {
  EXPECT_EQ(RunCli({"models"}).code, 2);
  CliResult run = RunCli({"models", "make", "--preset", "13b", "--out", "x"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("--preset: \"13b\", expected 110m, tinyllama-1.1b, llama-3.2-1b, llama-3-8b"));
  run = RunCli({"models", "make", "--preset", "110m", "--out", "x", "--dtype", "q4_k"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("expected one of f32, f16, bf16, q8_0, q4_0"));
  run = RunCli({"models", "inspect", "/none"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("baton models inspect: /none/model.safetensors: cannot be opened"));
  run = RunCli({"quantize", "/none", "/none.gguf", "--to", "f16"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("expected one of q8_0, q4_0"));
  run = RunCli({"quantize", "/none", "/none.gguf", "--to", "q8_0"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("baton quantize: /none/config.json: cannot be opened"));
}

}  // namespace
}  // namespace baton::testing
