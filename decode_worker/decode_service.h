// The DecodeWorker service: one Decode call is one attempt, and its cancellation the attempt's abort. A Migrate call is
// the way out of one.
//
// Thread-safe.
#pragma once

#include "baton/v1/worker.grpc.pb.h"
#include "decode_worker/decode_engine.h"
#include "kvtransfer/endpoints/endpoints.h"
#include "worker/admission.h"
#include "worker/attempt.h"
#include "worker/engine_thread.h"

namespace baton {

class DecodeService final : public v1::DecodeWorker::CallbackService {
 public:
  struct Parts {  // all outlive the service
    Admission* admission = nullptr;
    DecodeEngine* engine = nullptr;
    EngineThread* thread = nullptr;
    HandoffReceiver* receiver = nullptr;  // null: no handoffs
    bool prefills_locally = false;        // role both
  };
  DecodeService(AttemptLimits limits, const Parts& parts);

  grpc::ServerWriteReactor<v1::DecodeEvent>* Decode(grpc::CallbackServerContext* context,
                                                    const v1::DecodeRequest* request) override;

  grpc::ServerWriteReactor<v1::PrefillEvent>* Migrate(grpc::CallbackServerContext* context,
                                                      const v1::MigrateRequest* request) override;

 private:
  absl::Status CheckMode(bool local) const;

  const AttemptLimits limits_;
  const Parts parts_;
};

}  // namespace baton
