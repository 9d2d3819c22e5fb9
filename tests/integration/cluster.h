// SPDX-License-Identifier: Apache-2.0
// Routers and their workers as real processes on the loopback or in a virtual network. Each process has its own ports,
// metrics and log file.
//
//   ASSERT_OK_AND_ASSIGN(auto cluster, Cluster::Start({.workers = {Prefill("p0"), Decode("d0")}}));
//   cluster->client().Generate(...);
//   cluster->Kill("p0");
//
// Not thread-safe, except client(). The destructor sends SIGTERM to every process. The test fails if a process does not
// exit with 0, or ended before without an order. No process survives the destructor. After a failed test, the
// destructor prints the ends of the logs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "baton/v1/worker.grpc.pb.h"
#include "client.h"
#include "process.h"
#include "tests/metrics_page.h"
#include "virtual_network.h"

namespace baton::testing {

// How long a test waits for an event that should take well under a second: sanitizers and a busy machine are slow.
inline constexpr absl::Duration kPatience = absl::Seconds(60);
// Ten times the bound within which an abort reaches everyone.
inline constexpr absl::Duration kAbortPatience = absl::Seconds(10);

enum class WorkerKind { kPrefill, kDecode, kBoth };

struct WorkerSpec {
  std::string name;  // its worker id
  WorkerKind kind = WorkerKind::kPrefill;
  std::vector<std::string> flags;  // override the cluster's flags
  std::string secret;              // default: the cluster's secret
};
WorkerSpec Prefill(std::string name, std::vector<std::string> flags = {});
WorkerSpec Decode(std::string name, std::vector<std::string> flags = {});
WorkerSpec Both(std::string name, std::vector<std::string> flags = {});

struct ClusterSpec {
  std::vector<WorkerSpec> workers = {};
  std::vector<std::string> worker_flags = {};  // of every worker
  std::vector<std::string> router_flags = {};
  bool wait_until_ready = true;
  bool workers_file = false;          // routers read the workers' addresses from a file, for Join and Leave
  int routers = 1;                    // "router", "router1", ...
  VirtualNetwork* network = nullptr;  // with a node for each process; outlives the cluster
  bool shipped_numerics = false;      // the workers' default KV type and threads; otherwise f32 and one thread
};

class Cluster {
 public:
  // Starts the processes. Waits until every worker serves and every pair is ready for every router, unless the spec
  // says otherwise.
  static absl::StatusOr<std::unique_ptr<Cluster>> Start(ClusterSpec spec);
  ~Cluster();

  const TestClient& client(size_t router = 0) const { return *routers_[router].client; }
  const std::string& target() const { return routers_[0].target; }
  Process& process(const std::string& name);  // of a worker or router

  // Sends SIGKILL. The process's end is no failure from now on.
  void Kill(const std::string& name);
  // Sends SIGTERM. The process may end at any time.
  void Drain(const std::string& name);
  // Sends SIGTERM, waits for the end, and returns the wait status.
  absl::StatusOr<int> Terminate(const std::string& name, absl::Duration timeout = kPatience);
  // Starts a further worker, and lists the worker in the workers file. Does not wait.
  absl::Status Join(const WorkerSpec& worker);
  // Takes the worker off the workers file. The process runs on.
  void Leave(const std::string& name);
  // Kills the process, if running, and starts the process again with the same flags and ports.
  absl::Status Restart(const std::string& name);

  // Waits until the (first) router's status fulfils `condition`; DEADLINE_EXCEEDED shows the last status.
  absl::Status WaitFor(const std::string& what, const std::function<bool(const v1::GetStatusResponse&)>& condition,
                       absl::Duration timeout = kPatience, size_t router = 0);
  absl::Status WaitReady(absl::Duration timeout = kPatience);
  // Waits for I3: on every running worker no sequence runs or waits, all used pages belong to the prefix cache, and no
  // page is in quarantine. Checks the worker's status twice, then the metrics, which lag a little.
  absl::Status WaitIdle(absl::Duration timeout = kAbortPatience);

  absl::StatusOr<MetricsPage> Metrics(const std::string& name);  // of a worker, or the first router
  absl::StatusOr<v1::GetStatusResponse> Status(size_t router = 0);
  // Returns the worker's present status.
  absl::StatusOr<v1::WorkerStatus> WorkerStatus(const std::string& name);

 private:
  struct Worker {
    WorkerSpec spec;
    std::string host;
    std::string address;
    bool listed = true;
    std::unique_ptr<v1::WorkerControl::Stub> control;
    int metrics_port = 0;
    std::unique_ptr<Process> process;
  };
  struct Router {
    std::string target;
    std::string host;
    int metrics_port = 0;
    std::unique_ptr<Process> process;
    std::unique_ptr<TestClient> client;
  };

  explicit Cluster(ClusterSpec spec) : spec_(std::move(spec)) {}
  absl::Status Launch();
  absl::Status LaunchWorker(const WorkerSpec& worker_spec);
  absl::Status LaunchRouter(const std::string& name);
  std::string WorkersFile() const { return folder_ + "/workers"; }
  void WriteWorkersFile();
  Worker& Find(const std::string& name);
  absl::Status CheckAlive();
  absl::Status IdleByStatus(Worker& worker);
  absl::Status IdleByMetrics(Worker& worker);
  void StopAll();

  const ClusterSpec spec_;
  std::string folder_;
  std::vector<Worker> workers_;
  std::vector<Router> routers_;
  std::set<std::string> ended_by_test_;
};

}  // namespace baton::testing
