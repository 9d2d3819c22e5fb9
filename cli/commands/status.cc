// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/client.h"
#include "cli/commands/commands.h"
#include "cli/console/interrupt.h"
#include "cli/flags/flags.h"
#include "cli/flags/generation_flags.h"
#include "cli/report/answer_text.h"
#include "cli/report/table.h"
#include "common/status_macros.h"
#include "common/steady_time.h"

namespace baton {
namespace {

struct StatusFlags {
  std::string target = std::string(kDefaultTarget);
  std::string wait;
  bool json = false;
};

absl::StatusOr<v1::GetStatusResponse> AskOnce(const StatusFlags& flags, absl::Duration timeout,
                                              const Console& console) {
  BATON_ASSIGN_OR_RETURN(const auto client,
                         Client::Connect(flags.target, std::min(timeout, kConnectTimeout), *console.interrupt));
  return client->GetStatus(std::min(timeout, kCallTimeout));
}

// Asks until the router is ready. After `wait`: DEADLINE_EXCEEDED, with what is missing.
absl::StatusOr<v1::GetStatusResponse> AskUntilReady(const StatusFlags& flags, absl::Duration wait,
                                                    const Console& console) {
  const SteadyTime deadline = SteadyTime::Now() + wait;
  while (true) {
    auto status = AskOnce(flags, std::max(deadline - SteadyTime::Now(), absl::Milliseconds(100)), console);
    if (status.ok() && status->ready()) return status;
    if (console.interrupt->triggered()) return absl::CancelledError("interrupted");
    if (SteadyTime::Now() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("not ready within ", absl::FormatDuration(wait), ": ",
                       status.ok() ? absl::StrCat("no pair of workers at ", flags.target,
                                                  " has passed its probe; `baton status` without --wait shows them")
                                   : std::string(status.status().message())));
    }
    absl::SleepFor(absl::Milliseconds(100));
  }
}

std::string Describe(const v1::GetStatusResponse& status) {
  Table workers({"WORKER", "ROLE", "MODEL", "STATE", "ADDRESS", "WAITING", "RUNNING", "PAGES", "USED", "CACHED",
                 "QUARANTINED", "DETAIL"});
  for (const v1::WorkerInfo& worker : status.workers()) {
    workers.AddRow({worker.worker_id(), worker.role(), worker.model(), worker.state(), worker.address(),
                    absl::StrCat(worker.waiting_requests()), absl::StrCat(worker.running_sequences()),
                    absl::StrCat(worker.pages_total()), absl::StrCat(worker.pages_used()),
                    absl::StrCat(worker.pages_cached()), absl::StrCat(worker.pages_quarantined()), worker.detail()});
  }
  Table pairs({"PREFILL", "DECODE", "PAIR", "DETAIL"});
  for (const v1::PairInfo& pair : status.pairs()) {
    pairs.AddRow({pair.prefill_worker(), pair.decode_worker(), pair.state(), pair.detail()});
  }
  return absl::StrCat(status.ready() ? "ready" : "not ready", ", ", Count(status.running_requests(), "request"),
                      " running\n\n", workers.ToString(), "\n", pairs.ToString());
}

absl::Status RunStatus(const StatusFlags& flags, const Console& console) {
  absl::Duration wait = absl::ZeroDuration();
  if (!flags.wait.empty()) {
    BATON_ASSIGN_OR_RETURN(wait, UsageError(ParseTimeout("--wait", flags.wait)));
  }
  BATON_ASSIGN_OR_RETURN(const v1::GetStatusResponse status, wait > absl::ZeroDuration()
                                                                 ? AskUntilReady(flags, wait, console)
                                                                 : AskOnce(flags, kCallTimeout, console));
  *console.out << (flags.json ? absl::StrCat(ToJsonLine(status), "\n") : Describe(status)) << std::flush;
  return absl::OkStatus();
}

}  // namespace

Command StatusCommand(CLI::App& command, const Console& console) {
  const auto flags = std::make_shared<StatusFlags>();
  AddTarget(command, &flags->target);
  command.add_option("--wait", flags->wait,
                     "wait until a pair of workers is ready, and fail after this long, e.g. 30s");
  command.add_flag("--json", flags->json, "print one JSON line");
  return [flags, &console] { return RunStatus(*flags, console); };
}

}  // namespace baton
