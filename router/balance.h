// SPDX-License-Identifier: Apache-2.0
// Decides when a worker of one role should take the other role, and how many workers of each role the load wants. A
// pure policy: the load by role and the time go in, decisions come out.
//
// The pressure of a role is the mean of its workers' loads, smoothed; 1 is what the workers can take:
//   prefill  the greater of the share of time with prompts, and the queue in seconds over queue_target
//   decode   the greatest of the shares of batch slots (with the reservations that wait for one), of pages, and of the
//            objective for the time per token that a step takes
//
// A role is pressed above `high`. A role has a worker to spare if its pressure were below `low` with a worker less. A
// worker changes sides after one role was pressed, and the other had a worker to spare, for all of `after`. A load that
// goes up and down within that time changes nothing. Between `low` and `high` nothing changes either, so that a change
// does not call for its own reversal. A role with fewer workers than its minimum counts as pressed. A worker that
// refused a change or gave one up is passed over for ten periods. `period` lies between two changes, and no role gets
// below its minimum.
//
// Several routers may run the policy on the same workers. Each sees the changes of all, because workers report them,
// and waits for `period`. Routers that decide at the same time choose the same worker, the one with the greatest id,
// and the worker accepts one of the requests.
//
// Not thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "baton/v1/worker.pb.h"
#include "common/steady_time.h"

namespace baton::router {

struct PrefillLoad {
  std::string id;
  bool can_change = false;
  double queued_seconds = 0;  // of prompts to compute, but for those that wait for a decode worker
  bool is_busy = false;       // computes prompts now
  bool gave_up = false;       // the latest change of the worker's role
};
struct DecodeLoad {
  std::string id;
  bool can_change = false;  // false also for a worker of role both
  double slots_used = 0;    // shares of what the worker has
  double pages_used = 0;
  double step_share = 0;  // a step over the least objective for the time per token; 0: no objective
  bool is_busy = false;
  bool gave_up = false;  // the latest change of the worker's role
};

// The serving workers of one model.
struct BalanceFacts {
  struct {
    std::vector<PrefillLoad> workers;
  } prefill;
  struct {
    std::vector<DecodeLoad> workers;  // of roles decode and both
  } decode;
  bool unsettled = false;  // a worker changes its role, or has done so lately
};

struct BalanceRules {
  absl::Duration after = absl::Seconds(10);
  absl::Duration period = absl::Minutes(1);
  absl::Duration queue_target = absl::Milliseconds(500);
  int min_prefill = 1;
  int min_decode = 1;
  double high = 0.85;
  double low = 0.6;
  double target = 0.75;  // the pressure that the wanted number of workers would have
};

struct RoleSwitch {
  std::string worker;
  v1::WorkerRole from = v1::WORKER_ROLE_UNSPECIFIED;
  v1::WorkerRole to = v1::WORKER_ROLE_UNSPECIFIED;
};

struct BalanceDecision {
  std::optional<RoleSwitch> change;
  double prefill_pressure = 0;
  double decode_pressure = 0;
  int wanted_prefill = 0;
  int wanted_decode = 0;
};

class BalancePolicy {
 public:
  explicit BalancePolicy(const BalanceRules& rules) : rules_(rules) {}

  // Call every half second or so.
  BalanceDecision Decide(SteadyTime now, const BalanceFacts& facts);
  // The change that was decided has been refused.
  void OnRefused(SteadyTime now, const RoleSwitch& change);

 private:
  // The number of workers that a role wants: grows at once, by a factor of two at most, and shrinks once the load is
  // well below.
  static int Wanted(int before, int workers, double pressure, int min, double target);
  v1::WorkerRole PressedRole(int prefills, int decodes) const;
  void NoteGivenUp(SteadyTime now, const BalanceFacts& facts);
  std::optional<RoleSwitch> ChooseWorker(SteadyTime now, const BalanceFacts& facts) const;

  // A worker in a role. Another router's change explains a refusal: the worker is not passed over in its new role.
  using InRole = std::pair<v1::WorkerRole, std::string>;
  // A worker that is passed over, because it refused a change or gave one up.
  struct Passed {
    SteadyTime until = SteadyTime::InfinitePast();
    bool gave_up = false;  // as the latest facts say
  };

  const BalanceRules rules_;
  std::map<InRole, Passed> passed_;
  std::optional<SteadyTime> last_;  // call of Decide
  double prefill_pressure_ = 0;
  double decode_pressure_ = 0;
  int wanted_prefill_ = 0;
  int wanted_decode_ = 0;
  v1::WorkerRole pressed_ = v1::WORKER_ROLE_UNSPECIFIED;
  SteadyTime pressed_since_;
  SteadyTime last_change_ = SteadyTime::InfinitePast();
};

}  // namespace baton::router
