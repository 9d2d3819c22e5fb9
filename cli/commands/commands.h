// SPDX-License-Identifier: Apache-2.0
// The subcommands of `baton`. Each function adds the flags of one subcommand to `command`, its parser, and returns the
// function that runs the subcommand with the parsed flags. `console` must outlive the run.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "cli/console/console.h"

namespace CLI {
class App;
}

namespace baton {

using Command = std::function<absl::Status()>;

Command GenerateCommand(CLI::App& command, const Console& console);
Command ChatCommand(CLI::App& command, const Console& console);
Command StatusCommand(CLI::App& command, const Console& console);
Command AdminWorkersCommand(CLI::App& command, const Console& console);
Command AdminRoleCommand(CLI::App& command, const Console& console);
Command DoctorCommand(CLI::App& command, const Console& console);
Command VerifyCommand(CLI::App& command, const Console& console);
Command TraceCommand(CLI::App& command, const Console& console);
Command BenchEngineCommand(CLI::App& command, const Console& console);
Command BenchCompareCommand(CLI::App& command, const Console& console);
Command BenchServeCommand(CLI::App& command, const Console& console);
Command TokenizeCommand(CLI::App& command, const Console& console);
Command RenderCommand(CLI::App& command, const Console& console);
Command PlanCommand(CLI::App& command, const Console& console);
Command PerplexityCommand(CLI::App& command, const Console& console);
Command ModelsInspectCommand(CLI::App& command, const Console& console);
Command ModelsMakeCommand(CLI::App& command, const Console& console);
Command QuantizeCommand(CLI::App& command, const Console& console);

}  // namespace baton
