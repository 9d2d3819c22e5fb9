// Where a command reads and writes: the process's own streams in main, pipes and strings in tests. Owns nothing.
#pragma once

#include <ostream>

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

}  // namespace baton
