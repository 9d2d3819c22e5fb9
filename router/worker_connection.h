// SPDX-License-Identifier: Apache-2.0
// The connection to one start of one worker: channel, stubs, and the attempts' calls. For .cc files only (gRPC).
//
// Immutable but for the call group; thread-safe.
#pragma once

#include <memory>
#include <utility>

#include "baton/v1/worker.grpc.pb.h"
#include "router/stream_call.h"

namespace baton::router {

class WorkerConnection {
 public:
  explicit WorkerConnection(std::shared_ptr<grpc::Channel> channel)
      : prefill_(v1::PrefillWorker::NewStub(channel)),
        decode_(v1::DecodeWorker::NewStub(channel)),
        control_(v1::WorkerControl::NewStub(channel)) {}

  v1::PrefillWorker::Stub& prefill() { return *prefill_; }
  v1::DecodeWorker::Stub& decode() { return *decode_; }
  v1::WorkerControl::Stub& control() { return *control_; }
  // The registry cancels these calls when the worker is lost.
  const std::shared_ptr<CallGroup>& calls() const { return calls_; }

 private:
  const std::unique_ptr<v1::PrefillWorker::Stub> prefill_;
  const std::unique_ptr<v1::DecodeWorker::Stub> decode_;
  const std::unique_ptr<v1::WorkerControl::Stub> control_;
  const std::shared_ptr<CallGroup> calls_ = std::make_shared<CallGroup>();
};

}  // namespace baton::router
