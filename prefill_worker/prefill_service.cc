// SPDX-License-Identifier: Apache-2.0
#include "prefill_worker/prefill_service.h"

#include <memory>
#include <utility>

#include "worker/attempt_service.h"
#include "worker/reports.h"

namespace baton {

PrefillService::PrefillService(AttemptLimits limits, AttemptGate* gate, Compute* compute)
    : limits_(std::move(limits)), gate_(*gate), compute_(*compute) {}

grpc::ServerWriteReactor<v1::PrefillEvent>* PrefillService::Prefill(grpc::CallbackServerContext*,
                                                                    const v1::PrefillRequest* request) {
  absl::StatusOr<Attempt> attempt = ParseAttempt(request->header(), limits_);
  if (!attempt.ok()) return Refuse<v1::PrefillEvent>(attempt.status());
  if (request->target().handoff_address().empty()) {
    return Refuse<v1::PrefillEvent>(absl::InvalidArgumentError("target.handoff_address is empty, expected host:port"));
  }
  absl::StatusOr<std::shared_ptr<void>> ticket = gate_.Enter(Route::kHandOver);
  if (!ticket.ok()) return Refuse<v1::PrefillEvent>(ticket.status());

  const HandoffTarget target{request->target().worker_id(), request->target().epoch(),
                             request->target().handoff_address()};
  auto stream = MakeStream<v1::PrefillEvent>(*std::move(ticket));
  const AttemptKey key = attempt->key;
  compute_.Post([attempt = *std::move(attempt), target, stream](Scheduler& scheduler) {
    scheduler.HandOver(attempt, target, ReportTo(stream));
  });
  return EventStream<v1::PrefillEvent>::Serve(
      std::move(stream), [this, key] { compute_.Post([key](Scheduler& scheduler) { scheduler.Cancel(key); }); });
}

}  // namespace baton
