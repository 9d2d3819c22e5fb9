// Routers and their workers as real processes on the loopback, or in a network of the test's own, each with its own
// ports, metrics and log file.
//
//   ASSERT_OK_AND_ASSIGN(auto cluster, Cluster::Start({.workers = {Prefill("p0"), Decode("d0")}}));
//   cluster->client().Generate(...);
//   cluster->Kill("p0");
//
// Not thread-safe, except client(). When it is destroyed it asks every process to end (SIGTERM) and fails the test when
// one does not exit with 0, or has ended before without having been told to; no process survives it. After a failed
// test it prints the ends of the logs.
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

// What a test waits for anything that should take well under a second. Generous: sanitizers and a busy machine are
// slow.
inline constexpr absl::Duration kPatience = absl::Seconds(60);
// Ten times the second within which an abort reaches everyone.
inline constexpr absl::Duration kAbortPatience = absl::Seconds(10);

enum class WorkerKind { kPrefill, kDecode, kBoth };

struct WorkerSpec {
  std::string name;  // its worker id
  WorkerKind kind = WorkerKind::kPrefill;
  std::vector<std::string> flags;  // win over the cluster's
  std::string secret;              // default: the cluster's
};
WorkerSpec Prefill(std::string name, std::vector<std::string> flags = {});
WorkerSpec Decode(std::string name, std::vector<std::string> flags = {});
WorkerSpec Both(std::string name, std::vector<std::string> flags = {});

struct ClusterSpec {
  std::vector<WorkerSpec> workers = {};
  std::vector<std::string> worker_flags = {};  // of every worker
  std::vector<std::string> router_flags = {};
  bool wait_until_ready = true;
  int routers = 1;                    // "router", "router1", ...
  VirtualNetwork* network = nullptr;  // with a node for each process; outlives the cluster
  bool shipped_numerics = false;      // KV type and threads as nobody sets them; otherwise f32 and one thread
};

class Cluster {
 public:
  // Starts the processes and, unless told otherwise, waits until every worker serves and every pair is ready for every
  // router.
  static absl::StatusOr<std::unique_ptr<Cluster>> Start(ClusterSpec spec);
  ~Cluster();

  const TestClient& client(size_t router = 0) const { return *routers_[router].client; }
  const std::string& target() const { return routers_[0].target; }
  Process& process(const std::string& name);  // of a worker or router

  // SIGKILL. That this process has ended is no failure from now on.
  void Kill(const std::string& name);
  // SIGTERM; it may end when it likes.
  void Drain(const std::string& name);
  // SIGTERM; its wait status once it has ended.
  absl::StatusOr<int> Terminate(const std::string& name, absl::Duration timeout = kPatience);
  // Kills it, if it runs, and starts it again with the same flags and ports.
  absl::Status Restart(const std::string& name);

  // Waits until the (first) router's status fulfils `condition`; DEADLINE_EXCEEDED shows the last status.
  absl::Status WaitFor(const std::string& what, const std::function<bool(const v1::GetStatusResponse&)>& condition,
                       absl::Duration timeout = kPatience, size_t router = 0);
  absl::Status WaitReady(absl::Duration timeout = kPatience);
  // I3: on every running worker no sequence runs or waits, the pages used are those of the prefix cache, and none is in
  // quarantine: by the worker's status as of this moment, twice, and then by its metrics, which lag a little.
  absl::Status WaitIdle(absl::Duration timeout = kAbortPatience);

  absl::StatusOr<MetricsPage> Metrics(const std::string& name);  // of a worker, or the first router
  absl::StatusOr<v1::GetStatusResponse> Status(size_t router = 0);
  // What the worker says of itself at this moment.
  absl::StatusOr<v1::WorkerStatus> WorkerStatus(const std::string& name);

 private:
  struct Worker {
    WorkerSpec spec;
    std::string host;
    std::string address;
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

  Cluster() = default;
  absl::Status Launch(const ClusterSpec& spec);
  absl::Status LaunchWorker(const ClusterSpec& spec, const WorkerSpec& worker_spec);
  absl::Status LaunchRouter(const ClusterSpec& spec, const std::string& name);
  Worker& Find(const std::string& name);
  absl::Status CheckAlive();
  absl::Status IdleByStatus(Worker& worker);
  absl::Status IdleByMetrics(Worker& worker);
  void StopAll();

  std::string folder_;
  std::vector<Worker> workers_;
  std::vector<Router> routers_;
  std::set<std::string> ended_by_test_;
};

}  // namespace baton::testing
