#include "prefill_worker/prefill_service.h"

#include <memory>
#include <utility>

#include "worker/attempt_service.h"

namespace baton {

PrefillService::PrefillService(AttemptLimits limits, Admission* admission, PrefillEngine* engine, EngineThread* thread)
    : limits_(std::move(limits)), admission_(*admission), engine_(*engine), thread_(*thread) {}

grpc::ServerWriteReactor<v1::PrefillEvent>* PrefillService::Prefill(grpc::CallbackServerContext*,
                                                                    const v1::PrefillRequest* request) {
  absl::StatusOr<Attempt> attempt = ParseAttempt(request->header(), limits_);
  if (!attempt.ok()) return Refuse<v1::PrefillEvent>(attempt.status());
  if (request->target().handoff_address().empty()) {
    return Refuse<v1::PrefillEvent>(absl::InvalidArgumentError("target.handoff_address is empty, expected host:port"));
  }
  absl::StatusOr<std::shared_ptr<void>> ticket = admission_.Enter();
  if (!ticket.ok()) return Refuse<v1::PrefillEvent>(ticket.status());

  const HandoffTarget target{request->target().worker_id(), request->target().epoch(),
                             request->target().handoff_address()};
  auto stream = MakeStream<v1::PrefillEvent>(*std::move(ticket));
  const AttemptKey key = attempt->key;
  thread_.Post([this, attempt = *std::move(attempt), target, stream] { engine_.Submit(attempt, target, stream); });
  return EventStream<v1::PrefillEvent>::Serve(std::move(stream),
                                              [this, key] { thread_.Post([this, key] { engine_.Cancel(key); }); });
}

}  // namespace baton
