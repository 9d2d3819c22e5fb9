// SPDX-License-Identifier: Apache-2.0
// Feeds the WorkerTable and carries out its effects: watches every listed worker, fetches model assets, probes
// pairs, and ends the calls to lost workers. Places requests.
//
// Thread-safe. One lock guards the table. Effects run after the lock is released, on gRPC's threads.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/mutex.h"
#include "common/steady_time.h"
#include "router/placer.h"
#include "router/timer.h"
#include "router/worker_table.h"

namespace baton::router {

class WorkerRegistry : public Placer, public std::enable_shared_from_this<WorkerRegistry> {
 public:
  // Sends a request through the pair and reports the result. Must not block.
  using Probe = std::function<void(const Placement& placement, std::shared_ptr<const ModelAssets> assets,
                                   std::function<void(absl::Status)> done)>;
  struct Options {
    absl::Duration peer_timeout = absl::Seconds(3);
    absl::Duration heartbeat_interval = absl::Milliseconds(500);
    uint32_t max_prompt_tokens = 0;
    PlacementRules placement = {};
    Probe probe;
    // Runs after every change and regularly, never under the lock.
    std::function<void(const WorkerRegistry&)> on_change;
  };

  explicit WorkerRegistry(Options options);
  ~WorkerRegistry() override;

  void Start();
  // Sets the addresses of all workers, at any time.
  void SetWorkers(std::span<const std::string> addresses);
  // Cancels every call to every worker and waits until all calls have ended. Requests must have ended before.
  void Shutdown(SteadyTime deadline);

  PlacementResult Place(const PlacementQuery& query) override;
  void PairBroken(uint64_t pair, const std::string& why) override;
  void HandedOver(uint64_t pair, const v1::HandedOver& measured) override;

  absl::StatusOr<ServedModel> FindModel(const std::string& name);
  absl::Status CheckPin(const RequestSpec& spec) const;
  size_t ready_pairs() const;
  std::map<std::string, int> workers_by_state() const;
  void Describe(v1::GetStatusResponse& response) const;
  void Describe(v1::ListModelsResponse& response) const;

 private:
  class Link;    // to one listed address
  struct Fetch;  // of one model's assets

  void Tick();
  // Changes the table, then carries out the effects.
  template <typename Change>
  void Update(Change change);
  void Run(WorkerTable::Effects effects);
  std::shared_ptr<const Link> FindLink(size_t worker);  // null: forgotten
  void Connect(size_t worker);
  void WatchPages(const WorkerTable::WatchPages& watch);
  void FetchAssets(size_t worker, const std::string& fingerprint);
  void StartProbe(const Placement& placement);

  const Options options_;

  mutable Mutex mutex_;
  std::map<size_t, std::shared_ptr<const Link>> links_ ABSL_GUARDED_BY(mutex_);  // by the table's index
  WorkerTable table_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::shared_ptr<const Link>> closing_
      ABSL_GUARDED_BY(mutex_);  // cancelled calls, for which Shutdown waits
  Timer tick_ ABSL_GUARDED_BY(mutex_);
  int updates_ ABSL_GUARDED_BY(mutex_) = 0;  // running updates, for which Shutdown waits
  CondVar no_updates_;
};

}  // namespace baton::router
