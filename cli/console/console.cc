// SPDX-License-Identifier: Apache-2.0
#include "cli/console/console.h"

#include "cli/console/interrupt.h"

namespace baton {
namespace {

constexpr char kUsage[] = "baton.usage";

}  // namespace

absl::Status UsageError(absl::Status status) {
  if (!status.ok()) status.SetPayload(kUsage, {});
  return status;
}

int Report(const Console& console, const std::string& program, const absl::Status& status) {
  if (status.ok()) return kExitOk;
  if (console.interrupt->triggered()) return kExitInterrupted;
  if (!console.out->good()) return kExitError;
  *console.err << program << ": " << status.message() << std::endl;
  return status.GetPayload(kUsage).has_value() ? kExitUsage : kExitError;
}

int FinishOutput(const Console& console, const std::string& program, int code) {
  console.out->flush();
  const absl::Status written = console.out->status();
  if (written.ok() || code == kExitInterrupted) return code;
  *console.err << program << ": " << written.message() << std::endl;
  return kExitError;
}

}  // namespace baton
