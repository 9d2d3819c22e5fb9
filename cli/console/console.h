// Where a command reads and writes: the process's own streams in main, pipes and strings in tests. Owns nothing.
#pragma once

#include <ostream>

#include "absl/status/status.h"

namespace baton {

class Interrupt;

struct Console {
  int input_fd;
  bool input_is_terminal;
  bool err_is_terminal;
  std::ostream* out;
  std::ostream* err;
  Interrupt* interrupt;
};

// What `baton` exits with.
enum ExitCode : int { kExitOk = 0, kExitError = 1, kExitUsage = 2, kExitInterrupted = 130 };

// Prints "baton <command>: <message>" to stderr and returns `code`. After an interrupt, prints nothing and returns
// kExitInterrupted.
int Report(const Console& console, const char* command, const absl::Status& status, ExitCode code = kExitError);

}  // namespace baton
