// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include "cli/commands/commands.h"

namespace baton {

void AddBenchCommand(CLI::App& app, const Console& console, Command* chosen) {
  CLI::App& bench = *app.add_subcommand("bench", "Measures a running service, or the engine alone.");
  bench.require_subcommand(1);
  AddBenchEngineCommand(bench, console, chosen);
  AddBenchServeCommand(bench, console, chosen);
}

}  // namespace baton
