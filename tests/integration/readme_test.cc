// SPDX-License-Identifier: Apache-2.0
// The Python client of README.md: its commands and its program, as README.md has them, against real processes.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "cluster_test.h"
#include "tests/files.h"
#include "tests/temp_folder.h"

namespace baton::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kDefaultAddress[] = "127.0.0.1:50051";

// Returns the text between `from` and the next `to`; empty without one of the two.
std::string Between(const std::string& text, const std::string& from, const std::string& to) {
  const size_t start = text.find(from);
  if (start == std::string::npos) return "";
  const size_t end = text.find(to, start + from.size());
  if (end == std::string::npos) return "";
  return text.substr(start + from.size(), end - start - from.size());
}

std::string PythonPart() { return Between(ReadFile(SourceFolder() / "README.md"), "\nIn Python, ", "\nWith grpcurl"); }

// Returns the first block of code in `language`.
std::string Block(const std::string& part, const std::string& language) {
  return Between(part, "\n```" + language + "\n", "```\n");
}

class ReadmeTest : public ClusterTest {
 protected:
  static void SetUpTestSuite() { StartCluster({.workers = {Prefill("p0"), Decode("d0")}}); }

  // The folder stands for the repository's root, from which README.md's commands run.
  void SetUp() override {
    ClusterTest::SetUp();
    std::filesystem::create_directory_symlink(SourceFolder() / "proto", folder_.path() / "proto");
  }

  // Runs one of Debian's programs in the folder and returns its stdout. If the program fails, so does the test.
  std::string Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--ignore-environment", "--chdir=" + folder_.path().string(),
                                         "PATH=/usr/bin:/bin", "/bin/sh", "-c", "exec \"$@\" >output", "sh"});
    Process process({.name = "env",
                     .binary = "/usr/bin/env",
                     .arguments = std::move(arguments),
                     .environment = {},
                     .log_file = folder_.path() / "errors"});
    EXPECT_OK(process.Start());
    const absl::StatusOr<int> status = process.Wait(kPatience);
    EXPECT_OK(status);
    EXPECT_TRUE(status.ok() && WIFEXITED(*status) && WEXITSTATUS(*status) == 0) << process.Log();
    return ReadFile(folder_.path() / "output");
  }

  const TempFolder folder_;
};

TEST_F(ReadmeTest, ThePythonProgramPrintsTheAnswer) {
  const std::string commands = Block(PythonPart(), "sh");
  const std::vector<std::string> program = absl::StrSplit(Block(PythonPart(), "python"), kDefaultAddress);
  ASSERT_THAT(commands, Not(IsEmpty()));
  ASSERT_THAT(program, SizeIs(2)) << "the program should name the router's address once";
  folder_.Write("commands.sh", commands);
  folder_.Write("program.py", program[0] + cluster_->target() + program[1]);

  Run({"sh", "-eu", "commands.sh"});
  const std::string answer = Run({"python3", "program.py"});

  v1::GenerateRequest request;
  v1::ChatMessage& message = *request.mutable_chat()->add_messages();
  message.set_role("user");
  message.set_content("What does Baton do?");
  request.mutable_sampling()->set_temperature(0);
  const Reply reply = Generate(request);
  ASSERT_TRUE(Succeeded(reply));
  EXPECT_THAT(reply.answer.text, Not(IsEmpty()));
  EXPECT_EQ(answer, reply.answer.text);
}

TEST_F(ReadmeTest, ThePythonProgramNamesTheRoutersDefaultAddress) {
  EXPECT_THAT(Run({BinaryFolder() / "baton-router", "--help"}), HasSubstr(kDefaultAddress));
}

// The test above runs with the packages of deploy/packages.txt: README.md names no other.
TEST_F(ReadmeTest, ThePackagesForPythonAreAmongThoseOfTheTests) {
  const std::vector<std::string> installed = absl::StrSplit(ReadFile(SourceFolder() / "deploy/packages.txt"), '\n');
  const std::vector<std::string> words = absl::StrSplit(Between(PythonPart(), "with Debian's", ":\n"), '`');
  ASSERT_GE(words.size(), 3) << "README.md should name packages";
  for (size_t i = 1; i < words.size(); i += 2) EXPECT_THAT(installed, Contains(words[i]));
}

}  // namespace
}  // namespace baton::testing
