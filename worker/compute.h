// SPDX-License-Identifier: Apache-2.0
// The computing half of a worker: the capacity ledger, the scheduler, and the engine thread on which the scheduler
// runs.
//
// Order of use: construct; create the handoff endpoints with capacity() and ReceiverEvents(); Start; Post; Stop. Steps
// compute in the transport's memory: call Stop before the transport ends.
//
// Post is thread-safe; the owner's thread calls all other methods. Reports of the endpoints after Stop are dropped.
#pragma once

#include <functional>
#include <memory>

#include "engine/kv/page_pool.h"
#include "engine/model/model.h"
#include "kvtransfer/endpoints/endpoints.h"
#include "worker/admission/capacity_ledger.h"
#include "worker/admission/reservations.h"
#include "worker/engine_thread.h"
#include "worker/load.h"
#include "worker/metrics.h"
#include "worker/scheduler/scheduler.h"

namespace baton {

class Compute {
 public:
  struct Parts {  // all outlive the object
    Model* model = nullptr;
    PagePool* pool = nullptr;
    TierLoader* tiers = nullptr;  // null without tiers
    WorkerMetrics* metrics = nullptr;
    WorkerLoadBoard* load = nullptr;
  };
  Compute(const Parts& parts, const ScheduleLimits& schedule, const CapacityLedger::Limits& capacity);
  ~Compute();
  Compute(const Compute&) = delete;
  Compute& operator=(const Compute&) = delete;

  HandoffCapacity* capacity() { return &reservations_; }
  // Sets the limits of later grants. Thread-safe.
  void SetCapacity(const CapacityLedger::Limits& limits) { ledger_.SetLimits(limits); }
  // Reports of a receiver, which become calls of the scheduler.
  HandoffReceiver::Events ReceiverEvents();

  // Either endpoint may be null. The endpoints must outlive the last command.
  void Start(HandoffSender* sender, HandoffReceiver* receiver);
  // Runs `command` on the engine thread. Never blocks.
  void Post(std::function<void(Scheduler&)> command);
  // Runs the commands posted before, then ends the thread. The ledger grants nothing afterwards. Idempotent.
  void Stop();

 private:
  const Parts parts_;
  const ScheduleLimits schedule_;
  EngineThread thread_;
  CapacityLedger ledger_;
  Reservations reservations_;
  std::unique_ptr<Scheduler> scheduler_;
};

}  // namespace baton
