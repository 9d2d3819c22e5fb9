// SPDX-License-Identifier: Apache-2.0
// The output of `baton plan`.
#pragma once

#include <string>
#include <vector>

#include "cli/plan/deployments.h"

namespace baton {

std::string ToTable(const plan::PlanQuery& query, const std::vector<plan::PlanRow>& rows);
// Returns one line without its newline. Times are in seconds.
std::string ToJson(const plan::PlanQuery& query, const std::vector<plan::PlanRow>& rows);

}  // namespace baton
