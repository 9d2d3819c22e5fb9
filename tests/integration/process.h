// SPDX-License-Identifier: Apache-2.0
// A child process with its output in a file.
//
// Not thread-safe. The process dies with the thread that started the process (PR_SET_PDEATHSIG). Call Start on the main
// thread, so that no test leaves a process behind.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace baton::testing {

struct ProcessSpec {
  std::string name;
  std::string binary;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // "NAME=value", in addition to the test's environment
  std::string log_file;                  // for stdout and stderr, appended
  int input_fd = -1;                     // stdin; -1: empty
  int namespace_fd = -1;                 // the process's network (virtual_network.h); -1: the test's network
};

class Process {
 public:
  explicit Process(ProcessSpec spec) : spec_(std::move(spec)) {}
  ~Process();  // kills the process
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Starts the process, also again after an end.
  absl::Status Start();
  // Sends `signal`. INTERNAL: the process does not run.
  absl::Status Signal(int signal);
  // Waits for the end and returns the wait status (see waitpid). DEADLINE_EXCEEDED: the process still runs.
  absl::StatusOr<int> Wait(absl::Duration timeout);
  // Sends SIGKILL and waits for the end.
  void Kill();

  bool running();
  pid_t pid() const { return pid_; }
  const std::string& name() const { return spec_.name; }
  // Returns the last `bytes` of the output.
  std::string Log(size_t bytes = 4096) const;

 private:
  bool Reap(int flags);

  const ProcessSpec spec_;
  pid_t pid_ = -1;  // -1: not running
  int wait_status_ = 0;
};

}  // namespace baton::testing
