// SPDX-License-Identifier: Apache-2.0
// The `baton` command line as a function, so that tests can run it without a process.
#pragma once

#include "cli/console/console.h"

namespace baton {

// Parses the command line and runs the command. Returns an ExitCode.
int RunBaton(int argc, const char* const* argv, const Console& console);

}  // namespace baton
