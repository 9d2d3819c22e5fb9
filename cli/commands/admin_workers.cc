// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/client.h"
#include "cli/commands/commands.h"
#include "cli/flags/flags.h"
#include "cli/report/answer_text.h"
#include "cli/report/table.h"
#include "common/status_macros.h"

namespace baton {
namespace {

struct WorkersFlags {
  std::string target = std::string(kDefaultTarget);
  bool json = false;
};

std::string PageUse(const v1::WorkerInfo& worker) {
  if (worker.pages_total() == 0) return "-";
  return absl::StrFormat("%.0f %%", 100.0 * worker.pages_used() / worker.pages_total());
}

std::string Describe(const v1::GetStatusResponse& status) {
  Table workers({"WORKER", "ROLE", "STATE", "WAITING", "RUNNING", "PAGES USED", "ROLES", "CHANGES", "MODEL", "DETAIL"});
  for (const v1::WorkerInfo& worker : status.workers()) {
    workers.AddRow({worker.worker_id(), worker.role(), worker.state(), absl::StrCat(worker.waiting_requests()),
                    absl::StrCat(worker.running_sequences()), PageUse(worker),
                    absl::StrJoin(worker.possible_roles(), ","), absl::StrCat(worker.role_changes()), worker.model(),
                    worker.detail()});
  }
  return workers.ToString();
}

absl::Status RunWorkers(const WorkersFlags& flags, const Console& console) {
  BATON_ASSIGN_OR_RETURN(const auto client, Client::Connect(flags.target, kConnectTimeout, *console.interrupt));
  BATON_ASSIGN_OR_RETURN(const v1::GetStatusResponse status, client->GetStatus(kCallTimeout));
  *console.out << (flags.json ? absl::StrCat(ToJsonLine(status), "\n") : Describe(status)) << std::flush;
  return absl::OkStatus();
}

}  // namespace

Command AdminWorkersCommand(CLI::App& command, const Console& console) {
  const auto flags = std::make_shared<WorkersFlags>();
  AddTarget(command, &flags->target);
  command.add_flag("--json", flags->json, "print one JSON line, as `baton status --json` does");
  return [flags, &console] { return RunWorkers(*flags, console); };
}

}  // namespace baton
