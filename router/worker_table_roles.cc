// SPDX-License-Identifier: Apache-2.0
// Changes of workers' roles: which the router asks for, and the load by role.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "router/worker_table.h"

namespace baton::router {
namespace {

constexpr std::array kRoles = {v1::WORKER_ROLE_PREFILL, v1::WORKER_ROLE_DECODE, v1::WORKER_ROLE_BOTH};
constexpr size_t kMaxListedWorkers = 16;

bool ComputesPrompts(v1::WorkerRole role) { return role == v1::WORKER_ROLE_PREFILL || role == v1::WORKER_ROLE_BOTH; }
bool DecodesSequences(v1::WorkerRole role) { return role == v1::WORKER_ROLE_DECODE || role == v1::WORKER_ROLE_BOTH; }

double Share(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace

absl::StatusOr<WorkerTable::RoleOrder> WorkerTable::OrderRole(const std::string& id, const std::string& role,
                                                              bool force) const {
  const auto to = std::ranges::find_if(kRoles, [&](v1::WorkerRole known) { return role == RoleName(known); });
  if (to == kRoles.end()) {
    return absl::InvalidArgumentError(absl::StrCat("role: \"", role, "\", expected prefill, decode or both"));
  }
  const Worker* const worker = FindById(id);
  if (worker == nullptr) {
    std::vector<std::string> names;
    for (const auto& [_, known] : workers_) names.push_back(known.id);
    std::ranges::sort(names);
    const size_t left_out = names.size() - std::min(names.size(), kMaxListedWorkers);
    names.resize(names.size() - left_out);
    return absl::NotFoundError(absl::StrCat("worker_id: \"", id, "\" is no worker of this router; expected one of ",
                                            absl::StrJoin(names, ", "),
                                            left_out == 0 ? "" : absl::StrCat(" and ", left_out, " more")));
  }
  const v1::WorkerStatus& status = worker->status;
  const bool already_switches = worker->live() && status.state() == v1::WORKER_STATE_SWITCHING;
  if (!worker->serving() && !already_switches) {
    return absl::UnavailableError(absl::StrCat("worker ", id, " is ", StateName(*worker),
                                               worker->detail.empty() ? "" : ": ", worker->detail,
                                               "; expected a worker that serves"));
  }
  if (status.role_facts().possible().empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("worker ", id, " runs version ", status.facts().version(), ", which changes no roles"));
  }
  const auto others_do = [&](bool (*does)(v1::WorkerRole)) {
    return std::ranges::any_of(workers_, [&](const auto& entry) {
      const Worker& other = entry.second;
      return &other != worker && other.serving() && does(other.status.role()) &&
             other.status.model().name() == status.model().name() &&
             other.status.model().numerics_id() == status.model().numerics_id();
    });
  };
  for (const auto& [does, what] :
       {std::pair(&ComputesPrompts, "computes prompts"), std::pair(&DecodesSequences, "decodes")}) {
    if (force || !does(status.role()) || does(*to) || others_do(does)) continue;
    return absl::FailedPreconditionError(absl::StrCat("worker ", id, " is the last serving worker of model ",
                                                      status.model().name(), " and its numerics id that ", what,
                                                      "; force changes the role nevertheless"));
  }
  return RoleOrder{worker->index, status.role(), *to};
}

std::map<std::string, BalanceFacts> WorkerTable::balance_facts(absl::Duration settle) const {
  std::map<std::string, BalanceFacts> by_model;
  for (const auto& [_, worker] : workers_) {
    if (!worker.live() || !worker.listed || worker.status.model().name().empty()) continue;
    const v1::WorkerStatus& status = worker.status;
    const v1::RoleFacts& role = status.role_facts();
    BalanceFacts& facts = by_model[status.model().name()];
    facts.unsettled |= status.state() == v1::WORKER_STATE_SWITCHING ||
                       (role.changes() > 0 && role.held_seconds() < absl::ToDoubleSeconds(settle));
    if (!worker.serving()) continue;
    const WorkerView& view = worker.known.view;
    const v1::WorkerLoad& load = status.load();
    if (status.role() == v1::WORKER_ROLE_PREFILL) {
      const uint64_t tokens = view.waiting_tokens - std::min(view.waiting_tokens, load.blocked_tokens());
      facts.prefill.workers.push_back(
          {.id = worker.id,
           .can_change = role.possible_size() > 1,
           .queued_seconds = Share(static_cast<double>(tokens), view.prefill_tokens_per_second),
           .is_busy = tokens > 0});
      continue;
    }
    const double pages_used = static_cast<double>(load.pages_used());
    const double sequences = load.running_sequences() + load.waiting_reservations();
    facts.decode.workers.push_back({.id = worker.id,
                                    .can_change = status.role() == v1::WORKER_ROLE_DECODE && role.possible_size() > 1,
                                    .slots_used = Share(sequences, view.max_sequences),
                                    .pages_used = Share(pages_used, static_cast<double>(view.pages_total)),
                                    .step_share = Share(view.step_seconds, view.tpot_slo),
                                    .is_busy = view.decoding_sequences > 0});
  }
  return by_model;
}

}  // namespace baton::router
