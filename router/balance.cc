// SPDX-License-Identifier: Apache-2.0
#include "router/balance.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace baton::router {
namespace {

// A queue far beyond the target counts as this much, so that the pressure falls soon after the queue.
constexpr double kMaxPressure = 4;

double PressureOf(const std::vector<PrefillLoad>& workers, absl::Duration queue_target) {
  if (workers.empty()) return 0;
  double queued = 0;
  double busy = 0;
  for (const PrefillLoad& worker : workers) {
    queued += worker.queued_seconds;
    busy += worker.is_busy ? 1 : 0;
  }
  const double target = absl::ToDoubleSeconds(queue_target);
  const auto count = static_cast<double>(workers.size());
  return std::min(kMaxPressure, std::max(busy, target > 0 ? queued / target : 0) / count);
}

double PressureOf(const std::vector<DecodeLoad>& workers) {
  if (workers.empty()) return 0;
  double sum = 0;
  for (const DecodeLoad& worker : workers) {
    sum += std::max({worker.slots_used, worker.pages_used, worker.is_busy ? worker.step_share : 0});
  }
  return std::min(kMaxPressure, sum / static_cast<double>(workers.size()));
}

// A worker that refused a change or gave one up is passed over for so many periods.
constexpr int kPassedPeriods = 10;

// The pressure if `workers` had one worker less.
double WithoutOne(double pressure, int workers) {
  return workers > 1 ? pressure * workers / (workers - 1) : kMaxPressure;
}

template <typename Load, typename IsPassed>
std::optional<std::string> GreatestId(const std::vector<Load>& workers, const IsPassed& is_passed) {
  std::optional<std::string> greatest;
  for (const Load& worker : workers) {
    if (worker.can_change && !is_passed(worker.id) && (!greatest || *greatest < worker.id)) greatest = worker.id;
  }
  return greatest;
}

}  // namespace

int BalancePolicy::Wanted(int before, int workers, double pressure, int min, double target) {
  if (workers == 0) return min;
  const double exact = workers * pressure / target;
  const int needed = std::clamp(static_cast<int>(std::ceil(exact - 1e-6)), min, 2 * std::max(workers, min));
  if (needed >= before) return needed;
  const bool well_below = exact < (before - 1) * 0.9;
  return well_below ? std::max(needed, min) : before;
}

v1::WorkerRole BalancePolicy::PressedRole(int prefills, int decodes) const {
  // Too few workers press a role, whatever their load: without any, there is no load to see.
  const double prefill_pressure = prefills < rules_.min_prefill ? kMaxPressure : prefill_pressure_;
  const double decode_pressure = decodes < rules_.min_decode ? kMaxPressure : decode_pressure_;
  if (decode_pressure > rules_.high && prefills > rules_.min_prefill &&
      WithoutOne(prefill_pressure_, prefills) < rules_.low) {
    return v1::WORKER_ROLE_DECODE;
  }
  if (prefill_pressure > rules_.high && decodes > rules_.min_decode &&
      WithoutOne(decode_pressure_, decodes) < rules_.low) {
    return v1::WORKER_ROLE_PREFILL;
  }
  return v1::WORKER_ROLE_UNSPECIFIED;
}

void BalancePolicy::OnRefused(SteadyTime now, const RoleSwitch& change) {
  passed_[{change.from, change.worker}].until = now + kPassedPeriods * rules_.period;
}

// A worker tells of the change that it gave up until another begins: the worker is passed over once for each.
void BalancePolicy::NoteGivenUp(SteadyTime now, const BalanceFacts& facts) {
  std::set<InRole> gave_up;
  for (const PrefillLoad& worker : facts.prefill.workers) {
    if (worker.gave_up) gave_up.emplace(v1::WORKER_ROLE_PREFILL, worker.id);
  }
  for (const DecodeLoad& worker : facts.decode.workers) {
    if (worker.gave_up) gave_up.emplace(v1::WORKER_ROLE_DECODE, worker.id);
  }
  for (const InRole& worker : gave_up) {
    Passed& passed = passed_[worker];
    if (!passed.gave_up) passed.until = now + kPassedPeriods * rules_.period;
  }
  for (auto& [worker, passed] : passed_) passed.gave_up = gave_up.contains(worker);
  std::erase_if(passed_, [&](const auto& entry) { return !entry.second.gave_up && entry.second.until <= now; });
}

std::optional<RoleSwitch> BalancePolicy::ChooseWorker(SteadyTime now, const BalanceFacts& facts) const {
  const bool to_decode = pressed_ == v1::WORKER_ROLE_DECODE;
  const v1::WorkerRole from = to_decode ? v1::WORKER_ROLE_PREFILL : v1::WORKER_ROLE_DECODE;
  const auto is_passed = [&](const std::string& id) {
    const auto known = passed_.find({from, id});
    return known != passed_.end() && now < known->second.until;
  };
  const auto id =
      to_decode ? GreatestId(facts.prefill.workers, is_passed) : GreatestId(facts.decode.workers, is_passed);
  if (!id) return std::nullopt;
  return RoleSwitch{*id, from, pressed_};
}

BalanceDecision BalancePolicy::Decide(SteadyTime now, const BalanceFacts& facts) {
  const auto prefills = static_cast<int>(facts.prefill.workers.size());
  const auto decodes = static_cast<int>(facts.decode.workers.size());
  // The mean of about a quarter of the time for which a pressure must last.
  const double elapsed =
      last_ ? absl::FDivDuration(now - *last_, std::max(rules_.after / 4, absl::Milliseconds(1))) : 0;
  const double weight = last_ ? 1 - std::exp(-elapsed) : 1;
  last_ = now;
  NoteGivenUp(now, facts);
  prefill_pressure_ += weight * (PressureOf(facts.prefill.workers, rules_.queue_target) - prefill_pressure_);
  decode_pressure_ += weight * (PressureOf(facts.decode.workers) - decode_pressure_);
  // Without a worker of role prefill, workers of role both may compute all prompts.
  const bool needs_prefill = prefills > 0 || std::ranges::any_of(facts.decode.workers, &DecodeLoad::can_change);
  wanted_prefill_ =
      needs_prefill ? Wanted(wanted_prefill_, prefills, prefill_pressure_, rules_.min_prefill, rules_.target) : 0;
  wanted_decode_ = Wanted(wanted_decode_, decodes, decode_pressure_, rules_.min_decode, rules_.target);

  BalanceDecision decision{.change = std::nullopt,
                           .prefill_pressure = prefill_pressure_,
                           .decode_pressure = decode_pressure_,
                           .wanted_prefill = wanted_prefill_,
                           .wanted_decode = wanted_decode_};
  if (const v1::WorkerRole pressed = PressedRole(prefills, decodes); pressed != pressed_) {
    pressed_ = pressed;
    pressed_since_ = now;
  }
  if (pressed_ == v1::WORKER_ROLE_UNSPECIFIED || now - pressed_since_ < rules_.after) return decision;
  if (facts.unsettled || now - last_change_ < rules_.period) return decision;
  decision.change = ChooseWorker(now, facts);
  if (decision.change) last_change_ = now;
  return decision;
}

}  // namespace baton::router
