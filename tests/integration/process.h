// A child process with its output in a file.
//
// Not thread-safe. It dies with the thread that started it (PR_SET_PDEATHSIG): start it from the test's main thread, so
// that no test leaves a process behind, whatever ends it.
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
  std::vector<std::string> environment;  // "NAME=value", beside the test's own
  std::string log_file;                  // stdout and stderr, appended
  int input_fd = -1;                     // its stdin; -1: empty
  int namespace_fd = -1;                 // of the network it is in (virtual_network.h); -1: the test's
};

class Process {
 public:
  explicit Process(ProcessSpec spec) : spec_(std::move(spec)) {}
  ~Process();  // kills it
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Starts it, or starts it again after it ended.
  absl::Status Start();
  // INTERNAL when it is not running.
  absl::Status Signal(int signal);
  // The wait status (see waitpid), or DEADLINE_EXCEEDED while it still runs.
  absl::StatusOr<int> Wait(absl::Duration timeout);
  // SIGKILL, and waits for its end.
  void Kill();

  bool running();
  pid_t pid() const { return pid_; }
  const std::string& name() const { return spec_.name; }
  // The last `bytes` of its output.
  std::string Log(size_t bytes = 4096) const;

 private:
  bool Reap(int flags);

  const ProcessSpec spec_;
  pid_t pid_ = -1;  // -1: not running
  int wait_status_ = 0;
};

}  // namespace baton::testing
