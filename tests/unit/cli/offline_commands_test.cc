// SPDX-License-Identifier: Apache-2.0
// Commands that look at a model's texts and ask no router.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "fake_router.h"
#include "tests/temp_folder.h"
#include "tests/tiny_models.h"

namespace baton::testing {
namespace {

using ::testing::HasSubstr;

TEST(TokenizeCommandTest, ShowsTokensAndTheirText) {
  const std::string model = DemoModel("demo-chat");
  CliResult run = RunCli({"tokenize", "--model", model, "--text", "It's\n\xC3\xA9\"<|end|>"});
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(
      run.out,
      "    4090  \"<|begin_of_text|>\"\n     743  \"It\"\n    2687  \"'s\"\n     198  \"\\n\"\n     127  \"\\xC3\"\n"
      "     102  \"\\xA9\"\n       1  \"\\\"\"\n    4095  \"<|end|>\"\n");
  EXPECT_EQ(run.err, "8 tokens\n");
  run = RunCli({"tokenize", "--model", model, "--text", "hello", "--json", "--no-special-tokens"});
  EXPECT_EQ(run.out, "{\"text\":\"hello\",\"token_ids\":[257,2582],\"tokens\":[\"he\",\"llo\"]}\n");
  run = RunCli({"tokenize", "--model", model, "--text", "\u200D", "--no-special-tokens", "--json"});
  EXPECT_THAT(run.out, HasSubstr("\"text\":\"\u200D\""));
  EXPECT_EQ(RunCli({"tokenize", "--model", model, "--token-ids", "4090,257,2582"}).out, "<|begin_of_text|>hello\n");
  EXPECT_EQ(RunCli({"tokenize", "--model", model, "--token-ids", "4090,257,2582", "--no-special-tokens"}).out,
            "hello\n");
}

TEST(TokenizeCommandTest, ErrorsSayWhatIsWrong) {
  const std::string model = DemoModel("demo-chat");
  CliResult run = RunCli({"tokenize", "--model", "/none", "--text", "a"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("baton tokenize: /none/tokenizer.json: cannot be opened"));
  run = RunCli({"tokenize", "--model", model, "--token-ids", "99999"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("token id 99999 is not in the vocabulary"));
  EXPECT_EQ(RunCli({"tokenize", "--model", model}).code, 2);
  const TempFolder folder;
  std::ofstream(folder.path() / "f") << "\xFF";
  run = RunCli({"tokenize", "--model", model, "--file", folder.path() / "f", "--json"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("--file"));
}

TEST(RenderCommandTest, ShowsThePromptOrItsTokens) {
  const std::string model = DemoModel("demo-chat");
  EXPECT_EQ(RunCli({"render", "--model", model, "--chat", "Hi", "--system", "Be brief"}).out,
            "<|begin_of_text|><|system|>Be brief<|end|><|user|>Hi<|end|><|assistant|>");
  EXPECT_EQ(
      RunCli({"render", "--model", model, "--chat", "Hi", "--template-args", R"({"add_generation_prompt": false})"})
          .out,
      "<|begin_of_text|><|user|>Hi<|end|>");
  const CliResult run = RunCli({"render", "--model", model, "--chat", "Hi", "--tokens"});
  EXPECT_THAT(run.out, HasSubstr("    4065  \"Hi\"\n"));
  EXPECT_EQ(run.err, "5 tokens\n");
  EXPECT_THAT(RunCli({"render", "--model", model, "--chat", "Hi", "--json"}).out,
              HasSubstr("\"token_ids\":[4090,4092,4065,4095,4093]"));
}

TEST(RenderCommandTest, ErrorsSayWhatIsWrong) {
  const std::string model = DemoModel("demo-chat");
  const TempFolder folder;
  std::ofstream(folder.path() / "c.json") << "{}";
  CliResult run = RunCli({"render", "--model", model, "--messages", folder.path() / "c.json"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("c.json: messages: expected a list of messages"));
  run = RunCli({"render", "--model", model, "--chat", "Hi", "--template-args", R"({"x": 1})"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("chat.template_arguments_json: x: expected no value"));
  EXPECT_EQ(RunCli({"render", "--model", model, "--system", "x"}).code, 2);
  EXPECT_EQ(RunCli({"render", "--model", model, "--messages", ""}).code, 1);
  run = RunCli({"render", "--model", model, "--chat", "Hi", "--template-args", ""});
  EXPECT_THAT(run.err, HasSubstr("--template-args: expected a JSON object"));
}

}  // namespace
}  // namespace baton::testing
