// SPDX-License-Identifier: Apache-2.0
// Command lines that do not parse, --help and --version.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "fake_router.h"

namespace baton::testing {
namespace {

using ::testing::HasSubstr;

TEST(UsageErrorTest, AnUnknownWordIsNamedWithTheNearestOne) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"foo"}, "baton: unknown command \"foo\"\nThe commands are admin, bench, chat, doctor, generate, models, "},
      {{"genrate", "--prompt", "x"}, "baton: unknown command \"genrate\"; did you mean generate?\nThe commands are "},
      {{"foo", "generate"}, "baton: unknown command \"foo\"\n"},
      {{"bench", "srve"},
       "baton bench: unknown command \"srve\"; did you mean serve?\nThe commands are compare, engine, serve.\n"},
      {{"generate", "--prompt", "x", "--modle", "y"},
       "baton generate: unknown option --modle; did you mean --model?\n`baton generate --help` lists "},
      {{"generate", "--promt=x"}, "baton generate: unknown option --promt; did you mean --prompt?\n"},
      {{"generate", "--prompt=x", "--no-ignore-oes"},
       "unknown option --no-ignore-oes; did you mean --no-ignore-eos?\n"},
      {{"generate", "--prompt=x", "--frobnicate"}, "baton generate: unknown option --frobnicate\n"},
      {{"generate", "--prompt=x", "stray"}, "baton generate: unexpected argument \"stray\"\n"},
      {{"--verison"}, "baton: unknown option --verison; did you mean --version?\n"},
      {{}, "baton: expected a command: admin, bench, chat, doctor, generate, "},
      {{"models"}, "baton models: expected a command: inspect, make\n"},
  };
  for (const auto& [arguments, words] : cases) {
    const CliResult run = RunCli(arguments);
    EXPECT_EQ(run.code, 2) << words;
    EXPECT_THAT(run.err, HasSubstr(words));
  }
}

TEST(VersionTest, NamesTheProgramAndItsVersion) {
  const CliResult run = RunCli({"--version"});
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.out, ::testing::MatchesRegex("baton [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

}  // namespace
}  // namespace baton::testing
