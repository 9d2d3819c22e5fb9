// SPDX-License-Identifier: Apache-2.0
#include "cluster.h"

#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/grpc.h"
#include "common/status_macros.h"
#include "common/steady_time.h"
#include "tests/files.h"
#include "tests/status_matchers.h"

namespace baton::testing {
namespace {

constexpr char kSecret[] = "a secret of the tests, long enough";
constexpr char kRouter[] = "router";

// Returns whether no other running test has the port; this test then owns the port until it ends. Tests run side by
// side, and each test needs its ports before its processes bind them. Binding a name in the abstract namespace of Unix
// sockets is the claim.
bool ClaimPort(int port) {
  const std::string name = absl::StrCat(std::string(1, '\0'), "baton-test-port-", port);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), address.sun_path);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  const bool claimed = bind(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0 || errno != EADDRINUSE;
  if (!claimed) close(fd);  // else it stays open
  return claimed;
}

bool NobodyListens(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool free = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  close(fd);
  return free;
}

// Returns a port of the loopback for this test alone, below the kernel's ephemeral ports. The port therefore stays free
// until its process binds the port, also while the process restarts.
int FreePort() {
  static std::mt19937 random{std::random_device()()};
  while (true) {
    const int port = std::uniform_int_distribution<int>(12000, 31000)(random);
    if (ClaimPort(port) && NobodyListens(port)) return port;
  }
}

std::string Address(const std::string& host, int port) { return absl::StrCat(host, ":", port); }

std::string HostOf(const ClusterSpec& spec, const std::string& name) {
  return spec.network == nullptr ? "127.0.0.1" : spec.network->address(name);
}

int NamespaceOf(const ClusterSpec& spec, const std::string& name) {
  return spec.network == nullptr ? -1 : spec.network->namespace_fd(name);
}

// Merges lists of flags: later flags replace earlier flags, because an option given twice is an error.
std::vector<std::string> MergeFlags(const std::vector<std::vector<std::string>>& lists) {
  std::vector<std::string> order;
  std::map<std::string, std::string> values;
  for (const std::vector<std::string>& list : lists) {
    for (const std::string& flag : list) {
      const std::string name = flag.substr(0, flag.find('='));
      if (values.insert_or_assign(name, flag).second) order.push_back(name);
    }
  }
  std::vector<std::string> merged;
  merged.reserve(order.size());
  for (const std::string& name : order) merged.push_back(values[name]);
  return merged;
}

WorkerSpec MakeSpec(std::string name, WorkerKind kind, std::vector<std::string> flags) {
  return {.name = std::move(name), .kind = kind, .flags = std::move(flags), .secret = kSecret};
}

std::string Describe(int wait_status) {
  if (WIFSIGNALED(wait_status)) return absl::StrCat("signal ", WTERMSIG(wait_status));
  return absl::StrCat("exit code ", WEXITSTATUS(wait_status));
}

}  // namespace

WorkerSpec Prefill(std::string name, std::vector<std::string> flags) {
  return MakeSpec(std::move(name), WorkerKind::kPrefill, std::move(flags));
}
WorkerSpec Decode(std::string name, std::vector<std::string> flags) {
  return MakeSpec(std::move(name), WorkerKind::kDecode, std::move(flags));
}
WorkerSpec Both(std::string name, std::vector<std::string> flags) {
  return MakeSpec(std::move(name), WorkerKind::kBoth, std::move(flags));
}

absl::StatusOr<std::unique_ptr<Cluster>> Cluster::Start(ClusterSpec spec) {
  std::unique_ptr<Cluster> cluster(new Cluster(std::move(spec)));
  BATON_RETURN_IF_ERROR(cluster->Launch());
  if (cluster->spec_.wait_until_ready) BATON_RETURN_IF_ERROR(cluster->WaitReady());
  return cluster;
}

absl::Status Cluster::Launch() {
  std::string name = (std::filesystem::temp_directory_path() / "baton-cluster-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) return absl::InternalError(absl::StrCat("cannot create ", name));
  folder_ = name;

  for (const WorkerSpec& worker : spec_.workers) BATON_RETURN_IF_ERROR(LaunchWorker(worker));
  WriteWorkersFile();
  for (int i = 0; i < spec_.routers; ++i) {
    BATON_RETURN_IF_ERROR(LaunchRouter(i == 0 ? kRouter : absl::StrCat(kRouter, i)));
  }
  return absl::OkStatus();
}

absl::Status Cluster::LaunchWorker(const WorkerSpec& worker_spec) {
  Worker& worker = workers_.emplace_back();
  worker.spec = worker_spec;
  worker.host = HostOf(spec_, worker_spec.name);
  worker.address = Address(worker.host, FreePort());
  worker.control = v1::WorkerControl::NewStub(MakeChannel(worker.address));
  worker.metrics_port = FreePort();
  std::vector<std::string> flags = {"--model=" + (SourceFolder() / "models/demo-chat").string(),
                                    "--model-name=demo",
                                    absl::StrCat("--worker-id=", worker_spec.name),
                                    absl::StrCat("--listen=", worker.address),
                                    absl::StrCat("--metrics-listen=", Address(worker.host, worker.metrics_port)),
                                    "--kv-memory=64MiB"};
  if (!spec_.shipped_numerics) flags.insert(flags.end(), {"--threads=1", "--kv-dtype=f32"});
  if (worker_spec.kind != WorkerKind::kPrefill) {
    flags.push_back(absl::StrCat("--handoff-listen=", Address(worker.host, FreePort())));
  }
  if (worker_spec.kind == WorkerKind::kBoth) flags.emplace_back("--role=both");
  worker.process = std::make_unique<Process>(ProcessSpec{
      .name = worker_spec.name,
      .binary = BinaryFolder() / (worker_spec.kind == WorkerKind::kPrefill ? "baton-prefill" : "baton-decode"),
      .arguments = MergeFlags({flags, spec_.worker_flags, worker_spec.flags}),
      .environment = {absl::StrCat("BATON_SECRET=", worker_spec.secret)},
      .log_file = absl::StrCat(folder_, "/", worker_spec.name, ".log"),
      .namespace_fd = NamespaceOf(spec_, worker_spec.name)});
  return worker.process->Start();
}

absl::Status Cluster::LaunchRouter(const std::string& name) {
  std::vector<std::string> addresses;
  for (const Worker& worker : workers_) addresses.push_back(worker.address);
  const std::string workers =
      spec_.workers_file ? "--workers-file=" + WorkersFile() : "--workers=" + absl::StrJoin(addresses, ",");
  Router& router = routers_.emplace_back();
  router.host = HostOf(spec_, name);
  router.target = Address(router.host, FreePort());
  router.metrics_port = FreePort();
  router.process = std::make_unique<Process>(ProcessSpec{
      .name = name,
      .binary = BinaryFolder() / "baton-router",
      .arguments = MergeFlags({{absl::StrCat("--router-id=", name), absl::StrCat("--listen=", router.target),
                                absl::StrCat("--metrics-listen=", Address(router.host, router.metrics_port)), workers},
                               spec_.router_flags}),
      .environment = {},
      .log_file = absl::StrCat(folder_, "/", name, ".log"),
      .namespace_fd = NamespaceOf(spec_, name)});
  router.client = std::make_unique<TestClient>(router.target);
  return router.process->Start();
}

void Cluster::WriteWorkersFile() {
  std::ofstream file(WorkersFile() + ".new");
  for (const Worker& worker : workers_) {
    if (worker.listed) file << worker.address << "\n";
  }
  file.close();
  std::filesystem::rename(WorkersFile() + ".new", WorkersFile());  // routers see the old file or the new one
}

absl::Status Cluster::Join(const WorkerSpec& worker) {
  BATON_RETURN_IF_ERROR(LaunchWorker(worker));
  WriteWorkersFile();
  return absl::OkStatus();
}

void Cluster::Leave(const std::string& name) {
  Find(name).listed = false;
  WriteWorkersFile();
}

Cluster::~Cluster() {
  StopAll();
  if (::testing::UnitTest::GetInstance()->Failed()) {
    for (Worker& worker : workers_) {
      std::cerr << "---- output of " << worker.spec.name << " ends:\n" << worker.process->Log();
    }
    for (Router& router : routers_) {
      std::cerr << "---- output of " << router.process->name() << " ends:\n" << router.process->Log() << "----\n";
    }
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void Cluster::StopAll() {
  std::vector<Process*> running;
  const auto stop = [this, &running](Process& process) {
    if (process.running()) {
      // A stopped process would not see SIGTERM.
      (void)process.Signal(SIGCONT);
      (void)process.Signal(SIGTERM);
      running.push_back(&process);
    } else if (ended_by_test_.count(process.name()) == 0) {
      ADD_FAILURE() << process.name() << " ended by itself with " << Describe(process.Wait({}).value_or(0));
    }
  };
  for (Router& router : routers_) stop(*router.process);
  for (Worker& worker : workers_) stop(*worker.process);
  for (Process* process : running) {
    const absl::StatusOr<int> status = process->Wait(kPatience);
    if (!status.ok()) {
      ADD_FAILURE() << status.status() << " after SIGTERM";
      process->Kill();
    } else if (*status != 0) {
      ADD_FAILURE() << process->name() << " ended with " << Describe(*status) << " after SIGTERM";
    }
  }
}

Cluster::Worker& Cluster::Find(const std::string& name) {
  const auto it = std::find_if(workers_.begin(), workers_.end(),
                               [&name](const Worker& worker) { return worker.spec.name == name; });
  if (it == workers_.end()) {
    std::cerr << "the test names a worker that does not exist: " << name << std::endl;
    std::abort();
  }
  return *it;
}

Process& Cluster::process(const std::string& name) {
  for (Router& router : routers_) {
    if (router.process->name() == name) return *router.process;
  }
  return *Find(name).process;
}

void Cluster::Kill(const std::string& name) {
  ended_by_test_.insert(name);
  process(name).Kill();
}

void Cluster::Drain(const std::string& name) {
  ended_by_test_.insert(name);
  EXPECT_OK(process(name).Signal(SIGTERM));
}

absl::StatusOr<int> Cluster::Terminate(const std::string& name, absl::Duration timeout) {
  ended_by_test_.insert(name);
  BATON_RETURN_IF_ERROR(process(name).Signal(SIGTERM));
  return process(name).Wait(timeout);
}

absl::Status Cluster::Restart(const std::string& name) {
  process(name).Kill();
  BATON_RETURN_IF_ERROR(process(name).Start());
  ended_by_test_.erase(name);
  return absl::OkStatus();
}

absl::StatusOr<v1::GetStatusResponse> Cluster::Status(size_t router) {
  grpc::ClientContext context;
  context.set_deadline(GrpcDeadline(absl::Seconds(10)));
  context.set_wait_for_ready(true);
  v1::GetStatusResponse response;
  const grpc::Status status = client(router).admin().GetStatus(&context, {}, &response);
  if (!status.ok()) return absl::UnavailableError(status.error_message());
  return response;
}

absl::Status Cluster::CheckAlive() {
  const auto check = [this](Process& process) {
    if (ended_by_test_.count(process.name()) > 0 || process.running()) return absl::OkStatus();
    return absl::InternalError(absl::StrCat(process.name(), " has ended:\n", process.Log()));
  };
  for (Worker& worker : workers_) BATON_RETURN_IF_ERROR(check(*worker.process));
  for (Router& router : routers_) BATON_RETURN_IF_ERROR(check(*router.process));
  return absl::OkStatus();
}

absl::Status Cluster::WaitFor(const std::string& what,
                              const std::function<bool(const v1::GetStatusResponse&)>& condition,
                              absl::Duration timeout, size_t router) {
  const SteadyTime deadline = SteadyTime::Now() + timeout;
  while (true) {
    BATON_RETURN_IF_ERROR(CheckAlive());
    const absl::StatusOr<v1::GetStatusResponse> status = Status(router);
    if (status.ok() && condition(*status)) return absl::OkStatus();
    if (SteadyTime::Now() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("not within ", absl::FormatDuration(timeout), ": ", what, "; the router's status is:\n",
                       status.ok() ? status->DebugString() : status.status().ToString()));
    }
    absl::SleepFor(absl::Milliseconds(20));
  }
}

absl::Status Cluster::WaitReady(absl::Duration timeout) {
  const auto all_ready = [workers = workers_.size()](const v1::GetStatusResponse& status) {
    return status.ready() && static_cast<size_t>(status.workers_size()) == workers &&
           std::all_of(status.workers().begin(), status.workers().end(),
                       [](const v1::WorkerInfo& worker) { return worker.state() == "serving"; }) &&
           std::all_of(status.pairs().begin(), status.pairs().end(),
                       [](const v1::PairInfo& pair) { return pair.state() == "ready"; });
  };
  for (size_t router = 0; router < routers_.size(); ++router) {
    BATON_RETURN_IF_ERROR(WaitFor("every worker serves and every pair is ready", all_ready, timeout, router));
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::WorkerStatus> Cluster::WorkerStatus(const std::string& name) {
  grpc::ClientContext context;
  context.set_deadline(GrpcDeadline(absl::Seconds(10)));
  context.set_wait_for_ready(true);
  v1::WatchStatusRequest request;
  request.set_protocol(v1::WORKER_PROTOCOL_CURRENT);
  request.set_heartbeat_interval_ms(100);
  const auto reader = Find(name).control->WatchStatus(&context, request);
  v1::WorkerStatus status;
  const bool answered = reader->Read(&status);
  context.TryCancel();
  const grpc::Status end = reader->Finish();
  if (!answered) return absl::UnavailableError(absl::StrCat("no status of ", name, ": ", end.error_message()));
  return status;
}

absl::Status Cluster::IdleByStatus(Worker& worker) {
  BATON_ASSIGN_OR_RETURN(const v1::WorkerStatus status, WorkerStatus(worker.spec.name));
  const v1::WorkerLoad& load = status.load();
  if (load.pages_used() == 0 && load.pages_quarantined() == 0 && load.running_sequences() == 0 &&
      load.waiting_requests() == 0) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(worker.spec.name, "'s status: ", load.ShortDebugString()));
}

absl::Status Cluster::IdleByMetrics(Worker& worker) {
  BATON_ASSIGN_OR_RETURN(const MetricsPage page, MetricsPage::Fetch(worker.metrics_port, worker.host));
  const double used = page.Sum("baton_worker_kv_pages", {{"state", "used"}});
  const double quarantined = page.Sum("baton_worker_kv_pages", {{"state", "quarantined"}});
  const double running = page.Sum("baton_worker_running_sequences");
  const double waiting = page.Sum("baton_worker_waiting_sequences");
  if (used == 0 && quarantined == 0 && running == 0 && waiting == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(worker.spec.name, "'s metrics: pages used ", used, ", quarantined ",
                                                    quarantined, "; sequences running ", running, ", waiting ",
                                                    waiting));
}

absl::Status Cluster::WaitIdle(absl::Duration timeout) {
  const SteadyTime deadline = SteadyTime::Now() + timeout;
  for (Worker& worker : workers_) {
    if (!worker.process->running()) continue;
    int idle = 0;  // readings in a row
    while (idle < 2) {
      absl::Status status = IdleByStatus(worker);
      if (status.ok()) status = IdleByMetrics(worker);
      idle = status.ok() ? idle + 1 : 0;
      if (!status.ok() && SteadyTime::Now() >= deadline) {
        return absl::DeadlineExceededError(
            absl::StrCat("not idle within ", absl::FormatDuration(timeout), ": ", status.message()));
      }
      absl::SleepFor(absl::Milliseconds(20));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<MetricsPage> Cluster::Metrics(const std::string& name) {
  if (name == kRouter) return MetricsPage::Fetch(routers_[0].metrics_port, routers_[0].host);
  const Worker& worker = Find(name);
  return MetricsPage::Fetch(worker.metrics_port, worker.host);
}

}  // namespace baton::testing
