// SPDX-License-Identifier: Apache-2.0
#include "process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/steady_time.h"
#include "virtual_network.h"

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace baton::testing {
namespace {

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::string ErrorText(int error) { return std::generic_category().message(error); }

}  // namespace

Process::~Process() { Kill(); }

absl::Status Process::Start() {
  if (running()) return absl::FailedPreconditionError(absl::StrCat(spec_.name, " runs already"));
  // Prepares all arguments before the fork: the child of a process with threads may only make system calls.
  std::vector<std::string> arguments = spec_.arguments;
  arguments.insert(arguments.begin(), spec_.binary);
  std::vector<std::string> environment = spec_.environment;
  for (char** variable = environ; *variable != nullptr; ++variable) environment.emplace_back(*variable);
  const std::vector<char*> argv = Pointers(arguments);
  const std::vector<char*> envp = Pointers(environment);
  const int log = open(spec_.log_file.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0) return absl::InternalError(absl::StrCat(spec_.log_file, ": ", ErrorText(errno)));

  const int empty = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int input = spec_.input_fd >= 0 ? spec_.input_fd : empty;

  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    dup2(input, STDIN_FILENO);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    if (spec_.namespace_fd >= 0 && !EnterNetwork(spec_.namespace_fd)) {
      constexpr char kWhy[] = "cannot enter the network namespace, or mount its /sys\n";
      [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kWhy, sizeof(kWhy) - 1);
      _exit(127);
    }
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  close(empty);
  close(log);
  if (child < 0) return absl::InternalError(absl::StrCat("fork: ", ErrorText(errno)));
  pid_ = child;
  return absl::OkStatus();
}

absl::Status Process::Signal(int signal) {
  if (!running()) return absl::InternalError(absl::StrCat(spec_.name, " does not run; its output ends:\n", Log()));
  if (kill(pid_, signal) != 0) return absl::InternalError(absl::StrCat("kill ", spec_.name, ": ", ErrorText(errno)));
  return absl::OkStatus();
}

absl::StatusOr<int> Process::Wait(absl::Duration timeout) {
  const SteadyTime deadline = SteadyTime::Now() + timeout;
  while (running()) {
    if (SteadyTime::Now() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat(spec_.name, " still runs after ", absl::FormatDuration(timeout)));
    }
    absl::SleepFor(absl::Milliseconds(5));
  }
  return wait_status_;
}

void Process::Kill() {
  if (!running()) return;
  kill(pid_, SIGKILL);
  Reap(0);
}

bool Process::running() { return pid_ > 0 && !Reap(WNOHANG); }

bool Process::Reap(int flags) {
  int status = 0;
  pid_t reaped = 0;
  do {
    reaped = waitpid(pid_, &status, flags);
  } while (reaped < 0 && errno == EINTR);
  if (reaped != pid_) return false;
  pid_ = -1;
  wait_status_ = status;
  return true;
}

std::string Process::Log(size_t bytes) const {
  std::ifstream file(spec_.log_file, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  return text.substr(text.size() - std::min(bytes, text.size()));
}

}  // namespace baton::testing
