// SPDX-License-Identifier: Apache-2.0
// The DecodeWorker service. A Decode call is one attempt; cancelling the call aborts the attempt. A Migrate call hands
// the sequence of a running attempt over.
//
// Thread-safe.
#pragma once

#include "baton/v1/worker.grpc.pb.h"
#include "kvtransfer/endpoints/endpoints.h"
#include "worker/admission/attempt_gate.h"
#include "worker/attempt.h"
#include "worker/compute.h"

namespace baton {

class DecodeService final : public v1::DecodeWorker::CallbackService {
 public:
  struct Parts {  // all outlive the service
    AttemptGate* gate = nullptr;
    Compute* compute = nullptr;
    HandoffReceiver* receiver = nullptr;  // null: no handoffs
  };
  DecodeService(AttemptLimits limits, const Parts& parts);

  grpc::ServerWriteReactor<v1::DecodeEvent>* Decode(grpc::CallbackServerContext* context,
                                                    const v1::DecodeRequest* request) override;

  grpc::ServerWriteReactor<v1::PrefillEvent>* Migrate(grpc::CallbackServerContext* context,
                                                      const v1::MigrateRequest* request) override;

 private:
  const AttemptLimits limits_;
  const Parts parts_;
};

}  // namespace baton
