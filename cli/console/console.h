// SPDX-License-Identifier: Apache-2.0
// Where a command reads and writes: the process's own descriptors in main, pipes and files in tests. Owns nothing.
#pragma once

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/console/output_stream.h"

namespace baton {

class Interrupt;

struct Console {
  int input_fd;
  bool input_is_terminal;
  bool err_is_terminal;
  int screen_fd;  // the terminal that shows what the user types; -1: lines are not edited
  OutputStream* out;
  std::ostream* err;
  Interrupt* interrupt;
};

// The exit status of `baton`.
enum ExitCode : int { kExitOk = 0, kExitError = 1, kExitUsage = 2, kExitInterrupted = 130 };

// Marks an error in what the user typed: the exit status is kExitUsage, not kExitError.
absl::Status UsageError(absl::Status status);
template <typename T>
absl::StatusOr<T> UsageError(absl::StatusOr<T> result) {
  if (result.ok()) return result;
  return UsageError(result.status());
}

// Prints an error of `program`, such as "baton status", to stderr. Returns the exit status. After an interrupt, prints
// nothing and returns kExitInterrupted. When the output could not be written, prints nothing and returns kExitError:
// FinishOutput says so.
int Report(const Console& console, const std::string& program, const absl::Status& status);

// Flushes the output of `program`, which wants to exit with `code`. Returns `code`. When the output could not be
// written, says so on stderr and returns kExitError, or kExitInterrupted if `code` is that.
int FinishOutput(const Console& console, const std::string& program, int code);

}  // namespace baton
