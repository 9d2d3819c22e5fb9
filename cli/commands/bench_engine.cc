// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/commands/commands.h"
#include "cli/console/interrupt.h"
#include "cli/flags/engine_flags.h"
#include "cli/flags/flags.h"
#include "cli/report/engine_report.h"
#include "common/status_macros.h"

namespace baton {
namespace {

constexpr int kMaxTokens = 1 << 20;
constexpr int kMaxSequences = 1 << 12;

struct BenchEngineFlags {
  EngineBenchOptions options;
  bool json = false;
};

int RunBenchEngine(const BenchEngineFlags& flags, const Console& console) {
  const auto interrupted = [&console] { return console.interrupt->triggered(); };
  const absl::StatusOr<EngineReport> report = BenchEngine(flags.options, interrupted);
  if (!report.ok()) return Report(console, "bench engine", report.status());
  *console.out << (flags.json ? absl::StrCat(ToJson(flags.options, *report), "\n") : ToTable(flags.options, *report))
               << std::flush;
  return kExitOk;
}

}  // namespace

void AddBenchEngineCommand(CLI::App& bench, const Console& console, Command* chosen) {
  const auto flags = std::make_shared<BenchEngineFlags>();
  EngineBenchOptions& options = flags->options;
  CLI::App& command = *bench.add_subcommand(
      "engine", "Measures the engine alone, in this process: speed of prefill and decode, and the parts of a step.");
  command.footer(
      "\"% of limit\" compares with the most that this machine reads and multiplies, measured in the same run.\n"
      "\"waiting\" is part of the other columns: compute threads wait there for the slowest thread.");
  command.add_option("--model", options.model, "model, in a form that workers take")->required();
  const auto add_count = [&command](const char* name, int* value, const char* help, int max) {
    AddWholeNumber(command, name, value, help, 1, max)->default_str(absl::StrCat(*value));
  };
  add_count("--prompt-tokens", &options.prompt_tokens, "length of the prompt in the prefill measurement", kMaxTokens);
  AddFlag(command, "--sequences", "INT,...", "numbers of sequences that decode at once, one measurement each",
          [&options](const std::string& text) {
            options.sequences.clear();
            for (const absl::string_view part : absl::StrSplit(text, ',')) {
              BATON_ASSIGN_OR_RETURN(const uint64_t count, ParseWholeNumber(std::string(part), 1, kMaxSequences));
              options.sequences.push_back(static_cast<int>(count));
            }
            return absl::OkStatus();
          })
      ->default_str(absl::StrJoin(options.sequences, ","));
  add_count("--context-tokens", &options.context_tokens, "length of each sequence before it decodes", kMaxTokens);
  add_count("--output-tokens", &options.output_tokens, "tokens that each sequence decodes", kMaxTokens);
  add_count("--repeats", &options.repeats, "repeats of each measurement; the report has the median", 1000);
  AddEngineFlags(command, console, &options.engine);
  command.add_flag("--json", flags->json, "print one line of JSON");
  command.callback(
      [flags, &console, chosen] { *chosen = [flags, &console] { return RunBenchEngine(*flags, console); }; });
}

}  // namespace baton
