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

double Share(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace

absl::StatusOr<WorkerTable::RoleOrder> WorkerTable::OrderRole(SteadyTime now, const std::string& id,
                                                              const std::string& role, bool force) {
  ForgetOrders(now);
  const auto to = std::ranges::find_if(kRoles, [&](v1::WorkerRole known) { return role == RoleName(known); });
  if (to == kRoles.end()) {
    return absl::InvalidArgumentError(absl::StrCat("role: \"", role, "\", expected prefill, decode or both"));
  }
  const Worker* const worker = FindById(id);
  if (worker == nullptr) {
    std::vector<std::string> names;
    names.reserve(workers_.size());
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
  if (orders_.size() >= kMaxOrders) {
    return absl::ResourceExhaustedError(
        absl::StrCat(orders_.size(), " changes of roles have not begun yet; expected fewer than ", kMaxOrders));
  }
  const auto will_cease = [&](const Worker& other, bool (*does)(v1::WorkerRole)) {
    return std::ranges::any_of(
        orders_, [&](const OpenOrder& open) { return open.order.worker == other.index && !does(open.order.to); });
  };
  const auto others_do = [&](bool (*does)(v1::WorkerRole)) {
    return std::ranges::any_of(workers_, [&](const auto& entry) {
      const Worker& other = entry.second;
      return &other != worker && other.serving() && does(other.status.role()) && !will_cease(other, does) &&
             other.status.model().name() == status.model().name() &&
             other.status.model().numerics_id() == status.model().numerics_id();
    });
  };
  for (const auto& [does, what] : {std::pair(&ComputesPrompts, "computes prompts"), std::pair(&Decodes, "decodes")}) {
    if (force || !does(status.role()) || does(*to) || others_do(does)) continue;
    return absl::FailedPreconditionError(absl::StrCat("worker ", id, " is the last serving worker of model ",
                                                      status.model().name(), " and its numerics id that ", what,
                                                      "; force changes the role nevertheless"));
  }
  const RoleOrder order{.number = ++next_order_, .worker = worker->index, .from = status.role(), .to = *to};
  orders_.push_back({order, now + kOrderCallTimeout + kOrderDelay});
  return order;
}

void WorkerTable::OnOrderEnded(SteadyTime now, const RoleOrder& order, const absl::Status& status) {
  const auto open = std::ranges::find(orders_, order.number, [](const OpenOrder& known) { return known.order.number; });
  if (open == orders_.end()) return;
  // The worker may have begun although its answer did not come.
  const bool may_begin = status.ok() || absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status);
  if (may_begin) {
    open->until = now + kOrderDelay;
  } else {
    orders_.erase(open);
  }
}

void WorkerTable::ForgetOrders(SteadyTime now) {
  std::erase_if(orders_, [&](const OpenOrder& open) { return open.until <= now; });
}

void WorkerTable::ForgetOrdersShownBy(const Worker& worker, bool is_new) {
  const v1::WorkerStatus& status = worker.status;
  std::erase_if(orders_, [&](const OpenOrder& open) {
    const v1::WorkerRole to = open.order.to;
    return open.order.worker == worker.index &&
           (is_new || status.role() == to || status.role_facts().switching_to() == to);
  });
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
    facts.unsettled |=
        std::ranges::any_of(orders_, [&](const OpenOrder& open) { return open.order.worker == worker.index; });
    if (!worker.serving()) continue;
    const WorkerView& view = worker.known.view;
    const v1::WorkerLoad& load = status.load();
    if (status.role() == v1::WORKER_ROLE_PREFILL) {
      const uint64_t tokens = view.waiting_tokens - std::min(view.waiting_tokens, load.blocked_tokens());
      facts.prefill.workers.push_back(
          {.id = worker.id,
           .can_change = role.possible_size() > 1,
           .queued_seconds = Share(static_cast<double>(tokens), view.prefill_tokens_per_second),
           .is_busy = tokens > 0,
           .gave_up = !role.last_failure().empty()});
      continue;
    }
    const double pages_used = static_cast<double>(load.pages_used());
    const double sequences = load.running_sequences() + load.waiting_reservations();
    facts.decode.workers.push_back({.id = worker.id,
                                    .can_change = status.role() == v1::WORKER_ROLE_DECODE && role.possible_size() > 1,
                                    .slots_used = Share(sequences, view.max_sequences),
                                    .pages_used = Share(pages_used, static_cast<double>(view.pages_total)),
                                    .step_share = Share(view.step_seconds, view.tpot_slo),
                                    .is_busy = view.decoding_sequences > 0,
                                    .gave_up = !role.last_failure().empty()});
  }
  return by_model;
}

}  // namespace baton::router
