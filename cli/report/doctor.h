// SPDX-License-Identifier: Apache-2.0
// Examines a deployment by its router's status and by measured paths: what is wrong or slow, and what to change.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "baton/v1/inference.pb.h"
#include "cli/pairs/measure_paths.h"

namespace baton {

struct Finding {
  enum class Kind {
    kProblem,  // requests fail or cannot be served
    kWarning,  // works, and should be changed
    kFine,
  };
  Kind kind = Kind::kFine;
  std::string what;
  std::string advice;  // what to do; empty for kFine
};

// Returns the findings, problems first. `client_version` is that of this program.
std::vector<Finding> Examine(const v1::GetStatusResponse& status, std::string_view client_version,
                             const MeasuredPaths& measured = {});

// One line for each finding, and a line for its advice.
std::string ToText(const std::vector<Finding>& findings);

}  // namespace baton
