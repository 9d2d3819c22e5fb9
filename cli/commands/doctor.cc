// SPDX-License-Identifier: Apache-2.0
#include "cli/report/doctor.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/client.h"
#include "cli/commands/commands.h"
#include "cli/console/interrupt.h"
#include "cli/flags/flags.h"
#include "cli/flags/generation_flags.h"
#include "cli/pairs/measure_paths.h"
#include "cli/report/answer_text.h"
#include "cli/report/doctor_paths.h"
#include "common/arguments.h"
#include "common/status_macros.h"

namespace baton {
namespace {

struct DoctorFlags {
  std::string target = std::string(kDefaultTarget);
  bool no_measure = false;
  std::string timeout = "2m";
  MeasureOptions measure;
};

absl::Status RunDoctor(DoctorFlags& flags, const Console& console) {
  BATON_ASSIGN_OR_RETURN(flags.measure.timeout, UsageError(ParseTimeout("--timeout", flags.timeout)));
  BATON_ASSIGN_OR_RETURN(const auto client, Client::Connect(flags.target, kConnectTimeout, *console.interrupt));
  BATON_ASSIGN_OR_RETURN(const v1::GetStatusResponse status, client->GetStatus(kCallTimeout));
  MeasuredPaths measured;
  if (!flags.no_measure && status.ready()) {
    BATON_ASSIGN_OR_RETURN(const v1::ListModelsResponse models, client->ListModels(kCallTimeout));
    measured = MeasurePaths(*client, status, models, flags.measure, *console.interrupt);
    if (console.interrupt->triggered()) return absl::CancelledError("interrupted");
  }
  const std::vector<Finding> findings = Examine(status, BatonVersion(), measured);
  const std::string paths = ToText(measured);
  *console.out << ToText(findings) << (paths.empty() ? "" : "\n") << paths << std::flush;
  const auto problems = std::ranges::count(findings, Finding::Kind::kProblem, &Finding::kind);
  if (problems == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(Count(static_cast<uint64_t>(problems), "problem") + ", see above");
}

}  // namespace

Command DoctorCommand(CLI::App& command, const Console& console) {
  const auto flags = std::make_shared<DoctorFlags>();
  command.footer(
      "Sends three requests through each ready pair: the speed of the path, and how much of the transfer of KV pages\n"
      "comes after the computation of the prompt (EXPOSED). The exit code is 1 when there is a problem.");
  AddTarget(command, &flags->target);
  command.add_flag("--no-measure", flags->no_measure, "send no requests: examine the router's status alone");
  AddWholeNumber(command, "--max-pairs", &flags->measure.max_pairs,
                 "most paths that are measured, of a model and numerics id", 1, 10'000);
  AddWholeNumber(command, "--prompt-tokens", &flags->measure.prompt_tokens, "random token ids per prompt", 1, 1 << 20);
  command.add_option("--timeout", flags->timeout, "time limit of all measurements")->capture_default_str();
  return [flags, &console] { return RunDoctor(*flags, console); };
}

}  // namespace baton
