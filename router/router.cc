// SPDX-License-Identifier: Apache-2.0
#include "router/router.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "common/grpc.h"
#include "common/log.h"
#include "common/metrics.h"
#include "common/options.h"
#include "common/process_facts.h"
#include "common/status_macros.h"
#include "router/balance_controller.h"
#include "router/metrics.h"
#include "router/probe.h"
#include "router/services.h"

namespace baton::router {
namespace {

constexpr absl::Duration kFarewellTimeout = absl::Seconds(1);
constexpr absl::Duration kShutdownTimeout = absl::Seconds(2);

PlacementPolicy PolicyOf(const std::string& name) {
  if (name == "round-robin") return PlacementPolicy::kRoundRobin;
  return name == "least-loaded" ? PlacementPolicy::kLeastLoaded : PlacementPolicy::kPrefix;
}

RoleChanges RoleChangesOf(const std::string& name) {
  if (name == "off") return RoleChanges::kOff;
  return name == "forced" ? RoleChanges::kForced : RoleChanges::kOn;
}

}  // namespace

// In the order of construction.
struct Router::Parts {
  explicit Parts(size_t max_requests) : admission(max_requests) {}

  std::unique_ptr<MetricsServer> metrics_server;
  std::unique_ptr<RouterMetrics> metrics;
  Admission admission;
  ServiceContext context;
  std::unique_ptr<Tracer> tracer;
  std::unique_ptr<InferenceService> inference;
  std::unique_ptr<AdminService> admin;
  std::unique_ptr<GrpcServer> server;
  std::unique_ptr<Discovery> discovery;
  std::shared_ptr<BalanceController> balance;  // null: off
};

Router::Router() = default;

absl::StatusOr<std::unique_ptr<Router>> Router::Start(const RouterOptions& options) {
  std::unique_ptr<Router> router(new Router());
  router->parts_ = std::make_unique<Parts>(options.max_requests);
  Parts& parts = *router->parts_;
  BATON_ASSIGN_OR_RETURN(parts.metrics_server,
                         OfOption("metrics-listen", MetricsServer::Start(options.metrics_listen,
                                                                         MetricsNamesFrom(options.metrics_names))));
  parts.metrics = std::make_unique<RouterMetrics>(parts.metrics_server->registry());
  parts.metrics->SetMaxRequests(static_cast<size_t>(options.max_requests));

  std::unique_ptr<TraceExporter> exporter;
  if (!options.trace_endpoint.empty()) {
    BATON_ASSIGN_OR_RETURN(
        exporter,
        OfOption("trace-endpoint", TraceExporter::Start({.endpoint = options.trace_endpoint}, *parts.metrics)));
  }
  parts.tracer = std::make_unique<Tracer>(options.trace_sample, std::move(exporter));

  WorkerRegistry::Options registry;
  registry.peer_timeout = options.peer_timeout;
  registry.heartbeat_interval = options.heartbeat_interval;
  registry.max_prompt_tokens = options.max_prompt_tokens;
  registry.placement.policy = PolicyOf(options.placement);
  registry.placement.max_local_prefill_tokens = options.max_local_prefill_tokens;
  registry.probe = [timeout = options.probe_timeout](const Placement& placement, auto assets, auto done) {
    ProbePair(placement, std::move(assets), timeout, std::move(done));
  };
  registry.on_change = [self = router.get()](const WorkerRegistry&) { self->OnRegistryChange(); };

  parts.context.registry = std::make_shared<WorkerRegistry>(std::move(registry));
  parts.context.admission = &parts.admission;
  parts.context.metrics = parts.metrics.get();
  parts.context.tracer = parts.tracer.get();
  parts.context.retry = {options.max_attempts, options.overload_wait, options.placement_wait};
  parts.context.default_deadline = options.default_deadline;
  BATON_ASSIGN_OR_RETURN(parts.context.objectives,
                         DefaultObjectives::Parse({options.ttft_slo, options.tpot_slo}, options.model_slos));
  parts.context.when_late = options.when_late == "serve" ? WhenLate::kServe : WhenLate::kRefuse;
  parts.context.allow_pins = options.pins == "on";
  parts.context.role_changes = RoleChangesOf(options.role_changes);
  parts.context.facts = ReadProcessFacts(/*threads=*/0);
  parts.inference = std::make_unique<InferenceService>(parts.context);
  parts.admin = std::make_unique<AdminService>(parts.context);

  GrpcServerOptions server;
  server.listen = options.listen;
  server.max_message_bytes = static_cast<int>(options.max_message_bytes.bytes);
  // Per connection. gRPC holds back calls beyond this limit, but Admission must see and refuse such calls.
  server.max_concurrent_streams = std::max(server.max_concurrent_streams, 2 * options.max_requests);
  server.health_names = {v1::Inference::service_full_name(), v1::Admin::service_full_name()};
  BATON_ASSIGN_OR_RETURN(parts.server,
                         OfOption("listen", GrpcServer::Start(server, {parts.inference.get(), parts.admin.get()})));
  parts.server->SetServing(false);
  parts.context.registry->Start();
  const auto set_workers = [registry = parts.context.registry.get()](const Discovery::Addresses& addresses) {
    registry->SetWorkers(addresses);
  };
  BATON_ASSIGN_OR_RETURN(parts.discovery, Discovery::Start(options.discovery, set_workers));
  if (options.balance != "off") {
    const auto mode = options.balance == "switch" ? BalanceController::Mode::kSwitch : BalanceController::Mode::kAdvise;
    parts.balance =
        std::make_shared<BalanceController>(mode, options.balance_rules, parts.context.registry, parts.metrics.get());
    parts.balance->Start();
  }
  return router;
}

Router::~Router() { Shutdown(); }

int Router::port() const { return parts_->server->port(); }
int Router::metrics_port() const { return parts_->metrics_server->port(); }

// Two simultaneous changes may set health in the wrong order; the registry's next tick corrects the state.
void Router::OnRegistryChange() {
  const WorkerRegistry& registry = *parts_->context.registry;
  const size_t pairs = registry.ready_pairs();
  parts_->metrics->SetReadyPairs(pairs);
  parts_->metrics->SetWorkers(registry.workers_by_state());
  parts_->metrics->SetRunningRequests(parts_->admission.running());
  const bool ready = pairs > 0;
  const bool was_ready = ready_.exchange(ready);
  parts_->server->SetServing(ready && !draining_);
  if (ready != was_ready) Log(LogLevel::kInfo, ready ? "router.ready" : "router.not_ready", {{"pairs", pairs}});
}

void Router::AnnounceDrain() {
  draining_ = true;
  parts_->server->SetServing(false);
  Log(LogLevel::kInfo, "router.drain_announced", {{"running", parts_->admission.running()}});
}

void Router::StartDraining() {
  draining_ = true;
  parts_->server->StopListening();
  parts_->admission.StartDraining();  // last: a request that was on its way runs
  Log(LogLevel::kInfo, "router.draining", {{"running", parts_->admission.running()}});
}

bool Router::WaitDrained(SteadyTime deadline) { return parts_->admission.WaitIdle(deadline); }

void Router::Shutdown() {
  if (parts_ == nullptr) return;
  parts_->discovery = nullptr;
  if (parts_->balance != nullptr) parts_->balance->Stop();
  if (parts_->server != nullptr) {
    // Clients that read get a status. The server's shutdown alone would cut their streams off.
    parts_->admission.Stop();
    parts_->admission.WaitIdle(SteadyTime::Now() + kFarewellTimeout);
    parts_->server->Shutdown(SteadyTime::Now());
    parts_->admission.WaitIdle(SteadyTime::Now() + kShutdownTimeout);
    parts_->context.registry->Shutdown(SteadyTime::Now() + kShutdownTimeout);
  }
  parts_ = nullptr;
}

}  // namespace baton::router
