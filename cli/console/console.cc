// SPDX-License-Identifier: Apache-2.0
#include "cli/console/console.h"

#include "cli/console/interrupt.h"

namespace baton {

int Report(const Console& console, const char* command, const absl::Status& status, ExitCode code) {
  if (console.interrupt->triggered()) return kExitInterrupted;
  if (!console.out->good()) return kExitError;
  *console.err << "baton " << command << ": " << status.message() << std::endl;
  return code;
}

int FinishOutput(const Console& console, const std::string& program, int code) {
  console.out->flush();
  const absl::Status written = console.out->status();
  if (written.ok() || code == kExitInterrupted) return code;
  *console.err << program << ": " << written.message() << std::endl;
  return kExitError;
}

}  // namespace baton
