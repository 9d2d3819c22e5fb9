// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include "cli/commands/commands.h"

namespace baton {

void AddModelsCommand(CLI::App& app, const Console& console, Command* chosen) {
  CLI::App& models = *app.add_subcommand("models", "Makes models and describes them, without a router.");
  models.require_subcommand(1);
  AddModelsInspectCommand(models, console, chosen);
  AddModelsMakeCommand(models, console, chosen);
}

}  // namespace baton
