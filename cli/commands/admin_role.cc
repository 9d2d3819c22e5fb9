// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/client.h"
#include "cli/commands/commands.h"
#include "cli/console/interrupt.h"
#include "cli/flags/flags.h"
#include "cli/flags/generation_flags.h"
#include "cli/report/answer_text.h"
#include "common/status_macros.h"
#include "common/steady_time.h"

namespace baton {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(100);

struct RoleFlags {
  std::string target = std::string(kDefaultTarget);
  std::string worker;
  std::string role;
  std::string wait;
  bool force = false;
};

// Returns the worker as the router sees it. Of workers with one id, the worker whose state is known best counts.
std::optional<v1::WorkerInfo> Find(const v1::GetStatusResponse& status, const std::string& id) {
  std::optional<v1::WorkerInfo> found;
  for (const v1::WorkerInfo& worker : status.workers()) {
    if (worker.worker_id() == id && (!found || worker.state() == "serving")) found = worker;
  }
  return found;
}

// Follows a change in the router's reports, which may lag behind the worker's answer to the request.
class ChangeInProgress {
 public:
  explicit ChangeInProgress(const RoleFlags& flags) : flags_(flags) {}

  // Returns OK once the worker serves in its new role, an error once the change has failed, and nothing before.
  std::optional<absl::Status> Follow(const std::optional<v1::WorkerInfo>& worker) {
    if (!worker) return absl::NotFoundError(absl::StrCat("worker ", flags_.worker, " has left the router meanwhile"));
    if (worker->state() == "lost" || worker->state() == "draining") {
      return absl::UnavailableError(absl::StrCat("worker ", flags_.worker, " is ", worker->state(),
                                                 worker->detail().empty() ? "" : ": ", worker->detail()));
    }
    has_begun_ |= !worker->switching_to().empty();
    if (worker->state() != "serving") return std::nullopt;
    if (worker->role() == flags_.role) return absl::OkStatus();
    // Before a report of the change, a failure may be of an earlier change.
    if (!has_begun_ || worker->role_failure().empty()) return std::nullopt;
    return absl::AbortedError(absl::StrCat("worker ", flags_.worker, " keeps role ", worker->role(), ": ",
                                           worker->role_failure(),
                                           "; --force ends such attempts, and they continue at other workers"));
  }

 private:
  const RoleFlags& flags_;
  bool has_begun_ = false;
};

absl::Status WaitForRole(Client& client, const RoleFlags& flags, absl::Duration wait, const Console& console) {
  const SteadyTime deadline = SteadyTime::Now() + wait;
  ChangeInProgress change(flags);
  while (true) {
    BATON_ASSIGN_OR_RETURN(const v1::GetStatusResponse status, client.GetStatus(kCallTimeout));
    const std::optional<v1::WorkerInfo> worker = Find(status, flags.worker);
    if (const std::optional<absl::Status> result = change.Follow(worker)) return *result;
    if (console.interrupt->triggered()) return absl::CancelledError("interrupted; the worker goes on with the change");
    if (SteadyTime::Now() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("worker ", flags.worker, " has not taken role ", flags.role, " within ", flags.wait,
                       " (--wait): ", Count(worker->running_sequences(), "sequence"), " running and ",
                       worker->waiting_requests(), " waiting there; the worker goes on with the change"));
    }
    absl::SleepFor(std::min(kPoll, std::max(deadline - SteadyTime::Now(), absl::ZeroDuration())));
  }
}

absl::Status RunRole(const RoleFlags& flags, const Console& console) {
  absl::Duration wait = absl::ZeroDuration();
  if (!flags.wait.empty()) {
    BATON_ASSIGN_OR_RETURN(wait, UsageError(ParseTimeout("--wait", flags.wait)));
  }
  BATON_ASSIGN_OR_RETURN(const auto client, Client::Connect(flags.target, kConnectTimeout, *console.interrupt));
  v1::ChangeWorkerRoleRequest request;
  request.set_worker_id(flags.worker);
  request.set_role(flags.role);
  request.set_force(flags.force);
  BATON_ASSIGN_OR_RETURN(const std::string from, client->ChangeWorkerRole(request, kCallTimeout));
  if (wait > absl::ZeroDuration()) BATON_RETURN_IF_ERROR(WaitForRole(*client, flags, wait, console));
  *console.out << flags.worker << (wait > absl::ZeroDuration() ? " changed from " : " changes from ") << from << " to "
               << flags.role << std::endl;
  return absl::OkStatus();
}

}  // namespace

Command AdminRoleCommand(CLI::App& command, const Console& console) {
  const auto flags = std::make_shared<RoleFlags>();
  AddTarget(command, &flags->target);
  command.add_option("WORKER", flags->worker, "id of the worker, as `baton admin workers` lists it")->required();
  AddChoice(command, "ROLE", &flags->role, "the new role",
            Choices<std::string>{{"prefill", "prefill"}, {"decode", "decode"}, {"both", "both"}})
      ->required();
  command.add_option("--wait", flags->wait,
                     "wait until the worker has its new role, and fail after this long, e.g. 1m");
  command.add_flag(
      "--force", flags->force,
      "also the last worker of a role, also within the worker's --role-cooldown; attempts that outlast the "
      "worker's --drain-timeout are ended and continue elsewhere");
  return [flags, &console] { return RunRole(*flags, console); };
}

}  // namespace baton
