// SPDX-License-Identifier: Apache-2.0
// A WorkerHost owns the parts of a worker process of any role: model, page pool, transport, metrics, and the gRPC
// server with the control service.
//
// For the main thread. Each part's header says which threads may use the part.
#pragma once

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
  AttemptLimits limits() const;

  // The parts that a role adds to the process.
  struct Role {
    grpc::Service* service = nullptr;
    std::string service_name;              // in full
    std::function<void()> stop_accepting;  // a drain begins
    std::function<void()> fail_all;        // the drain's time is over: end all attempts soon
  };
  // Serves until a signal, then drains: refuses new attempts, and lets running attempts finish within drain_timeout or
  // until a second signal. Returns OK also if running attempts were ended.
  absl::Status Serve(ShutdownSignal& signal, const Role& role);

  // Ends the transport and the tiers: no event follows. Cached pages go to the tiers first, for a while.
  void StopIo();

 private:
  WorkerHost(const WorkerOptions& options, v1::WorkerRole role);
  absl::Status CreatePool(bool with_transport);
  absl::Status CreateTiers();
  void SetPageMetrics() const;
  absl::Status WarmUp();
  v1::WorkerStatus Snapshot() const;
  // Returns whether all attempts have ended.
  bool Drain(ShutdownSignal& signal, const Role& role);

  const WorkerOptions options_;
  const v1::WorkerRole role_;
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
  std::atomic<bool> draining_{false};
  const v1::ProcessFacts facts_;
};

// Returns "prefill", "decode" or "both".
std::string RoleName(v1::WorkerRole role);

}  // namespace baton
