// SPDX-License-Identifier: Apache-2.0
// The subcommands of `baton`. Each function adds one subcommand with its flags to the parser. When the user chose the
// subcommand, parsing sets `chosen` to the function that runs it and returns the exit code.
#pragma once

#include <functional>

#include "cli/console/console.h"

namespace CLI {
class App;
}

namespace baton {

using Command = std::function<int()>;

// `console` and `chosen` must outlive the parse and the run.
void AddGenerateCommand(CLI::App& app, const Console& console, Command* chosen);
void AddChatCommand(CLI::App& app, const Console& console, Command* chosen);
void AddStatusCommand(CLI::App& app, const Console& console, Command* chosen);
void AddTokenizeCommand(CLI::App& app, const Console& console, Command* chosen);
void AddRenderCommand(CLI::App& app, const Console& console, Command* chosen);
void AddPerplexityCommand(CLI::App& app, const Console& console, Command* chosen);
void AddQuantizeCommand(CLI::App& app, const Console& console, Command* chosen);

// `bench`, with `bench engine` and `bench serve` below it.
void AddBenchCommand(CLI::App& app, const Console& console, Command* chosen);
void AddBenchEngineCommand(CLI::App& bench, const Console& console, Command* chosen);
void AddBenchServeCommand(CLI::App& bench, const Console& console, Command* chosen);

// `models`, with `models inspect` and `models make` below it.
void AddModelsCommand(CLI::App& app, const Console& console, Command* chosen);
void AddModelsInspectCommand(CLI::App& models, const Console& console, Command* chosen);
void AddModelsMakeCommand(CLI::App& models, const Console& console, Command* chosen);

}  // namespace baton
