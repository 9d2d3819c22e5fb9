// SPDX-License-Identifier: Apache-2.0
// The client's side of one Generate call: checks the request, starts its run, streams the answer. For .cc files (gRPC).
//
// A slow client delays no worker: chunks that come during a write wait here, merged. The request's max_tokens bounds
// the waiting chunks. After the request's end, the client must read the rest by the request's deadline, or soon after a
// failure. Otherwise the call is cancelled.
//
// The object lives until gRPC's OnDone. The lock guards waiting chunks; no gRPC call is made under the lock.
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "baton/v1/inference.grpc.pb.h"
#include "common/mutex.h"
#include "common/steady_time.h"
#include "router/admission.h"
#include "router/request_run.h"
#include "router/timer.h"
#include "router/worker_registry.h"

namespace baton::router {

// Which changes of workers' roles clients may ask for.
enum class RoleChanges : uint8_t { kOff, kOn, kForced };

// The parts that services use. All parts outlive every call.
struct ServiceContext {
  std::shared_ptr<WorkerRegistry> registry;
  Admission* admission = nullptr;
  RouterMetrics* metrics = nullptr;
  Tracer* tracer = nullptr;
  RetryPolicy retry;
  absl::Duration default_deadline = absl::Minutes(10);
  DefaultObjectives objectives = {};
  WhenLate when_late = WhenLate::kRefuse;
  bool allow_pins = true;
  RoleChanges role_changes = RoleChanges::kOn;
  v1::ProcessFacts facts;  // of this process, when it started
};

class GenerateCall : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                     public ResponseSink,
                     public std::enable_shared_from_this<GenerateCall> {
 public:
  static GenerateCall* Start(const ServiceContext& context, grpc::CallbackServerContext* call,
                             const grpc::ByteBuffer& request);

  // ResponseSink, from the request's strand:
  void OnChunk(v1::Chunk chunk) override;
  void OnFinish(v1::Finish finish) override;
  void OnFail(const absl::Status& status, absl::Duration retry_after) override;

 private:
  struct Ending {
    grpc::Status status;
    absl::Duration retry_after;
  };

  GenerateCall(const ServiceContext& context, grpc::CallbackServerContext* call) : context_(context), call_(call) {}

  absl::Status Run(const v1::GenerateRequest& request);
  absl::Duration Timeout() const;
  std::string Traceparent() const;  // the client's header; empty: none
  // Starts the next write or ends the call, unless a write is pending.
  void Pump();
  // Cancels the call after `left`, unless the client has read everything by then.
  void LimitReading(absl::Duration left);
  void OnReadingOverdue();
  // Ends the run: the client is gone, or the router stops.
  void Cancel();

  // gRPC, on its threads:
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  const ServiceContext& context_;
  grpc::CallbackServerContext* const call_;
  std::shared_ptr<GenerateCall> self_;  // until OnDone
  Admission::Ticket ticket_;
  const RequestId id_ = RequestId::Random();
  std::string model_;                                   // empty until known
  SteadyTime deadline_ = SteadyTime::InfiniteFuture();  // set when the request is admitted
  std::unique_ptr<RequestTrace> trace_;                 // until the run takes it
  std::shared_ptr<RequestRun> run_;
  grpc::ByteBuffer writing_;  // of the pending write

  Mutex mutex_;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;        // a write is pending, or the call has ended
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;      // a write failed: the client is gone
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;       // Finish was or is being called: gRPC may end the context
  bool cancelling_ ABSL_GUARDED_BY(mutex_) = false;  // the context is in use: no Finish yet
  Timer reading_timer_ ABSL_GUARDED_BY(mutex_);
  std::deque<v1::Chunk> chunks_ ABSL_GUARDED_BY(mutex_);
  std::optional<v1::Finish> finish_ ABSL_GUARDED_BY(mutex_);
  std::optional<Ending> ending_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::router
