// SPDX-License-Identifier: Apache-2.0
// Examines the paths between workers: their transports, their measured speeds, and paths much slower than the others.
#pragma once

#include <string>
#include <vector>

#include "baton/v1/inference.pb.h"
#include "cli/pairs/measure_paths.h"
#include "cli/report/doctor.h"

namespace baton {

// `measured` may be empty: then the speeds are those that the router has measured within the last minute.
std::vector<Finding> ExaminePaths(const v1::GetStatusResponse& status, const MeasuredPaths& measured);

// Returns a table of the measured paths; empty if there is none.
std::string ToText(const MeasuredPaths& measured);

}  // namespace baton
