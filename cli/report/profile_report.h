// SPDX-License-Identifier: Apache-2.0
// The output of `bench engine --profile`.
#pragma once

#include <string>

#include "engine/formats/step_profile.h"

namespace baton {

// Returns the fitted cost, and for each step the measured time and the error of the fit.
std::string ToTable(const StepProfile& profile);
// Returns one line without its newline: the cost, and how well the cost fits.
std::string ToJsonLine(const StepProfile& profile);

}  // namespace baton
