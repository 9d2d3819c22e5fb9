// SPDX-License-Identifier: Apache-2.0
// Compares results of `baton bench serve --json`: two sets of runs, metric by metric. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace baton {

struct CompareInput {
  std::string name;  // of the file, for the table and errors
  std::string text;  // a JSON object per line: runs, and for a search also its result
};

// Returns a table: each metric's mean over the runs with the runs' range, the ratio B/A, and whether the ranges are
// apart, which needs two runs on each side. Settings in which the results differ stand before the table.
// INVALID_ARGUMENT names the file and the line, and says what was expected.
absl::StatusOr<std::string> CompareResults(const CompareInput& a, const CompareInput& b);

}  // namespace baton
