// SPDX-License-Identifier: Apache-2.0
// Runs transport_peer as a child process and reads what it prints.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "common/steady_time.h"
#include "recording_events.h"

namespace baton::testing {

class PeerProcess {
 public:
  explicit PeerProcess(const std::vector<std::string>& args) {
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    if (pipe2(in.data(), O_CLOEXEC) != 0 || pipe2(out.data(), O_CLOEXEC) != 0) return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    const std::string program = std::filesystem::read_symlink("/proc/self/exe").replace_filename("transport_peer");
    std::vector<std::string> words = {program};
    words.insert(words.end(), args.begin(), args.end());
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    if (posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv.data(), environ) != 0) pid_ = -1;
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    stdin_ = in[1];
    stdout_ = out[0];
  }
  ~PeerProcess() {
    Kill();
    close(stdout_);
  }
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  void Stop() { kill(pid_, SIGSTOP); }
  void Continue() { kill(pid_, SIGCONT); }
  void Kill() {
    if (stdin_ >= 0) close(stdin_);
    stdin_ = -1;
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    pid_ = -1;
  }
  // Lets it end in order; its exit status, or -1 if it was killed by a signal.
  int End() {
    close(stdin_);
    stdin_ = -1;
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  // Returns the unread output of the process after its end.
  std::string Rest() {
    while (WaitForLine("\n") != "?") {
    }
    return std::move(dropped_);
  }

  // The next line that starts with `prefix`, without it; earlier lines are dropped. "?" if none comes.
  std::string WaitForLine(std::string_view prefix) {
    const SteadyTime deadline = SteadyTime::Now() + kPatience;
    while (SteadyTime::Now() < deadline) {
      for (size_t end = text_.find('\n'); end != std::string::npos; end = text_.find('\n')) {
        const std::string line = text_.substr(0, end);
        text_.erase(0, end + 1);
        if (line.compare(0, prefix.size(), prefix) == 0) return line.substr(prefix.size());
        dropped_ += line + '\n';
      }
      pollfd poll_fd{.fd = stdout_, .events = POLLIN, .revents = 0};
      if (poll(&poll_fd, 1, 100) <= 0) continue;
      std::array<char, 4096> buffer;
      const ssize_t got = read(stdout_, buffer.data(), buffer.size());
      if (got <= 0) return "?";
      text_.append(buffer.data(), static_cast<size_t>(got));
    }
    return "?";
  }

 private:
  pid_t pid_ = -1;
  int stdin_ = -1;
  int stdout_ = -1;
  std::string text_;
  std::string dropped_;
};

}  // namespace baton::testing
