// SPDX-License-Identifier: Apache-2.0
#include "worker/compute.h"

#include <utility>

namespace baton {

Compute::Compute(const Parts& parts, const ScheduleLimits& schedule, const CapacityLedger::Limits& capacity)
    : parts_(parts), schedule_(schedule), ledger_(parts.pool, capacity), reservations_(&ledger_) {
  parts_.pool->set_on_free([this] { ledger_.OnPagesFree(); });
}

Compute::~Compute() {
  Stop();
  scheduler_.reset();
  parts_.pool->set_on_free(nullptr);
}

HandoffReceiver::Events Compute::ReceiverEvents() {
  return {.on_received =
              [this](ReceivedSequence received) {
                // A std::function must be copyable, so that the pages travel shared.
                auto shared = std::make_shared<ReceivedSequence>(std::move(received));
                Post([shared](Scheduler& scheduler) { scheduler.OnReceived(std::move(*shared)); });
              },
          .on_failed =
              [this](const AttemptKey& key, const Outcome& why) {
                Post([key, why](Scheduler& scheduler) { scheduler.OnReceiveFailed(key, why); });
              }};
}

void Compute::Start(HandoffSender* sender, HandoffReceiver* receiver) {
  scheduler_ = std::make_unique<Scheduler>(
      Scheduler::Parts{.model = parts_.model,
                       .pool = parts_.pool,
                       .ledger = &ledger_,
                       .sender = sender,
                       .receiver = receiver,
                       .tiers = parts_.tiers,
                       .metrics = parts_.metrics,
                       .load = parts_.load,
                       .post = [this](std::function<void()> command) { thread_.Post(std::move(command)); }},
      schedule_);
  ledger_.SetHooks({.on_local = [this] { thread_.Post([] {}); },
                    .on_reservation =
                        [receiver] {
                          if (receiver != nullptr) receiver->Poke();
                        }});
  thread_.Start([scheduler = scheduler_.get()] {
    return scheduler->Tick() ? SteadyTime::InfinitePast() : scheduler->next_wake();
  });
}

void Compute::Post(std::function<void(Scheduler&)> command) {
  thread_.Post([this, command = std::move(command)] { command(*scheduler_); });
}

void Compute::Stop() {
  thread_.Stop();
  ledger_.SetHooks({});
}

}  // namespace baton
