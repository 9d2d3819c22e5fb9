// The `baton` program and the demo against real processes.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cluster_test.h"
#include "tests/files.h"

namespace baton::testing {
namespace {

using ::testing::HasSubstr;

class CommandLineTest : public ClusterTest {
 protected:
  static void SetUpTestSuite() { StartCluster({.workers = {Prefill("p0"), Decode("d0")}}); }

  CommandLineTest() : output_file_(::testing::TempDir() + absl::StrCat("baton-cli-", getpid(), ".out")) {
    std::filesystem::remove(output_file_);
  }
  ~CommandLineTest() override { std::filesystem::remove(output_file_); }

  // A program whose output, both streams, goes to one file.
  std::unique_ptr<Process> Start(const std::string& binary, std::vector<std::string> arguments,
                                 std::vector<std::string> environment = {}, int input_fd = -1) {
    auto process = std::make_unique<Process>(ProcessSpec{.name = binary,
                                                         .binary = binary,
                                                         .arguments = std::move(arguments),
                                                         .environment = std::move(environment),
                                                         .log_file = output_file_,
                                                         .input_fd = input_fd});
    EXPECT_OK(process->Start());
    return process;
  }
  std::unique_ptr<Process> StartBaton(std::vector<std::string> arguments) {
    arguments.push_back("--target=" + cluster_->target());
    return Start(BinaryFolder() / "baton", std::move(arguments));
  }

  static int ExitCode(Process& process) {
    const absl::StatusOr<int> status = process.Wait(kPatience);
    EXPECT_OK(status);
    return status.ok() && WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
  }

  std::string Output() const {
    std::ifstream file(output_file_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const std::string output_file_;
};

TEST_F(CommandLineTest, GenerateStreamsASensibleAnswer) {
  const auto baton = StartBaton({"generate", "--chat", "What does Baton do?", "--temperature=0", "--summary"});
  EXPECT_EQ(ExitCode(*baton), 0);
  EXPECT_THAT(Output(), HasSubstr("Baton is a server for disaggregated LLM inference."));
  EXPECT_THAT(Output(), HasSubstr("of KV handed over by ucx:"));
  EXPECT_THAT(Output(), HasSubstr("p0 -> d0"));
}

TEST_F(CommandLineTest, CtrlCCancelsTheRequestAndExitsWith130) {
  const auto baton = StartBaton({"generate", "--prompt", "Once upon a time", "--max-tokens=1900", "--ignore-eos"});
  const absl::Time deadline = absl::Now() + kPatience;
  while (Output().empty() && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(2));
  ASSERT_OK(baton->Signal(SIGINT));
  EXPECT_EQ(ExitCode(*baton), 130);
  EXPECT_OK(cluster_->WaitIdle());
}

TEST_F(CommandLineTest, StatusShowsTheWorkersAsJson) {
  const auto baton = StartBaton({"status", "--json", "--wait=30s"});
  EXPECT_EQ(ExitCode(*baton), 0);
  const auto json = nlohmann::json::parse(Output(), nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(json.is_object()) << Output();
  EXPECT_EQ(json["ready"], true);
  EXPECT_EQ(json["workers"].size(), 2);
}

TEST_F(CommandLineTest, BenchServeMeasuresEveryRequest) {
  const auto baton =
      StartBaton({"bench", "serve", "--rate=40", "--requests=20", "--prompt-tokens=32", "--output-tokens=8", "--json"});
  EXPECT_EQ(ExitCode(*baton), 0);
  const auto json = nlohmann::json::parse(Output(), nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(json.is_object()) << Output();
  EXPECT_EQ(json["completed"], 20);
  EXPECT_EQ(json["itl_seconds"]["count"], 140);
}

// The demo with the binaries of this build, on ports of its own.
class DemoTest : public CommandLineTest {
 protected:
  std::unique_ptr<Process> StartDemo(std::vector<std::string> arguments, const std::string& port, int input_fd = -1) {
    arguments.insert(arguments.begin(), {SourceFolder() / "deploy/demo.sh", "--port", port});
    return Start("/bin/bash", std::move(arguments), {"BATON_BIN=" + BinaryFolder().string()}, input_fd);
  }
  // Baton's processes whose command line contains `needle`.
  static int CountProcesses(const std::string& needle) {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream file(entry.path() / "cmdline", std::ios::binary);
      const std::string line{std::istreambuf_iterator<char>(file), {}};
      if (line.find("baton-") != std::string::npos && line.find(needle) != std::string::npos) ++count;
    }
    return count;
  }
};

TEST_F(DemoTest, OnceStreamsAnAnswerAndLeavesNoProcess) {
  const auto demo = StartDemo({"--once", "--prompt", "What does Baton do?"}, "9410");
  EXPECT_EQ(ExitCode(*demo), 0);
  EXPECT_THAT(Output(), HasSubstr("Baton is a server for disaggregated LLM inference."));
  EXPECT_THAT(Output(), HasSubstr("TTFT "));
  EXPECT_THAT(Output(), HasSubstr("of KV handed over by ucx:"));
  EXPECT_EQ(CountProcesses("127.0.0.1:941"), 0);
}

TEST_F(DemoTest, APortInUseIsReportedAsSuch) {
  const std::string port = cluster_->target().substr(cluster_->target().find(':') + 1);
  const auto demo = StartDemo({"--once"}, port);
  EXPECT_EQ(ExitCode(*demo), 1);
  EXPECT_THAT(Output(), HasSubstr(absl::StrCat("port ", port, " is in use")));
}

TEST_F(DemoTest, KilledItLeavesNoProcessEither) {
  int input[2];
  ASSERT_EQ(pipe(input), 0);
  const auto demo = StartDemo({}, "9430", input[0]);  // waits for prompts that never come
  const absl::Time deadline = absl::Now() + kPatience;
  while (CountProcesses("127.0.0.1:943") < 3 && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(CountProcesses("127.0.0.1:943"), 3);
  demo->Kill();
  while (CountProcesses("127.0.0.1:943") > 0 && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(CountProcesses("127.0.0.1:943"), 0);
  close(input[0]);
  close(input[1]);
}

TEST_F(DemoTest, TakesMorePromptsUntilTheirEnd) {
  int input[2];
  ASSERT_EQ(pipe(input), 0);
  const std::string prompts = "What is prefill?\nWhat is decode?\n";
  ASSERT_EQ(write(input[1], prompts.data(), prompts.size()), static_cast<ssize_t>(prompts.size()));
  close(input[1]);
  const auto demo = StartDemo({"--prompt", "What does Baton do?"}, "9450", input[0]);
  EXPECT_EQ(ExitCode(*demo), 0);
  close(input[0]);
  EXPECT_THAT(Output(), HasSubstr("Baton is a server for disaggregated LLM inference."));
  EXPECT_THAT(Output(), HasSubstr("Prefill is the phase that reads the whole prompt in parallel"));
}

}  // namespace
}  // namespace baton::testing
