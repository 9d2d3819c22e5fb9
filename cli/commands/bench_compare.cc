// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/commands/commands.h"
#include "cli/report/compare_report.h"
#include "common/status_macros.h"
#include "engine/formats/file.h"

namespace baton {
namespace {

constexpr size_t kMaxResultBytes = size_t{256} << 20;

struct CompareFlags {
  std::string a;
  std::string b;
};

absl::Status RunCompare(const CompareFlags& flags, const Console& console) {
  BATON_ASSIGN_OR_RETURN(std::string a, ReadTextFile(flags.a, kMaxResultBytes));
  BATON_ASSIGN_OR_RETURN(std::string b, ReadTextFile(flags.b, kMaxResultBytes));
  BATON_ASSIGN_OR_RETURN(const std::string text, CompareResults({.name = flags.a, .text = std::move(a)},
                                                                {.name = flags.b, .text = std::move(b)}));
  *console.out << text << std::flush;
  return absl::OkStatus();
}

}  // namespace

Command BenchCompareCommand(CLI::App& command, const Console& console) {
  const auto flags = std::make_shared<CompareFlags>();
  command.footer(
      "A and B hold what `baton bench serve --json` printed: a run a line, or a search. Metrics stand as the mean of "
      "the\n"
      "runs with their range. A difference is beyond the spread if the ranges of A and B are apart.");
  command.add_option("A", flags->a, "file with results")->required();
  command.add_option("B", flags->b, "file with results to compare with A")->required();
  return [flags, &console] { return RunCompare(*flags, console); };
}

}  // namespace baton
