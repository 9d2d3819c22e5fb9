// SPDX-License-Identifier: Apache-2.0
#include "cli/report/doctor.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/client.h"
#include "cli/commands/commands.h"
#include "cli/flags/flags.h"
#include "cli/report/answer_text.h"
#include "common/arguments.h"
#include "common/status_macros.h"

namespace baton {
namespace {

absl::Status RunDoctor(const std::string& target, const Console& console) {
  BATON_ASSIGN_OR_RETURN(const auto client, Client::Connect(target, kConnectTimeout, *console.interrupt));
  BATON_ASSIGN_OR_RETURN(const v1::GetStatusResponse status, client->GetStatus(kCallTimeout));
  const std::vector<Finding> findings = Examine(status, BatonVersion());
  *console.out << ToText(findings) << std::flush;
  const auto problems = std::ranges::count(findings, Finding::Kind::kProblem, &Finding::kind);
  if (problems == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(Count(static_cast<uint64_t>(problems), "problem") + ", see above");
}

}  // namespace

Command DoctorCommand(CLI::App& command, const Console& console) {
  const auto target = std::make_shared<std::string>(kDefaultTarget);
  AddTarget(command, target.get());
  return [target, &console] { return RunDoctor(*target, console); };
}

}  // namespace baton
