// SPDX-License-Identifier: Apache-2.0
#include "cli/report/progress_line.h"

#include "absl/strings/str_format.h"

namespace baton {

std::string ProgressLine(const RunProgress::Snapshot& snapshot) {
  const double seconds = absl::ToDoubleSeconds(snapshot.elapsed);
  std::string line = absl::StrFormat("%.0f s: %d of %d sent, %d done, %d failed, %d in flight", seconds, snapshot.sent,
                                     snapshot.planned, snapshot.done, snapshot.failed,
                                     snapshot.sent - snapshot.done - snapshot.failed);
  if (snapshot.ttft) absl::StrAppendFormat(&line, ", TTFT p50 %.1f ms", absl::ToDoubleMilliseconds(*snapshot.ttft));
  if (seconds > 0) absl::StrAppendFormat(&line, ", %.0f tokens/s", static_cast<double>(snapshot.tokens) / seconds);
  return line;
}

}  // namespace baton
