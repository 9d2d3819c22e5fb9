// The PrefillWorker service: one Prefill call is one attempt, and its cancellation the attempt's abort.
//
// Thread-safe.
#pragma once

#include "baton/v1/worker.grpc.pb.h"
#include "prefill_worker/prefill_engine.h"
#include "worker/admission.h"
#include "worker/attempt.h"
#include "worker/engine_thread.h"

namespace baton {

class PrefillService final : public v1::PrefillWorker::CallbackService {
 public:
  // All outlive the service.
  PrefillService(AttemptLimits limits, Admission* admission, PrefillEngine* engine, EngineThread* thread);

  grpc::ServerWriteReactor<v1::PrefillEvent>* Prefill(grpc::CallbackServerContext* context,
                                                      const v1::PrefillRequest* request) override;

 private:
  const AttemptLimits limits_;
  Admission& admission_;
  PrefillEngine& engine_;
  EngineThread& thread_;
};

}  // namespace baton
