// SPDX-License-Identifier: Apache-2.0
// A line about a load run under way.
#pragma once

#include <string>

#include "cli/load/run_progress.h"

namespace baton {

// Returns, for instance, "12 s: 40 of 100 sent, 31 done, 0 failed, 9 in flight, TTFT p50 41.2 ms, 812 tokens/s".
std::string ProgressLine(const RunProgress::Snapshot& snapshot);

}  // namespace baton
