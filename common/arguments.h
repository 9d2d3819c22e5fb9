// SPDX-License-Identifier: Apache-2.0
// The parts of a command line that all programs share: CLI11's order of arguments, and the error of an unknown option.
#pragma once

#include <string>
#include <vector>

namespace baton {

// Returns the arguments after the program's name, last first. "--name=" becomes "--name" and an empty value, because
// CLI11 alone would take the next argument for the value.
std::vector<std::string> ReversedArguments(int argc, const char* const* argv);

// Says that `argument`, which starts with a dash, names none of the `known` options, given without dashes.
std::string UnknownOption(const std::string& argument, const std::vector<std::string>& known);

}  // namespace baton
