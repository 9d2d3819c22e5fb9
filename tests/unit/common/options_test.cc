// SPDX-License-Identifier: Apache-2.0
#include "common/options.h"

#include <unistd.h>

#include <fstream>

#include "common/strings.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using testing::kInvalid;

using ::baton::testing::Fails;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Parsed = OptionSet::Outcome;

// One option of every type.
class OptionsTest : public ::testing::Test {
 protected:
  OptionsTest() : set_("baton-test", "Tests options.") {
    set_.Add("listen", &listen_, "host:port for gRPC");
    set_.Add("threads", &threads_, "compute threads", 1, 64);
    set_.Add("peer-timeout", &peer_timeout_, "declare a silent peer dead after this", absl::Milliseconds(100),
             absl::Minutes(5));
    set_.Add("pool", &pool_, "page pool");
    set_.Add("share", &share_, "share of something", 0, 1);
    set_.AddChoice("log.level", &level_, {"debug", "info"}, "what to log");
    set_.AddList("worker", &workers_, "workers (default: this one)");
    set_.AddList("cpus", &cpus_, "cores", 0, 7);
  }

  absl::StatusOr<Parsed> Parse(std::vector<const char*> args) {
    args.insert(args.begin(), "baton-test");
    return set_.Parse(static_cast<int>(args.size()), args.data());
  }

  absl::StatusOr<Parsed> ParseFile(std::string_view text, std::vector<const char*> args = {}) {
    path_ = Concat(::testing::TempDir(), "options_test.", getpid(), ".yaml");
    std::ofstream(path_) << text;
    args.push_back("--config");
    args.push_back(path_.c_str());
    auto outcome = Parse(args);
    unlink(path_.c_str());
    return outcome;
  }

  std::string listen_ = "127.0.0.1:1";
  int threads_ = 4;
  absl::Duration peer_timeout_ = absl::Seconds(3);
  ByteSize pool_{.bytes = 512 << 20};
  double share_ = 0.5;
  std::string level_ = "info";
  std::vector<std::string> workers_;
  std::vector<int> cpus_ = {0, 1};
  OptionSet set_;
  std::string path_;
};

TEST_F(OptionsTest, KeepDefaultsThatAreNotOverridden) {
  ASSERT_OK_AND_ASSIGN(const Parsed outcome, Parse({}));
  EXPECT_EQ(outcome, Parsed::kRun);
  EXPECT_EQ(listen_, "127.0.0.1:1");
  EXPECT_EQ(threads_, 4);
  EXPECT_THAT(cpus_, ElementsAre(0, 1));
}

TEST_F(OptionsTest, TakeEveryTypeFromTheCommandLine) {
  ASSERT_OK(Parse({"--listen", "0.0.0.0:2", "--threads=8", "--peer-timeout", "250ms", "--pool", "2GiB", "--log.level",
                   "debug", "--worker", "a,b", "--worker", "c", "--cpus=3,1"}));
  EXPECT_EQ(listen_, "0.0.0.0:2");
  EXPECT_EQ(threads_, 8);
  EXPECT_EQ(peer_timeout_, absl::Milliseconds(250));
  EXPECT_EQ(pool_.bytes, uint64_t{2} << 30);
  EXPECT_EQ(level_, "debug");
  EXPECT_THAT(workers_, ElementsAre("a", "b", "c"));
  EXPECT_THAT(cpus_, ElementsAre(3, 1));
}

TEST_F(OptionsTest, APresetReplacesDefaultsButNothingThatIsGiven) {
  std::string preset;
  set_.AddPresets(
      "preset", &preset,
      {{"small", "less of it", {{"threads", "1"}, {"pool", "1MiB"}, {"share", "0.1"}}}, {"none", "the defaults", {}}});
  ASSERT_OK(ParseFile("threads: 8\npreset: small\n", {"--share", "0.9"}));
  EXPECT_EQ(threads_, 8) << "of the file";
  EXPECT_EQ(share_, 0.9) << "of the command line";
  EXPECT_EQ(pool_.bytes, uint64_t{1} << 20) << "of the preset";
  pool_.bytes = 7;
  ASSERT_OK(ParseFile("preset: small\n", {"--preset", "none"}));
  EXPECT_EQ(pool_.bytes, 7u) << "the command line chooses another preset than the file";
  EXPECT_TRUE(Fails(Parse({"--preset", "huge"}), kInvalid, "expected one of small, none"));
}

TEST_F(OptionsTest, APresetWithAWrongValueIsNamed) {
  std::string preset;
  set_.AddPresets("preset", &preset, {{"wrong", "", {{"threads", "99"}}}, {"unknown", "", {{"thread", "1"}}}});
  EXPECT_TRUE(Fails(Parse({"--preset", "wrong"}), kInvalid, "preset wrong: threads: \"99\" is not valid"));
  EXPECT_TRUE(Fails(Parse({"--preset", "unknown"}), kInvalid, "preset unknown: thread: there is no such option"));
}

TEST_F(OptionsTest, TakeEveryTypeFromAFile) {
  ASSERT_OK(ParseFile(R"(
# a comment
listen: 0.0.0.0:2
threads: 8
peer-timeout: 250ms
pool: 2GiB
log:
  level: debug
worker: [a, "b,c"]
cpus:
  - 3
  - 1
)"));
  EXPECT_EQ(listen_, "0.0.0.0:2");
  EXPECT_EQ(threads_, 8);
  EXPECT_EQ(peer_timeout_, absl::Milliseconds(250));
  EXPECT_EQ(pool_.bytes, uint64_t{2} << 30);
  EXPECT_EQ(level_, "debug");
  EXPECT_THAT(workers_, ElementsAre("a", "b,c"));
  EXPECT_THAT(cpus_, ElementsAre(3, 1));
}

TEST_F(OptionsTest, LetTheCommandLineWinOverTheFile) {
  ASSERT_OK(ParseFile("threads: 8\nlisten: a:1\ncpus: [6, 7]\n", {"--threads", "2", "--cpus", "5"}));
  EXPECT_EQ(threads_, 2);
  EXPECT_EQ(listen_, "a:1");
  EXPECT_THAT(cpus_, ElementsAre(5));
}

TEST_F(OptionsTest, CheckTheFileEvenWhereTheCommandLineWins) {
  EXPECT_TRUE(Fails(ParseFile("threads: many\n", {"--threads", "2"}), kInvalid, "threads: \"many\""));
}

TEST_F(OptionsTest, TakeAnEmptyListAndAnEmptyText) {
  ASSERT_OK(Parse({"--cpus=", "--listen="}));
  EXPECT_THAT(cpus_, IsEmpty());
  EXPECT_EQ(listen_, "");
  cpus_ = {1};
  ASSERT_OK(ParseFile("cpus: []\nlisten: \"\"\n"));
  EXPECT_THAT(cpus_, IsEmpty());
}

TEST_F(OptionsTest, TakeAnEmptyFile) {
  EXPECT_OK(ParseFile(""));
  EXPECT_OK(ParseFile("# nothing but a comment\n"));
}

TEST_F(OptionsTest, RefuseUnknownNamesAndSuggestTheRightOne) {
  EXPECT_TRUE(Fails(Parse({"--thread", "2"}), kInvalid, "unknown option --thread; did you mean --threads?"));
  EXPECT_TRUE(Fails(Parse({"--log-level=info"}), kInvalid, "unknown option --log-level; did you mean --log.level?"));
  EXPECT_TRUE(Fails(Parse({"--threasd=2"}), kInvalid, "unknown option --threasd; did you mean --threads?"));
  EXPECT_TRUE(Fails(Parse({"--confg", "x"}), kInvalid, "unknown option --confg; did you mean --config?"));
  EXPECT_TRUE(Fails(Parse({"--verison"}), kInvalid, "unknown option --verison; did you mean --version?"));
  const absl::Status far = Parse({"--verbose"}).status();
  EXPECT_EQ(far.message(), "unknown option --verbose");
  EXPECT_TRUE(Fails(Parse({"-x"}), kInvalid, "unknown option -x"));
  EXPECT_TRUE(Fails(Parse({"--"}), kInvalid, ""));
  EXPECT_TRUE(Fails(Parse({"stray"}), kInvalid, "unexpected argument \"stray\""));
  EXPECT_TRUE(
      Fails(ParseFile("listen: a:1\nthread: 2\n"), kInvalid, ".yaml:2: unknown key thread; did you mean threads?"));
  EXPECT_TRUE(Fails(ParseFile("log:\n  leve: info\n"), kInvalid, ".yaml:2: unknown key log.leve"));
  EXPECT_TRUE(Fails(ParseFile("config: x\n"), kInvalid, "unknown key config"));
}

TEST_F(OptionsTest, NumbersMayHaveAFraction) {
  ASSERT_OK(Parse({"--share", "0.01"}));
  EXPECT_DOUBLE_EQ(share_, 0.01);
}

TEST_F(OptionsTest, RefuseValuesThatDoNotParseOrAreOutOfRange) {
  struct Case {
    const char* flag;
    const char* value;
    const char* message;
  };
  const Case cases[] = {
      {"--threads", "0", "--threads: \"0\" is not valid, expected a whole number from 1 to 64"},
      {"--threads", "65", "from 1 to 64"},
      {"--threads", "4x", "\"4x\""},
      {"--threads", "99999999999999999999", "from 1 to 64"},
      {"--peer-timeout", "3", "a duration from 100ms to 5m, such as 250ms"},
      {"--peer-timeout", "99ms", "100ms to 5m"},
      {"--peer-timeout", "inf", "100ms to 5m"},
      {"--share", "1.01", "expected a number from 0 to 1"},
      {"--share", "-0.1", "from 0 to 1"},
      {"--share", "nan", "from 0 to 1"},
      {"--share", "half", "\"half\""},
      {"--pool", "12MB", "such as 512MiB"},
      {"--pool", "12", "such as 512MiB"},
      {"--pool", "GiB", "such as 512MiB"},
      {"--pool", "99999999TiB", "such as 512MiB"},
      {"--log.level", "loud", "expected one of debug, info"},
      {"--cpus", "1,x", "--cpus: \"1,x\" is not valid, expected whole numbers from 0 to 7, separated by commas"},
      {"--cpus", "0-1", "whole numbers from 0 to 7, separated by commas"},
      {"--cpus", "-1", "whole numbers from 0 to 7, separated by commas"},
      {"--cpus", "1,8", "whole numbers from 0 to 7, separated by commas"},
  };
  for (const Case& c : cases) {
    EXPECT_TRUE(Fails(Parse({c.flag, c.value}), kInvalid, c.message)) << c.flag << " " << c.value;
  }
  EXPECT_TRUE(Fails(Parse({"--threads"}), kInvalid, "threads"));
  EXPECT_TRUE(
      Fails(Parse({"--listen", "--threads"}), kInvalid, "--listen: expected a value, not the option --threads"));
  EXPECT_TRUE(Fails(Parse({"--threads", "1", "--threads", "2"}), kInvalid, "threads"));
  EXPECT_TRUE(
      Fails(ParseFile("\nthreads: 0\n"), kInvalid, ".yaml:2: threads: \"0\" is not valid, expected a whole number"));
}

TEST_F(OptionsTest, RefuseFilesOfTheWrongShape) {
  EXPECT_TRUE(Fails(ParseFile("threads: 1\nthreads: 2\n"), kInvalid, ".yaml:2: threads is given twice"));
  EXPECT_TRUE(Fails(ParseFile("log: {level: info}\nlog.level: info\n"), kInvalid, ".yaml:2: log.level is given twice"));
  EXPECT_TRUE(Fails(ParseFile("log: {level: info}\nlog: {level: info}\n"), kInvalid, ".yaml:2: log is given twice"));
  EXPECT_TRUE(Fails(ParseFile("threads: [1]\n"), kInvalid, "threads: expected one value"));
  EXPECT_TRUE(Fails(ParseFile("threads:\n"), kInvalid, "threads: expected one value"));
  EXPECT_TRUE(Fails(ParseFile("cpus: 1\n"), kInvalid, "cpus: expected a list"));
  EXPECT_TRUE(Fails(ParseFile("cpus: [[1]]\n"), kInvalid, "cpus: expected a list of plain values"));
  EXPECT_TRUE(Fails(ParseFile("log: info\n"), kInvalid, ".yaml:1: expected \"key: value\" lines"));
  EXPECT_TRUE(Fails(ParseFile("- threads\n"), kInvalid, "expected \"key: value\" lines"));
  EXPECT_TRUE(Fails(ParseFile("[a]: 1\n"), kInvalid, "plain word"));
  EXPECT_TRUE(Fails(ParseFile("threads: 1\n---\nthreads: 2\n"), kInvalid, "2 YAML documents"));
  EXPECT_TRUE(Fails(ParseFile("threads: 1\n  bad: [\n"), kInvalid, ".yaml:2"));
  EXPECT_TRUE(Fails(ParseFile("log: &l {log: *l}\n"), kInvalid, "unknown key log.log"));
  EXPECT_FALSE(ParseFile(std::string(100000, '[')).ok());
  EXPECT_FALSE(ParseFile(std::string(2 << 20, '#')).ok());
}

TEST_F(OptionsTest, NameAFileThatIsNotThere) {
  EXPECT_TRUE(Fails(Parse({"--config", "/nowhere/x.yaml"}), kInvalid, "/nowhere/x.yaml"));
  EXPECT_TRUE(Fails(Parse({"--config", "/"}), kInvalid, "\"/\""));
}

TEST_F(OptionsTest, AnswerWithTheProgramsNameAndVersion) {
  ::testing::internal::CaptureStdout();
  const auto outcome = Parse({"--version"});
  const std::string answer = ::testing::internal::GetCapturedStdout();
  ASSERT_OK(outcome);
  EXPECT_EQ(*outcome, Parsed::kAnswered);
  EXPECT_THAT(answer, ::testing::MatchesRegex("baton-test [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST_F(OptionsTest, ShowHelpWithEveryOptionItsDefaultAndItsHelp) {
  ::testing::internal::CaptureStdout();
  const auto outcome = Parse({"--threads", "0", "--help"});
  const std::string help = ::testing::internal::GetCapturedStdout();
  ASSERT_OK(outcome);
  EXPECT_EQ(*outcome, Parsed::kAnswered);
  for (const char* text :
       {"Tests options.", "--config FILE", "--listen TEXT", "host:port for gRPC (default: 127.0.0.1:1)",
        "--threads INT", "(default: 4)", "--peer-timeout DURATION", "(default: 3s)", "--pool SIZE", "(default: 512MiB)",
        "--log.level debug|info", "(default: info)", "--worker TEXT,...", "workers (default: this one)\n",
        "--cpus INT,...", "(default: 0,1)"}) {
    EXPECT_THAT(help, HasSubstr(text));
  }
}

}  // namespace
}  // namespace baton
