// SPDX-License-Identifier: Apache-2.0
#include "router/balance_controller.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "common/log.h"

namespace baton::router {
namespace {

constexpr absl::Duration kInterval = absl::Milliseconds(500);

}  // namespace

BalanceController::BalanceController(Mode mode, const BalanceRules& rules, std::shared_ptr<WorkerRegistry> registry,
                                     RouterMetrics* metrics)
    : mode_(mode), rules_(rules), registry_(std::move(registry)), metrics_(metrics) {}

void BalanceController::Start() { Tick(); }

void BalanceController::Stop() {
  MutexLock lock(mutex_);
  metrics_ = nullptr;
  timer_.Cancel();
}

void BalanceController::Tick() {
  std::map<std::string, BalanceDecision> changes;
  {
    MutexLock lock(mutex_);
    if (metrics_ == nullptr) return;
    changes = Advance(SteadyTime::Now());
  }
  // Unlocked: a request that the registry refuses is counted on this thread.
  for (const auto& [model, decision] : changes) Switch(model, decision);
  MutexLock lock(mutex_);
  if (metrics_ == nullptr) return;
  timer_.Start(kInterval, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->Tick();
  });
}

std::map<std::string, BalanceDecision> BalanceController::Advance(SteadyTime now) {
  std::map<std::string, BalanceDecision> changes;
  const std::map<std::string, BalanceFacts> facts = registry_->balance_facts(rules_.period);
  // A model that is gone wants no workers.
  for (auto known = models_.begin(); known != models_.end();) {
    if (facts.contains(known->first)) {
      ++known;
      continue;
    }
    metrics_->SetBalance(known->first, "prefill", 0, 0);
    metrics_->SetBalance(known->first, "decode", 0, 0);
    known = models_.erase(known);
  }
  for (const auto& [model, of_workers] : facts) {
    OfModel& of_model = models_.try_emplace(model, OfModel{BalancePolicy(rules_)}).first->second;
    const BalanceDecision decision = of_model.policy.Decide(now, of_workers);
    Publish(model, of_model, decision);
    if (decision.change && mode_ == Mode::kSwitch) changes.emplace(model, decision);
  }
  return changes;
}

void BalanceController::Publish(const std::string& model, OfModel& of_model, const BalanceDecision& decision) {
  metrics_->SetBalance(model, "prefill", decision.wanted_prefill, decision.prefill_pressure);
  metrics_->SetBalance(model, "decode", decision.wanted_decode, decision.decode_pressure);
  const bool is_new =
      decision.wanted_prefill != of_model.wanted_prefill || decision.wanted_decode != of_model.wanted_decode;
  of_model.wanted_prefill = decision.wanted_prefill;
  of_model.wanted_decode = decision.wanted_decode;
  Log(is_new ? LogLevel::kInfo : LogLevel::kDebug, is_new ? "balance.wanted" : "balance.load",
      {{"model", model},
       {"prefill_workers", decision.wanted_prefill},
       {"decode_workers", decision.wanted_decode},
       {"prefill_pressure", decision.prefill_pressure},
       {"decode_pressure", decision.decode_pressure}});
}

void BalanceController::Switch(const std::string& model, const BalanceDecision& decision) {
  const RoleSwitch& change = *decision.change;
  const bool to_decode = change.to == v1::WORKER_ROLE_DECODE;
  const std::string role = to_decode ? "decode" : "prefill";
  Log(LogLevel::kInfo, "balance.switch",
      {{"model", model},
       {"worker", change.worker},
       {"to", role},
       {"prefill_pressure", decision.prefill_pressure},
       {"decode_pressure", decision.decode_pressure}});
  const std::string reason =
      absl::StrFormat("the router's balance controller: pressure of prefill %.2f, of decode %.2f",
                      decision.prefill_pressure, decision.decode_pressure);
  registry_->ChangeRole({.id = change.worker, .role = role, .expected = change.from, .force = false, .reason = reason},
                        [weak = weak_from_this(), model, change, role](const absl::StatusOr<std::string>& from) {
                          if (!from.ok()) {
                            Log(LogLevel::kWarning, "balance.switch_refused",
                                {{"model", model},
                                 {"worker", change.worker},
                                 {"to", role},
                                 {"detail", std::string(from.status().message())}});
                          }
                          const auto self = weak.lock();
                          if (self == nullptr) return;
                          self->OnAnswer(model, change, role, from.ok());
                        });
}

void BalanceController::OnAnswer(const std::string& model, const RoleSwitch& change, const std::string& role,
                                 bool taken) {
  MutexLock lock(mutex_);
  if (metrics_ != nullptr) metrics_->RoleSwitched(model, role, taken);
  const auto known = models_.find(model);
  if (!taken && known != models_.end()) known->second.policy.OnRefused(SteadyTime::Now(), change);
}

}  // namespace baton::router
