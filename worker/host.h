// SPDX-License-Identifier: Apache-2.0
// A WorkerHost owns the parts of a worker process of any role: model, page pool, transport, metrics, and the gRPC
// server with the control service.
//
// For the main thread. Each part's header says which threads may use the part.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "baton/v1/worker.grpc.pb.h"
#include "common/grpc.h"
#include "common/metrics.h"
#include "common/shutdown.h"
#include "engine/kv/page_pool.h"
#include "engine/kv/tiers/kv_tiers.h"
#include "engine/model/model.h"
#include "kvtransfer/endpoints/endpoints.h"
#include "kvtransfer/transport.h"
#include "worker/admission/attempt_gate.h"
#include "worker/attempt.h"
#include "worker/compute.h"
#include "worker/control_service.h"
#include "worker/load.h"
#include "worker/metrics.h"
#include "worker/options.h"
#include "worker/role_keeper.h"

namespace baton {

class WorkerHost {
 public:
  // Loads the model and takes the memory. `with_transport`: peers can reach the pages' memory.
  static absl::StatusOr<std::unique_ptr<WorkerHost>> Create(const WorkerOptions& options, v1::WorkerRole role,
                                                            bool with_transport);

  Model* model() { return model_.get(); }
  PagePool* pool() { return pool_.get(); }
  Transport* transport() { return transport_.get(); }  // null without one
  WorkerMetrics* metrics() { return metrics_.get(); }
  WorkerLoadBoard* load() { return &load_; }
  AttemptGate* gate() { return &gate_; }
  Compute::Parts compute_parts() {
    return {
        .model = model_.get(), .pool = pool_.get(), .tiers = tiers_.get(), .metrics = metrics_.get(), .load = &load_};
  }
  HandoffIdentity identity() const { return {options_.worker_id, epoch_, model_->numerics_id()}; }
  // Returns the limits of attempts on the routes of `role`.
  AttemptLimits limits(v1::WorkerRole role) const;

  // The part of the process that the owner of the scheduler and of the services adds.
  struct Work {
    std::vector<grpc::Service*> services;
    std::vector<std::string> service_names;             // in full
    std::function<void()> start_draining;               // running sequences are to leave; no reservation is taken
    std::function<void(const char* why)> end_waiting;   // end the attempts whose prompts have not begun
    std::function<void()> stop_draining;                // the opposite
    std::function<void(const char* why)> end_attempts;  // a drain's time is over: end all attempts soon
    std::function<void(v1::WorkerRole)> take_role;      // no attempt is left that `role` would not take
  };
  // Serves, and changes the role when asked to, until a signal. Then drains: refuses new attempts, and lets running
  // attempts finish within drain_timeout or until a second signal. Returns OK also if running attempts were ended.
  absl::Status Serve(ShutdownSignal& signal, const Work& work);

  // Ends the transport and the tiers: no event follows. Cached pages go to the tiers first, for a while.
  void StopIo();

 private:
  WorkerHost(const WorkerOptions& options, v1::WorkerRole role, bool with_transport);
  absl::Status CreatePool(bool with_transport);
  absl::Status CreateTiers();
  void SetPageMetrics() const;
  absl::Status WarmUp();
  v1::WorkerStatus Snapshot() const;
  // Returns whether all attempts have ended.
  bool Drain(ShutdownSignal& signal, const Work& work);

  const WorkerOptions options_;
  const uint64_t epoch_;
  AssetFiles assets_;
  std::string assets_fingerprint_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<MetricsServer> metrics_server_;
  std::unique_ptr<WorkerMetrics> metrics_;
  std::unique_ptr<PagePool> pool_;
  std::unique_ptr<KvTiers> tiers_;  // null without tiers
  std::unique_ptr<Transport> transport_;
  WorkerLoadBoard load_;
  AttemptGate gate_;
  RoleKeeper role_;
  std::atomic<bool> draining_{false};
  const v1::ProcessFacts facts_;
};

}  // namespace baton
