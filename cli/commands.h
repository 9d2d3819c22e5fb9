// The subcommands of `baton`. Each function adds one to the parser, with its flags, and hands over, when the user chose
// it, what runs it: a function that returns the exit code.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "cli/console.h"

namespace CLI {
class App;
}

namespace baton {

using Command = std::function<int()>;

// `console` and `chosen` must outlive the parse and the run.
void AddGenerateCommand(CLI::App& app, const Console& console, Command* chosen);
void AddChatCommand(CLI::App& app, const Console& console, Command* chosen);
void AddStatusCommand(CLI::App& app, const Console& console, Command* chosen);
void AddBenchCommand(CLI::App& app, const Console& console, Command* chosen);
// `bench engine`, below `bench`.
void AddBenchEngineCommand(CLI::App& bench, const Console& console, Command* chosen);
void AddTokenizeCommand(CLI::App& app, const Console& console, Command* chosen);
void AddRenderCommand(CLI::App& app, const Console& console, Command* chosen);
void AddPerplexityCommand(CLI::App& app, const Console& console, Command* chosen);
void AddModelsCommand(CLI::App& app, const Console& console, Command* chosen);
void AddQuantizeCommand(CLI::App& app, const Console& console, Command* chosen);

// Says on stderr what went wrong with `command`, unless it was an interrupt; the exit code for it: `code`, or that of
// an interrupt.
int Report(const Console& console, const char* command, const absl::Status& status, ExitCode code = kExitError);

// Parses the command line and runs it. The exit code: 0, 1 on an error, 2 on a usage error, 130 when interrupted.
int RunBaton(int argc, const char* const* argv, const Console& console);

}  // namespace baton
