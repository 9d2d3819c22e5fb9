// SPDX-License-Identifier: Apache-2.0
// The `baton` program and the demo against real processes.
#include <gmock/gmock.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cluster_test.h"
#include "common/steady_time.h"
#include "tests/files.h"
#include "tests/temp_folder.h"

namespace baton::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using std::string_literals::operator""s;

// Both sides of a pseudo-terminal.
class Terminal {
 public:
  Terminal() { EXPECT_EQ(openpty(&keyboard_, &screen_, nullptr, nullptr, nullptr), 0); }
  ~Terminal() {
    close(keyboard_);
    close(screen_);
  }
  int fd() const { return screen_; }
  void Type(const std::string& keys) const {
    EXPECT_EQ(write(keyboard_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }

  // Waits until the screen shows `text` after what earlier waits found.
  bool WaitFor(const std::string& text) {
    const SteadyTime deadline = SteadyTime::Now() + kPatience;
    size_t at = 0;
    while ((at = shown_.find(text)) == std::string::npos) {
      pollfd readable = {keyboard_, POLLIN, 0};
      if (SteadyTime::Now() >= deadline) return false;
      if (poll(&readable, 1, 100) <= 0) continue;
      char piece[256];
      const ssize_t count = read(keyboard_, piece, sizeof(piece));
      if (count <= 0) return false;
      shown_.append(piece, static_cast<size_t>(count));
    }
    shown_.erase(0, at + text.size());
    return true;
  }

 private:
  int keyboard_ = -1;
  int screen_ = -1;
  std::string shown_;
};

class CommandLineTest : public ClusterTest {
 protected:
  static void SetUpTestSuite() { StartCluster({.workers = {Prefill("p0"), Decode("d0")}}); }

  CommandLineTest() : output_file_(::testing::TempDir() + absl::StrCat("baton-cli-", getpid(), ".out")) {
    std::filesystem::remove(output_file_);
  }
  ~CommandLineTest() override { std::filesystem::remove(output_file_); }

  // Starts a program whose stdout and stderr go to one file.
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

  std::string Output() const { return ReadFile(output_file_); }

  bool WaitForOutput(const std::string& text) const {
    const SteadyTime deadline = SteadyTime::Now() + kPatience;
    while (Output().find(text) == std::string::npos) {
      if (SteadyTime::Now() >= deadline) return false;
      absl::SleepFor(absl::Milliseconds(10));
    }
    return true;
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
  const SteadyTime deadline = SteadyTime::Now() + kPatience;
  while (Output().empty() && SteadyTime::Now() < deadline) absl::SleepFor(absl::Milliseconds(2));
  ASSERT_OK(baton->Signal(SIGINT));
  EXPECT_EQ(ExitCode(*baton), 130);
  EXPECT_OK(cluster_->WaitIdle());
}

TEST_F(CommandLineTest, AChatOnATerminalEditsLinesAndCtrlCClearsThem) {
  Terminal terminal;
  // The answers go to the output file, the prompts and the line to the terminal.
  const auto chat = Start("/usr/bin/setsid",
                          {"--ctty", "/bin/sh", "-c", "exec 2>&0; exec \"$@\"", "sh", BinaryFolder() / "baton", "chat",
                           "--max-tokens=12", "--temperature=0", "--target=" + cluster_->target()},
                          {}, terminal.fd());
  ASSERT_TRUE(terminal.WaitFor("> "));
  terminal.Type("What does Baton do?\n");
  ASSERT_TRUE(terminal.WaitFor("What does Baton do?"));
  ASSERT_TRUE(WaitForOutput("\n"));
  ASSERT_TRUE(terminal.WaitFor("> "));
  terminal.Type("forget this\x03");
  ASSERT_TRUE(terminal.WaitFor("^C"));
  ASSERT_TRUE(terminal.WaitFor("> "));
  terminal.Type("\x1b[A\n");  // arrow up
  ASSERT_TRUE(terminal.WaitFor("What does Baton do?"));
  ASSERT_TRUE(terminal.WaitFor("> "));
  // A key typed before the editor has set the terminal up is lost.
  const SteadyTime deadline = SteadyTime::Now() + kPatience;
  while (chat->running() && SteadyTime::Now() < deadline) {
    terminal.Type("\x04");
    absl::SleepFor(absl::Milliseconds(20));
  }
  EXPECT_EQ(ExitCode(*chat), 0);
  const std::string answers = Output();
  EXPECT_EQ(std::count(answers.begin(), answers.end(), '\n'), 2) << answers;
}

TEST_F(CommandLineTest, AFullDiskIsTheErrorOfAnAnswer) {
  const auto baton =
      Start("/bin/sh", {"-c", "exec \"$@\" >/dev/full", "sh", BinaryFolder() / "baton", "generate", "--prompt=Once",
                        "--ignore-eos", "--max-tokens=1900", "--target=" + cluster_->target()});
  EXPECT_EQ(ExitCode(*baton), 1);
  EXPECT_EQ(Output(), "baton generate: the output cannot be written: No space left on device\n");
  EXPECT_OK(cluster_->WaitIdle());
}

TEST_F(CommandLineTest, ThePromptMayComeFromTheInput) {
  const auto baton = Start("/bin/sh", {"-c", "printf 'What does Baton do?' | \"$@\"", "sh", BinaryFolder() / "baton",
                                       "generate", "--chat=-", "--temperature=0", "--target=" + cluster_->target()});
  EXPECT_EQ(ExitCode(*baton), 0);
  EXPECT_THAT(Output(), HasSubstr("Baton is a server for disaggregated LLM inference."));
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
  // Tokens that share the first message have no gap before them.
  EXPECT_GT(json["itl_seconds"]["count"], 0);
  EXPECT_LE(json["itl_seconds"]["count"], 140);
}

TEST_F(CommandLineTest, BenchServeSaysWhyPromptsThatAreTooLongFail) {
  const auto baton = StartBaton({"bench", "serve", "--rate=100", "--requests=3", "--prompt-tokens=4000"});
  EXPECT_EQ(ExitCode(*baton), 1);
  EXPECT_THAT(Output(), HasSubstr("INVALID_ARGUMENT: 3, the first: "));
  EXPECT_THAT(Output(), HasSubstr("4000"));
  EXPECT_THAT(Output(), HasSubstr("no request succeeded"));
}

TEST_F(CommandLineTest, ATimeoutIsNamed) {
  const auto baton = StartBaton({"generate", "--prompt=x", "--max-tokens=1900", "--ignore-eos", "--timeout=1ms"});
  EXPECT_EQ(ExitCode(*baton), 1);
  EXPECT_THAT(Output(), HasSubstr("DEADLINE_EXCEEDED: not done within --timeout 1ms\n"));
}

TEST_F(CommandLineTest, WorkersRefuseOptionsThatDoNotFit) {
  const std::string model = "--model=" + (SourceFolder() / "models/demo-chat").string();
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"--model=/nope"}, "model /nope: does not exist, expected the folder or the GGUF file of a model\n"},
      {{"--model=" + (SourceFolder() / "docs").string()},
       "docs: has no config.json, expected the folder or the GGUF file of a model\n"},
      {{"--model=" + (SourceFolder() / "LICENSE").string(),
        "--secret-file=" + (SourceFolder() / ".clang-format").string()},
       "LICENSE: expected a GGUF file, which starts with \"GGUF\""},
      {{"--modle=x"}, "baton-prefill: unknown option --modle; did you mean --model?\n"},
      {{model, "--cpus=0,0"}, "cpus names CPU 0 twice"},
      {{model, "--cpus=0-1"},
       "--cpus: \"0-1\" is not valid, expected whole numbers from 0 to 2147483647, separated by"},
      {{model, "--chunk-tokens=1024"}, "chunk-tokens is 1024 and token-budget 512, expected"},
      {{model, "--token-budget=256", "--pages=1"}, "no secret"},  // smaller chunks go with it
      {{model, "--kv-tier-memory=1MiB", "--prefix-cache=off"},
       "kv-tier-memory is set and prefix-cache is off, expected"},
  };
  for (auto [arguments, words] : cases) {
    arguments.insert(arguments.end(), {"--listen=127.0.0.1:0", "--metrics-listen="});
    std::filesystem::remove(output_file_);
    const auto worker = Start(BinaryFolder() / "baton-prefill", arguments, {"BATON_SECRET="});
    EXPECT_EQ(ExitCode(*worker), 1) << words;
    EXPECT_THAT(Output(), HasSubstr(words));
  }
}

TEST_F(CommandLineTest, WorkersRefuseTiersThatCannotBe) {
  const TempFolder folder;
  const std::string path = folder.path().string();
  folder.Write("letter", "to a friend");
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"--role=decode", "--kv-tier-file=" + path + "/t"}, "kv-tier-file is set and role is decode, expected a worker"},
      {{"--role=both", "--kv-tier-file=" + path + "/no/t"},
       "kv-tier-file: " + path + "/no/t: cannot open: No such file or directory"},
      {{"--role=both", "--kv-tier-file=" + path + "/letter"},
       "kv-tier-file: " + path + "/letter: the file is no KV tier, expected"},
      {{"--role=both", "--kv-tier-file=" + path + "/t", "--kv-tier-file-size=8KiB"},
       "kv-tier-file: " + path + "/t: 8192 bytes hold no"},
      {{"--role=both", "--kv-tier-memory=1B"}, "kv-tier-memory: 1 bytes hold no KV page, expected at least"},
      {{"--role=both", "--kv-tier-memory=1TiB"}, "kv-tier-memory: 1099511627776 bytes"},
  };
  for (auto [arguments, words] : cases) {
    arguments.insert(arguments.begin(), {"--model=" + (SourceFolder() / "models/demo-chat").string(), "--pages=64",
                                         "--listen=127.0.0.1:0", "--metrics-listen="});
    std::filesystem::remove(output_file_);
    const auto worker = Start(BinaryFolder() / "baton-decode", arguments, {"BATON_SECRET=" + std::string(32, 's')});
    EXPECT_EQ(ExitCode(*worker), 1) << words;
    EXPECT_THAT(Output(), HasSubstr(words));
  }
}

TEST_F(CommandLineTest, ErrorsAreJsonIfTheLogIs) {
  const std::pair<std::string, std::vector<std::string>> cases[] = {{"baton-prefill", {"--model=/nope"}},
                                                                    {"baton-decode", {"--model=/nope"}},
                                                                    {"baton-router", {"--listen=nowhere"}}};
  for (auto [program, arguments] : cases) {
    arguments.insert(arguments.end(), {"--log.format=json", "--metrics-listen="});
    if (program == "baton-router") arguments.emplace_back("--workers=127.0.0.1:1");
    std::filesystem::remove(output_file_);
    EXPECT_EQ(ExitCode(*Start(BinaryFolder() / program, arguments, {"BATON_SECRET="})), 1);
    const auto line = nlohmann::json::parse(Output(), nullptr, /*allow_exceptions=*/false);
    ASSERT_TRUE(line.is_object()) << Output();
    EXPECT_EQ(line["program"], program);
    EXPECT_THAT(line["error"].get<std::string>(), HasSubstr("expected"));
  }
}

TEST_F(CommandLineTest, HelpShowsEachDefaultOnce) {
  const auto worker = Start(BinaryFolder() / "baton-decode", {"--help"});
  EXPECT_EQ(ExitCode(*worker), 0);
  EXPECT_THAT(Output(), HasSubstr("name of the model for clients (default: the name of the folder or file)\n"));
  EXPECT_THAT(Output(), HasSubstr("(required)\n"));
  EXPECT_THAT(Output(), Not(HasSubstr("(default: none)")));
}

TEST_F(CommandLineTest, EveryProgramTellsItsVersion) {
  for (const char* program : {"baton", "baton-router", "baton-prefill", "baton-decode"}) {
    std::filesystem::remove(output_file_);
    const auto process = Start(BinaryFolder() / program, {"--version"});
    EXPECT_EQ(ExitCode(*process), 0);
    EXPECT_THAT(Output(), MatchesRegex(absl::StrCat(program, " [0-9]+\\.[0-9]+\\.[0-9]+\n")));
  }
}

// The demo with the binaries of this build, on separate ports, with a separate folder for temporary files.
class DemoTest : public CommandLineTest {
 protected:
  DemoTest() : temporary_folder_(::testing::TempDir() + absl::StrCat("baton-demo-test-", getpid())) {
    std::filesystem::create_directory(temporary_folder_);
  }
  ~DemoTest() override {
    EXPECT_TRUE(std::filesystem::is_empty(temporary_folder_));
    std::filesystem::remove_all(temporary_folder_);
  }

  std::unique_ptr<Process> StartDemo(std::vector<std::string> arguments, const std::string& port, int input_fd = -1) {
    return StartDemoBy({"/bin/bash"}, std::move(arguments), port, input_fd);
  }
  // Runs the demo in `terminal`, so that ^C written to the other side reaches all of the demo's processes.
  std::unique_ptr<Process> StartDemoIn(int terminal, const std::string& port) {
    return StartDemoBy({"setsid", "--ctty", "/bin/bash"}, {}, port, terminal);
  }

  // Returns the ids of Baton's processes whose command line contains `needle`.
  static std::vector<pid_t> FindProcesses(const std::string& needle) {
    std::vector<pid_t> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      pid_t pid = 0;
      if (!absl::SimpleAtoi(entry.path().filename().string(), &pid)) continue;
      const std::string line = ReadFile(entry.path() / "cmdline");
      if (line.find("baton-") != std::string::npos && line.find(needle) != std::string::npos) found.push_back(pid);
    }
    return found;
  }
  static size_t CountProcesses(const std::string& needle) { return FindProcesses(needle).size(); }

  std::unique_ptr<Process> StartDemoBy(std::vector<std::string> command, std::vector<std::string> arguments,
                                       const std::string& port, int input_fd) {
    command.insert(command.begin(), {"TMPDIR=" + temporary_folder_, "BATON_BIN=" + BinaryFolder().string()});
    command.insert(command.end(), {SourceFolder() / "deploy/demo.sh", "--port", port});
    command.insert(command.end(), arguments.begin(), arguments.end());
    return Start("/usr/bin/env", std::move(command), {}, input_fd);
  }

  const std::string temporary_folder_;
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
  // By then no log has a name any more.
  ASSERT_TRUE(WaitForOutput("TTFT ")) << Output();
  EXPECT_EQ(CountProcesses("127.0.0.1:943"), 3);
  demo->Kill();
  const SteadyTime deadline = SteadyTime::Now() + kPatience;
  while (CountProcesses("127.0.0.1:943") > 0 && SteadyTime::Now() < deadline) absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(CountProcesses("127.0.0.1:943"), 0);
  close(input[0]);
  close(input[1]);
}

TEST_F(DemoTest, CtrlCAtThePromptEndsEverything) {
  const Terminal terminal;
  const auto demo = StartDemoIn(terminal.fd(), "9460");
  ASSERT_TRUE(WaitForOutput("prompt (Ctrl-C ends): ")) << Output();
  EXPECT_EQ(CountProcesses("127.0.0.1:946"), 3);
  terminal.Type("\x03");
  EXPECT_EQ(ExitCode(*demo), 130);
  EXPECT_EQ(CountProcesses("127.0.0.1:946"), 0);
}

TEST_F(DemoTest, CtrlCInAnAnswerEndsEverything) {
  const Terminal terminal;
  const auto demo = StartDemoIn(terminal.fd(), "9470");
  ASSERT_TRUE(WaitForOutput("prompt (Ctrl-C ends): ")) << Output();
  // An answer that does not come.
  const std::vector<pid_t> routers = FindProcesses("baton-router\0--listen=127.0.0.1:9470"s);
  ASSERT_EQ(routers.size(), 1);
  ASSERT_EQ(kill(routers[0], SIGSTOP), 0);
  terminal.Type("Why?\n");
  ASSERT_TRUE(WaitForOutput("> Why?")) << Output();
  terminal.Type("\x03");
  ASSERT_TRUE(WaitForOutput("> Why?\n\n")) << Output();
  EXPECT_EQ(kill(routers[0], SIGCONT), 0);
  EXPECT_EQ(ExitCode(*demo), 130);
  EXPECT_THAT(Output(), Not(HasSubstr("baton generate: ")));
  EXPECT_EQ(CountProcesses("127.0.0.1:947"), 0);
}

TEST_F(DemoTest, SigtermDoesNotWaitForTheAnswer) {
  int input[2];
  ASSERT_EQ(pipe(input), 0);
  const auto demo = StartDemo({}, "9480", input[0]);
  ASSERT_TRUE(WaitForOutput("TTFT ")) << Output();
  const std::vector<pid_t> routers = FindProcesses("baton-router\0--listen=127.0.0.1:9480"s);
  ASSERT_EQ(routers.size(), 1);
  ASSERT_EQ(kill(routers[0], SIGSTOP), 0);
  ASSERT_EQ(write(input[1], "Why?\n", 5), 5);
  ASSERT_TRUE(WaitForOutput("> Why?")) << Output();
  ASSERT_OK(demo->Signal(SIGTERM));
  EXPECT_EQ(ExitCode(*demo), 143);
  EXPECT_THAT(Output(), Not(HasSubstr("baton generate: ")));  // it would give the router up after seconds
  EXPECT_EQ(CountProcesses("127.0.0.1:948"), 0);
  close(input[0]);
  close(input[1]);
}

TEST_F(DemoTest, SigtermEndsItWhileItWaitsForAPrompt) {
  int input[2];
  ASSERT_EQ(pipe(input), 0);
  const auto demo = StartDemo({}, "9490", input[0]);
  ASSERT_TRUE(WaitForOutput("TTFT ")) << Output();
  ASSERT_OK(demo->Signal(SIGTERM));
  EXPECT_EQ(ExitCode(*demo), 143);
  EXPECT_EQ(CountProcesses("127.0.0.1:949"), 0);
  close(input[0]);
  close(input[1]);
}

TEST_F(DemoTest, AModelFolderThatIsNoneIsNamed) {
  const auto demo = StartDemo({"--once", "--model", "/nope"}, "9500");
  EXPECT_EQ(ExitCode(*demo), 1);
  EXPECT_THAT(Output(), HasSubstr("--model /nope: there is no such folder or file"));
  const std::string no_model = SourceFolder() / "deploy";
  const auto other = StartDemo({"--once", "--model", no_model}, "9500");
  EXPECT_EQ(ExitCode(*other), 1);
  EXPECT_THAT(Output(), HasSubstr(no_model + " is not a model's folder: it has no config.json"));
  const std::string no_gguf = SourceFolder() / "README.md";
  const auto third = StartDemo({"--once", "--model", no_gguf}, "9500");
  EXPECT_EQ(ExitCode(*third), 1);
  EXPECT_THAT(Output(), HasSubstr(no_gguf + " is not a GGUF file"));
}

TEST_F(DemoTest, AWorkerThatEndsAtTheStartIsShownWithItsReason) {
  const std::filesystem::path model = ::testing::TempDir() + absl::StrCat("baton-damaged-model-", getpid());
  std::filesystem::create_directory(model);
  for (const auto& file : std::filesystem::directory_iterator(SourceFolder() / "models/demo-chat")) {
    std::filesystem::create_symlink(file.path(), model / file.path().filename());
  }
  std::filesystem::remove(model / "tokenizer.json");
  std::ofstream(model / "tokenizer.json") << "{";

  const auto demo = StartDemo({"--once", "--model", model}, "9510");
  EXPECT_EQ(ExitCode(*demo), 1);
  // Either worker may be the first.
  EXPECT_THAT(Output(), ContainsRegex("    baton-(prefill|decode): " + model.string() + ".*tokenizer.json"));
  EXPECT_THAT(Output(), ContainsRegex("error: the (prefill|decode) process ended before it was ready"));
  EXPECT_EQ(CountProcesses("127.0.0.1:951"), 0);
  std::filesystem::remove_all(model);
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
