#include "cli/app.h"

#include <CLI/CLI.hpp>

#include "cli/commands/commands.h"
#include "common/arguments.h"

namespace baton {

int RunBaton(int argc, const char* const* argv, const Console& console) {
  CLI::App app("Talks to a Baton router, and looks after models.", "baton");
  app.set_version_flag("--version", BATON_VERSION);
  app.require_subcommand(1);
  Command chosen;
  AddGenerateCommand(app, console, &chosen);
  AddChatCommand(app, console, &chosen);
  AddStatusCommand(app, console, &chosen);
  AddBenchCommand(app, console, &chosen);
  AddTokenizeCommand(app, console, &chosen);
  AddRenderCommand(app, console, &chosen);
  AddPerplexityCommand(app, console, &chosen);
  AddModelsCommand(app, console, &chosen);
  AddQuantizeCommand(app, console, &chosen);
  try {
    app.parse(ReversedArguments(argc, argv));
  } catch (const CLI::ParseError& error) {
    return app.exit(error, *console.out, *console.err) == 0 ? kExitOk : kExitUsage;
  }
  return chosen();
}

}  // namespace baton
