// SPDX-License-Identifier: Apache-2.0
// The PrefillWorker service. A Prefill call is one attempt; cancelling the call aborts the attempt.
//
// Thread-safe.
#pragma once

#include "baton/v1/worker.grpc.pb.h"
#include "worker/admission/attempt_gate.h"
#include "worker/attempt.h"
#include "worker/compute.h"

namespace baton {

class PrefillService final : public v1::PrefillWorker::CallbackService {
 public:
  // All parts outlive the service.
  PrefillService(AttemptLimits limits, AttemptGate* gate, Compute* compute);

  grpc::ServerWriteReactor<v1::PrefillEvent>* Prefill(grpc::CallbackServerContext* context,
                                                      const v1::PrefillRequest* request) override;

 private:
  const AttemptLimits limits_;
  AttemptGate& gate_;
  Compute& compute_;
};

}  // namespace baton
