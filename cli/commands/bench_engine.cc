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

absl::Status RunBenchEngine(const BenchEngineFlags& flags, const Console& console) {
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
  AddWholeNumber(command, "--context-tokens", &options.context_tokens, "length of each sequence before it decodes", 1,
                 kMaxTokens);
  AddWholeNumber(command, "--output-tokens", &options.output_tokens, "tokens that each sequence decodes", 1,
                 kMaxTokens);
  AddWholeNumber(command, "--repeats", &options.repeats, "repeats of each measurement; the report has the median", 1,
                 1000);
  AddEngineFlags(command, console, &options.engine);
  command.add_flag("--json", flags->json, "print one line of JSON");
  return [flags, &console] { return RunBenchEngine(*flags, console); };
}

}  // namespace baton
