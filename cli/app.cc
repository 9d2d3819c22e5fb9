// SPDX-License-Identifier: Apache-2.0
#include "cli/app.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "cli/commands/commands.h"
#include "common/arguments.h"
#include "common/nearest_word.h"
#include "common/strings.h"
#include "common/version.h"

namespace baton {
namespace {

// Returns the parsed commands from `baton` down to the one that the user reached, such as baton, bench, serve.
std::vector<const CLI::App*> ReachedCommands(const CLI::App& app) {
  std::vector<const CLI::App*> reached = {&app};
  for (bool deeper = true; deeper;) {
    const std::vector<CLI::App*> next = reached.back()->get_subcommands();
    deeper = !next.empty();
    if (deeper) reached.push_back(next.front());
  }
  return reached;
}

std::string PathOf(const std::vector<const CLI::App*>& commands) {
  return absl::StrJoin(commands, " ",
                       [](std::string* out, const CLI::App* command) { out->append(command->get_name()); });
}

std::vector<const CLI::App*> Children(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App*) { return true; });
}

// Appends the long names of a command's options, without dashes. A group of options is a child without a name.
void AppendOptionNames(const CLI::App& command, std::vector<std::string>* names) {
  for (const CLI::Option* option : command.get_options()) {
    names->insert(names->end(), option->get_lnames().begin(), option->get_lnames().end());
  }
  for (const CLI::App* child : Children(command)) {
    if (child->get_name().empty()) AppendOptionNames(*child, names);
  }
}

std::vector<std::string> CommandNames(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* child : Children(command)) {
    if (!child->get_name().empty()) names.push_back(child->get_name());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Says what is wrong with `argument`, which `command` does not know.
std::string UnknownArgument(const CLI::App& command, const std::string& argument) {
  if (argument.size() > 1 && argument.starts_with("-")) {
    const std::string option = argument.substr(0, argument.find('='));
    std::vector<std::string> known;
    AppendOptionNames(command, &known);
    const size_t name = std::min(option.find_first_not_of('-'), option.size());
    return Concat("unknown option ", option, DidYouMean(option.substr(name), known, "--"));
  }
  const std::vector<std::string> commands = CommandNames(command);
  if (commands.empty()) return Concat("unexpected argument \"", argument, "\"");
  return Concat("unknown command \"", argument, "\"", DidYouMean(argument, commands, ""), "\nThe commands are ",
                absl::StrJoin(commands, ", "), ".");
}

// Says what is wrong with a command line that does not parse, and with which command: `commands` is cut down to it.
// CLI11's own words for unknown words name neither the word nor another.
std::string Explain(const CLI::ParseError& error, std::vector<const CLI::App*>* commands) {
  for (auto command = commands->begin(); command != commands->end(); ++command) {
    const std::vector<std::string> unknown = (*command)->remaining();
    if (unknown.empty()) continue;
    commands->erase(command + 1, commands->end());
    return UnknownArgument(*commands->back(), unknown.front());
  }
  const std::vector<std::string> names = CommandNames(*commands->back());
  if (!names.empty()) return Concat("expected a command: ", absl::StrJoin(names, ", "));
  return error.what();
}

int ReportParseError(const CLI::App& app, const CLI::ParseError& error, const Console& console) {
  if (error.get_exit_code() == 0) return app.exit(error, *console.out, *console.err);  // --help, --version
  std::vector<const CLI::App*> commands = ReachedCommands(app);
  const std::string problem = Explain(error, &commands);
  const std::string path = PathOf(commands);
  *console.err << path << ": " << problem << "\n`" << path << " --help` lists commands and options." << std::endl;
  return kExitUsage;
}

}  // namespace

int RunBaton(int argc, const char* const* argv, const Console& console) {
  CLI::App app("Sends requests to a Baton router, and works on models.", "baton");
  app.set_version_flag("--version", Concat("baton ", BatonVersion()), "Print the version and exit");
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
    return FinishOutput(console, "baton", ReportParseError(app, error, console));
  }
  return FinishOutput(console, PathOf(ReachedCommands(app)), chosen());
}

}  // namespace baton
