// SPDX-License-Identifier: Apache-2.0
// Runs a BalancePolicy for each model on the registry's facts: publishes how many workers of each role the load wants
// and, if told to, asks workers to change their role. A log line tells each request and each new number.
//
// Thread-safe. Runs on gRPC's threads, twice a second, from Start to Stop.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "common/mutex.h"
#include "common/steady_time.h"
#include "router/balance.h"
#include "router/metrics.h"
#include "router/timer.h"
#include "router/worker_registry.h"

namespace baton::router {

class BalanceController : public std::enable_shared_from_this<BalanceController> {
 public:
  enum class Mode { kAdvise, kSwitch };

  // `metrics` outlives the last tick: Stop waits for a tick that runs.
  BalanceController(Mode mode, const BalanceRules& rules, std::shared_ptr<WorkerRegistry> registry,
                    RouterMetrics* metrics);

  void Start();
  void Stop();

 private:
  struct OfModel {
    BalancePolicy policy;
    int wanted_prefill = 0;
    int wanted_decode = 0;
  };

  void Tick();
  // Returns the decisions to change a role, by model.
  std::map<std::string, BalanceDecision> Advance(SteadyTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Publish(const std::string& model, OfModel& of_model, const BalanceDecision& decision)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Switch(const std::string& model, const BalanceDecision& decision);
  void OnAnswer(const std::string& model, const RoleSwitch& change, const std::string& role, bool taken);

  const Mode mode_;
  const BalanceRules rules_;
  const std::shared_ptr<WorkerRegistry> registry_;
  Mutex mutex_;
  RouterMetrics* metrics_ ABSL_GUARDED_BY(mutex_);  // null once stopped
  std::map<std::string, OfModel> models_ ABSL_GUARDED_BY(mutex_);
  Timer timer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::router
