// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/commands/commands.h"
#include "cli/console/interrupt.h"
#include "cli/flags/engine_flags.h"
#include "cli/flags/flags.h"
#include "cli/report/engine_report.h"
#include "cli/report/profile_report.h"
#include "cli/tools/measure_profile.h"
#include "common/status_macros.h"

namespace baton {
namespace {

constexpr int kMaxTokens = 1 << 20;
constexpr int kMaxSequences = 1 << 12;

struct BenchEngineFlags {
  EngineBenchOptions options;
  std::string profile;
  ProfileOptions grid;
  bool json = false;
};

// Writes the profile, and prints how well its cost fits.
absl::Status RunProfile(const BenchEngineFlags& flags, const Console& console) {
  ProfileOptions grid = flags.grid;
  grid.model = flags.options.model;
  grid.engine = flags.options.engine;
  grid.sequences = flags.options.sequences;
  grid.repeats = flags.options.repeats;
  const auto interrupted = [&console] { return console.interrupt->triggered(); };
  BATON_ASSIGN_OR_RETURN(const StepProfile profile, MeasureProfile(grid, interrupted));
  BATON_RETURN_IF_ERROR(WriteStepProfile(profile, flags.profile));
  *console.out << (flags.json ? absl::StrCat(ToJsonLine(profile), "\n") : ToTable(profile)) << std::flush;
  return absl::OkStatus();
}

absl::Status RunBenchEngine(const BenchEngineFlags& flags, const Console& console) {
  if (!flags.profile.empty()) return RunProfile(flags, console);
  const auto interrupted = [&console] { return console.interrupt->triggered(); };
  BATON_ASSIGN_OR_RETURN(const EngineReport report, BenchEngine(flags.options, interrupted));
  *console.out << (flags.json ? absl::StrCat(ToJson(flags.options, report), "\n") : ToTable(flags.options, report))
               << std::flush;
  return absl::OkStatus();
}

}  // namespace

Command BenchEngineCommand(CLI::App& command, const Console& console) {
  const auto flags = std::make_shared<BenchEngineFlags>();
  EngineBenchOptions& options = flags->options;
  command.footer(
      "\"% of limit\" compares with the most that this machine reads and multiplies, measured in the same run.\n"
      "\"waiting\" is part of the other columns: compute threads wait there for the slowest thread.");
  command.add_option("--model", options.model, "model, in a form that workers take")->required();
  AddWholeNumber(command, "--prompt-tokens", &options.prompt_tokens, "length of the prompt in the prefill measurement",
                 1, kMaxTokens);
  AddWholeNumbers(command, "--sequences", &options.sequences,
                  "numbers of sequences that decode at once, one measurement each", 1, kMaxSequences);
  AddWholeNumber(command, "--context-tokens", &options.context_tokens, "length of each sequence before it decodes", 1,
                 kMaxTokens);
  AddWholeNumber(command, "--output-tokens", &options.output_tokens, "tokens that each sequence decodes", 1,
                 kMaxTokens);
  AddWholeNumber(command, "--repeats", &options.repeats, "repeats of each measurement; the report has the median", 1,
                 1000);
  CLI::Option* const profile =
      command.add_option("--profile", flags->profile,
                         "measure steps of all combinations of --sequences, --profile-chunks and --profile-contexts, "
                         "and write the file for `baton plan` and for workers with --replay-profile");
  AddWholeNumbers(command, "--profile-chunks", &flags->grid.chunks, "tokens of a prompt in a step, besides none", 2,
                  kMaxTokens)
      ->needs(profile);
  AddWholeNumbers(command, "--profile-contexts", &flags->grid.contexts,
                  "tokens of each sequence before the step (default: 64, and 1024 or what the model allows)", 1,
                  kMaxTokens)
      ->needs(profile);
  AddEngineFlags(command, console, &options.engine);
  command.add_flag("--json", flags->json, "print one line of JSON");
  return [flags, &console] { return RunBenchEngine(*flags, console); };
}

}  // namespace baton
