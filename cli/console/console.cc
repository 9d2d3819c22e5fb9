#include "cli/console/console.h"

#include "cli/console/interrupt.h"

namespace baton {

int Report(const Console& console, const char* command, const absl::Status& status, ExitCode code) {
  if (console.interrupt->triggered()) return kExitInterrupted;
  *console.err << "baton " << command << ": " << status.message() << std::endl;
  return code;
}

}  // namespace baton
