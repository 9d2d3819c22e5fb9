// SPDX-License-Identifier: Apache-2.0
// The command line as CLI11's parser takes it.
#pragma once

#include <string>
#include <vector>

namespace baton {

// Returns the arguments after the program's name, last first. "--name=" becomes "--name" and an empty value, because
// CLI11 alone would take the next argument for the value.
std::vector<std::string> ReversedArguments(int argc, const char* const* argv);

}  // namespace baton
