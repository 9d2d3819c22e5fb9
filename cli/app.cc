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
#include "common/program_description.h"
#include "common/strings.h"

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

// Appends the long names of a command's options that --help shows, without dashes. A group of options is a child
// without a name.
void AppendOptionNames(const CLI::App& command, std::vector<std::string>* names) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;
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
    std::vector<std::string> known;
    AppendOptionNames(command, &known);
    return UnknownOption(argument, known);
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
  AddDescribeFlag(app);
  app.require_subcommand(1);
  Command chosen;
  const auto add = [&](CLI::App& parent, const char* name, const char* help,
                       Command (*set_up)(CLI::App&, const Console&)) {
    CLI::App& command = *parent.add_subcommand(name, help);
    command.callback([&chosen, run = set_up(command, console)] { chosen = run; });
  };
  const auto add_group = [&app](const char* name, const char* help) -> CLI::App& {
    CLI::App& group = *app.add_subcommand(name, help);
    group.require_subcommand(1);
    return group;
  };
  add(app, "generate", "Sends one prompt and streams the answer to stdout.", &GenerateCommand);
  add(app, "chat", "Holds a conversation: one line per turn, with the history of all turns.", &ChatCommand);
  add(app, "doctor", "Examines a deployment, and says what to change.", &DoctorCommand);
  add(app, "verify", "Proves that all pairs of workers give the same answers, bit by bit.", &VerifyCommand);
  add(app, "trace", "Shows the stages of a recent request on a timeline.", &TraceCommand);
  add(app, "status", "Shows the router's workers: state, load, pages, and the pairs.", &StatusCommand);
  CLI::App& admin = add_group("admin", "Lists the router's workers, and changes what they do.");
  add(admin, "workers", "Lists workers with role, state and load.", &AdminWorkersCommand);
  add(admin, "role", "Changes the role of a worker at run time, without cutting a stream.", &AdminRoleCommand);
  CLI::App& bench = add_group("bench", "Measures a running service, or the engine alone.");
  add(bench, "engine",
      "Measures the engine alone, in this process: speed of prefill and decode, and the parts of a step.",
      &BenchEngineCommand);
  add(bench, "serve", "Sends requests to a server and reports percentiles of TTFT, TPOT, ITL and end-to-end time.",
      &BenchServeCommand);
  add(bench, "compare", "Compares two results of bench serve --json, metric by metric.", &BenchCompareCommand);
  add(app, "plan", "Simulates deployments: what each can carry, and which is the cheapest for a rate.", &PlanCommand);
  add(app, "tokenize", "Shows the tokens of a text, or the text of tokens, without a router.", &TokenizeCommand);
  add(app, "render", "Shows the prompt that a model's chat template makes of a conversation, without a router.",
      &RenderCommand);
  add(app, "perplexity", "Measures how well a model predicts a text, for instance after quantization.",
      &PerplexityCommand);
  CLI::App& models = add_group("models", "Makes models and describes them, without a router.");
  add(models, "inspect", "Describes a model, and how many tokens its KV cache holds in how much memory.",
      &ModelsInspectCommand);
  add(models, "make", "Makes a model of random weights with a usable tokenizer.", &ModelsMakeCommand);
  add(app, "quantize", "Writes a model with its matrices in blocks of 8 or 4 bits, without a router.",
      &QuantizeCommand);
  try {
    app.parse(ReversedArguments(argc, argv));
  } catch (const CLI::ParseError& error) {
    return FinishOutput(console, "baton", ReportParseError(app, error, console));
  }
  const std::string program = PathOf(ReachedCommands(app));
  return FinishOutput(console, program, Report(console, program, chosen()));
}

}  // namespace baton
