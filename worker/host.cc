// SPDX-License-Identifier: Apache-2.0
#include "worker/host.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/address.h"
#include "common/ids.h"
#include "common/log.h"
#include "common/memory_headroom.h"
#include "common/process_facts.h"
#include "common/status_macros.h"
#include "common/steady_time.h"
#include "engine/formats/model_folder.h"
#include "kvtransfer/ucx/ucx_transport.h"
#include "text/assets/generation_config.h"
#include "text/tokenizer/tokenizer.h"
#include "worker/orphaned_memory.h"

namespace baton {
namespace {

// At exit, the worker waits at most this long for peers to answer for ended attempts.
constexpr absl::Duration kReleaseTimeout = absl::Seconds(2);
constexpr absl::Duration kFarewellTimeout = absl::Milliseconds(200);
constexpr absl::Duration kWarmUp = absl::Milliseconds(200);
constexpr absl::Duration kSignalPoll = absl::Milliseconds(100);

constexpr size_t kMaxReportedTenants = 64;

void FillTenants(const std::map<std::string, uint64_t>& tenants, v1::WorkerLoad& load) {
  std::vector<std::pair<uint64_t, std::string>> most;
  most.reserve(tenants.size());
  for (const auto& [tenant, tokens] : tenants) most.emplace_back(tokens, tenant);
  std::sort(most.rbegin(), most.rend());
  most.resize(std::min(most.size(), kMaxReportedTenants));
  for (auto& [tokens, tenant] : most) {
    v1::TenantLoad& filled = *load.add_tenants();
    filled.set_tenant(std::move(tenant));
    filled.set_waiting_tokens(tokens);
  }
}

// Routers need the text assets: a model without them is refused here, not by each router.
absl::Status CheckAssets(const std::string& folder, const AssetFiles& files) {
  absl::Status status =
      Tokenizer::Create(FileOrEmpty(files, "tokenizer.json"), FileOrEmpty(files, "tokenizer_config.json")).status();
  status.Update(ParseGenerationConfig(FileOrEmpty(files, "generation_config.json"), "generation_config.json").status());
  return OfOption(folder, status);
}

// Logs progress once a second: a large model takes a while.
LoadProgress LogLoading(const std::string& model) {
  return [model, next = SteadyTime::Now() + absl::Seconds(1)](uint64_t loaded_bytes, uint64_t total_bytes) mutable {
    if (SteadyTime::Now() < next) return;
    next = SteadyTime::Now() + absl::Seconds(1);
    Log(LogLevel::kInfo, "worker.loading",
        {{"model", model}, {"loaded_bytes", loaded_bytes}, {"total_bytes", total_bytes}});
  };
}

absl::StatusOr<std::unique_ptr<Model>> LoadModel(const WorkerOptions& options) {
  if (options.device == "replay") {
    BATON_ASSIGN_OR_RETURN(const ReplayOptions replay, options.ForReplay());
    return LoadReplayModel(options.model, replay);
  }
  ModelOptions model_options = options.ForModel();
  model_options.progress = LogLoading(options.model_name);
  return Model::Load(options.model, model_options);
}

// The pool takes its memory at once. A worker that the kernel kills for lack of memory would report no error.
absl::Status CheckKvMemory(std::string_view option, uint64_t bytes) {
  return OfOption(option, ReadMemoryHeadroom().Check(bytes));
}

RoleMachine::Rules RulesOf(const WorkerOptions& options, v1::WorkerRole role, bool with_transport) {
  RoleMachine::Rules rules{
      .possible = {role}, .why_no_other = "", .cooldown = options.role_cooldown, .timeout = options.drain_timeout};
  if (!with_transport) {
    rules.why_no_other = "the worker takes part in no handoffs, because it has no secret";
  } else if (options.transport.listen_address.empty()) {
    rules.why_no_other =
        "other workers cannot reach the worker, because --listen binds all addresses and --handoff-advertise is not "
        "set";
  } else {
    rules.possible = {v1::WORKER_ROLE_PREFILL, v1::WORKER_ROLE_DECODE, v1::WORKER_ROLE_BOTH};
  }
  return rules;
}

void RemoveOrphans() {
  for (const OrphanedFile& file : RemoveOrphanedMemory()) {
    Log(LogLevel::kWarning, "worker.removed_orphaned_memory", {{"file", file.path}, {"bytes", file.bytes}});
  }
}

}  // namespace

WorkerHost::WorkerHost(const WorkerOptions& options, v1::WorkerRole role, bool with_transport)
    : options_(options),
      epoch_(RandomEpoch()),
      gate_(options.max_attempts()),
      role_(role, RulesOf(options, role, with_transport), &gate_),
      facts_(ReadProcessFacts(options.threads)) {}

absl::StatusOr<std::unique_ptr<WorkerHost>> WorkerHost::Create(const WorkerOptions& options, v1::WorkerRole role,
                                                               bool with_transport) {
  auto host = std::unique_ptr<WorkerHost>(new WorkerHost(options, role, with_transport));
  RemoveOrphans();
  // Cheap refusals come first: a port in use, or too little memory, is found before a large model is read.
  if (options.pages == 0) BATON_RETURN_IF_ERROR(CheckKvMemory("kv-memory", options.kv_memory.bytes));
  BATON_RETURN_IF_ERROR(OfOption("listen", CheckCanListen(options.listen)));
  BATON_ASSIGN_OR_RETURN(host->metrics_server_,
                         OfOption("metrics-listen", MetricsServer::Start(options.metrics_listen,
                                                                         MetricsNamesFrom(options.metrics_names))));
  host->metrics_ =
      std::make_unique<WorkerMetrics>(host->metrics_server_->registry(), options.model_name, RoleName(role));
  host->metrics_->SetLimits(options.schedule.max_sequences, options.max_queue);
  BATON_ASSIGN_OR_RETURN(host->assets_, LoadTextAssets(options.model));
  BATON_RETURN_IF_ERROR(CheckAssets(options.model, host->assets_));
  host->assets_fingerprint_ = AssetsFingerprint(host->assets_);

  const Stopwatch watch;
  BATON_ASSIGN_OR_RETURN(host->model_, LoadModel(options));
  BATON_RETURN_IF_ERROR(host->CreatePool(with_transport));
  BATON_RETURN_IF_ERROR(host->CreateTiers());
  Log(LogLevel::kInfo, "worker.loaded",
      {{"model", options.model_name},
       {"architecture", host->model_->config().architecture_name},
       {"weight_bytes", host->model_->weight_bytes()},
       {"kernels", host->model_->kernel_family()},
       {"numerics_id", host->model_->numerics_id()},
       {"pages", host->pool_->pages_total()},
       {"kv_bytes", host->pool_->bytes()},
       {"seconds", watch.seconds()}});
  return host;
}

absl::Status WorkerHost::CreatePool(bool with_transport) {
  const KvLayout& layout = model_->kv_layout();
  const uint64_t fitting = options_.kv_memory.bytes / layout.page_bytes();
  const uint64_t pages = options_.pages > 0 ? static_cast<uint64_t>(options_.pages) : fitting;
  constexpr uint64_t kMaxPages = 1 << 28;
  if (pages == 0 || pages > kMaxPages) {
    return absl::InvalidArgumentError(absl::StrCat("kv-memory of ", options_.kv_memory.bytes, " bytes holds ", pages,
                                                   " pages of ", layout.page_bytes(), " bytes, expected 1 to ",
                                                   kMaxPages));
  }
  // Checks again: the weights have taken their memory by now.
  BATON_RETURN_IF_ERROR(CheckKvMemory(options_.pages > 0 ? "pages" : "kv-memory", pages * layout.page_bytes()));
  PoolAllocator allocator;
  if (with_transport) {
    BATON_ASSIGN_OR_RETURN(transport_, CreateUcxTransport(options_.transport));
    allocator = [this](size_t bytes) -> absl::StatusOr<PoolMemory> {
      const MemoryKind kind = model_->kv_memory();
      BATON_ASSIGN_OR_RETURN(const TransportMemory memory, transport_->AllocateRegion(kind, bytes));
      return PoolMemory{.data = memory.data, .owner = nullptr, .kind = kind};  // the transport's own
    };
  }
  BATON_ASSIGN_OR_RETURN(pool_, PagePool::Create(layout, static_cast<uint32_t>(pages), std::move(allocator)));
  if (options_.prefault == "off") return absl::OkStatus();
  BATON_RETURN_IF_ERROR(pool_->Prefault(options_.threads));
  return WarmUp();
}

absl::Status WorkerHost::CreateTiers() {
  const uint64_t memory = options_.kv_tier_memory.bytes;
  if (memory == 0 && options_.kv_tier_file.empty()) return absl::OkStatus();
  if (memory > 0) BATON_RETURN_IF_ERROR(CheckKvMemory("kv-tier-memory", memory));
  BATON_ASSIGN_OR_RETURN(tiers_, OfOption(options_.kv_tier_file.empty() ? "kv-tier-memory" : "kv-tier-file",
                                          KvTiers::Create({.memory_bytes = memory,
                                                           .file = options_.kv_tier_file,
                                                           .file_bytes = options_.kv_tier_file_size.bytes,
                                                           .numerics_id = model_->numerics_id()},
                                                          pool_.get())));
  return absl::OkStatus();
}

void WorkerHost::StopIo() {
  if (tiers_ != nullptr && !tiers_->WaitStored(SteadyTime::Now() + kReleaseTimeout)) {
    Log(LogLevel::kInfo, "kv_tier.not_all_stored", {{"waited", kReleaseTimeout}});
  }
  tiers_.reset();
  transport_.reset();
}

void WorkerHost::SetPageMetrics() const {
  metrics_->SetPages(pool_->counts());
  if (tiers_ != nullptr) metrics_->SetTiers(tiers_->counts(), pool_->layout().page_bytes());
}

// Runs the largest possible step for at most kWarmUp, so that the step's buffers exist and code, threads and CPU clocks
// are warm.
absl::Status WorkerHost::WarmUp() {
  const KvLayout& layout = pool_->layout();
  const int tokens = static_cast<int>(std::min<uint64_t>(
      {static_cast<uint64_t>(options_.schedule.token_budget), static_cast<uint64_t>(model_->config().max_positions),
       uint64_t{pool_->pages_total()} / layout.groups() * layout.page_tokens()}));
  BATON_ASSIGN_OR_RETURN(const std::vector<PageRef> pages, pool_->Allocate(layout.pages_for(tokens)));
  std::vector<PageId> ids;
  ids.reserve(pages.size());
  for (const PageRef& page : pages) ids.push_back(page.id());
  const std::vector<TokenId> prompt(tokens, 0);
  const SequenceInput sequence{.tokens = prompt, .start_position = 0, .pages = ids, .want = Want::kLastLogits};
  const SteadyTime end = SteadyTime::Now() + kWarmUp;
  ForwardOutput output;
  const absl::Status status =
      model_->Forward({&sequence, 1}, *pool_, [&](int /*layer*/) { return SteadyTime::Now() < end; }, output);
  return absl::IsCancelled(status) ? absl::OkStatus() : status;
}

AttemptLimits WorkerHost::limits(v1::WorkerRole role) const {
  // A grant has a page of each KV group more than the context, to grow into: no context can fill all pages of a decode
  // worker.
  const KvLayout& layout = pool_->layout();
  const uint64_t rows = pool_->pages_total() / layout.groups() - (role == v1::WORKER_ROLE_PREFILL ? 0 : 1);
  return {.model = options_.model_name,
          .numerics_id = model_->numerics_id(),
          .vocab_size = model_->config().vocab_size,
          .max_context_tokens = model_->config().max_positions,
          .pool_tokens = static_cast<int>(std::min<uint64_t>(rows * layout.page_tokens(), INT32_MAX)),
          .prefix_cache = options_.prefix_cache == "on"};
}

v1::WorkerStatus WorkerHost::Snapshot() const {
  v1::WorkerStatus status;
  status.set_protocol(v1::WORKER_PROTOCOL_CURRENT);
  status.set_worker_id(options_.worker_id);
  status.set_epoch(epoch_);
  role_.Describe(status);
  if (draining_) status.set_state(v1::WORKER_STATE_DRAINING);

  v1::ServedModel& model = *status.mutable_model();
  model.set_name(options_.model_name);
  model.set_architecture(model_->config().architecture_name);
  model.set_vocab_size(model_->config().vocab_size);
  model.set_max_context_tokens(model_->config().max_positions);
  model.set_numerics_id(model_->numerics_id());
  model.set_assets_fingerprint(assets_fingerprint_);

  v1::WorkerCapacity& capacity = *status.mutable_capacity();
  // The router counts the pages of all KV groups for the same tokens as one page.
  const uint32_t groups = pool_->layout().groups();
  capacity.set_pages_total(pool_->pages_total() / groups);
  capacity.set_page_tokens(pool_->layout().page_tokens());
  if (tiers_ != nullptr) capacity.set_tier_pages(tiers_->slots() / groups);
  capacity.set_max_sequences(options_.schedule.max_sequences);
  capacity.set_max_queue(options_.max_queue);
  capacity.set_token_budget(options_.schedule.token_budget);
  capacity.set_kv_token_bytes(static_cast<uint32_t>(pool_->layout().row_bytes() / pool_->layout().page_tokens()));

  const PageCounts pages = pool_->counts();
  metrics_->SetPages(pages);
  v1::WorkerLoad& load = *status.mutable_load();
  load.set_waiting_requests(load_.waiting_requests);
  load.set_waiting_tokens(load_.waiting_tokens);
  load.set_running_sequences(load_.running_sequences);
  load.set_pages_used(pages.used / groups);
  load.set_pages_cached(pages.cached / groups);
  load.set_pages_quarantined(pages.quarantined / groups);
  load.set_prefill_tokens_per_second(load_.prefill_tokens_per_second);
  load.set_step_seconds(load_.step_seconds);
  load.set_running_tokens(load_.running_tokens);
  load.set_waiting_batch_tokens(load_.waiting_batch_tokens);
  load.set_blocked_tokens(load_.blocked_tokens);
  load.set_waiting_reservations(load_.waiting_reservations);
  load.set_tpot_objectives(load_.tpot_objectives);
  load.set_tpot_slo_seconds(load_.tpot_slo_seconds);
  load.set_sequence_seconds(load_.sequence_seconds);
  FillTenants(load_.tenants(), load);
  const std::vector<uint64_t> recent = load_.recent();
  load.mutable_recent_requests()->Assign(recent.begin(), recent.end());
  if (const int64_t began = load_.step_began_nanos; began != 0) {
    load.set_age_seconds(absl::ToDoubleSeconds(SteadyTime::Now() - SteadyTime() - absl::Nanoseconds(began)));
  }
  const StepCost measured = load_.cost();
  v1::StepCost& cost = *load.mutable_step_cost();
  cost.set_step_seconds(measured.step);
  cost.set_prompt_token_seconds(measured.prompt_token);
  cost.set_decode_row_seconds(measured.decode_row);
  cost.set_prompt_attended_seconds(measured.prompt_attended);
  cost.set_decode_attended_seconds(measured.decode_attended);

  *status.mutable_facts() = facts_;
  status.set_sent_unix_nanos(absl::ToUnixNanos(absl::Now()));
  if (status.role() != v1::WORKER_ROLE_PREFILL && transport_ != nullptr) {
    status.set_handoff_address(transport_->address());
  }
  return status;
}

absl::Status WorkerHost::Serve(ShutdownSignal& signal, const Work& work) {
  role_.SetHooks({.start_draining =
                      [&work] {
                        work.start_draining();
                        work.end_waiting("the worker changes its role before the prompt has begun");
                      },
                  .stop_draining = work.stop_draining,
                  .end_attempts = [&work] { work.end_attempts("the worker changes its role: drain-timeout is over"); },
                  .take_role =
                      [this, &work](v1::WorkerRole role) {
                        metrics_->SetRole(RoleName(role));
                        work.take_role(role);
                      }});
  ControlService control(assets_, {.status = [this] { return Snapshot(); },
                                   .pages = [this](uint64_t version) { return pool_->NewsSince(version); },
                                   .change_role = [this](const RoleChange& change) { return role_.Begin(change); }});
  std::vector<grpc::Service*> services = work.services;
  services.push_back(&control);
  std::vector<std::string> health_names = work.service_names;
  health_names.emplace_back(v1::WorkerControl::service_full_name());
  BATON_ASSIGN_OR_RETURN(
      std::unique_ptr<GrpcServer> server,
      OfOption(
          "listen",
          GrpcServer::Start({.listen = options_.listen,
                             .max_message_bytes = static_cast<int>(options_.max_message_bytes.bytes),
                             // gRPC holds back calls beyond this limit, but AttemptGate must see and refuse such calls.
                             .max_concurrent_streams = std::max(4096, 2 * options_.max_attempts()),
                             // Routers always listen, so that routers must answer pings within this time.
                             .peer_timeout = options_.transport.peer_timeout,
                             .health_names = std::move(health_names)},
                            services)));
  server->SetServing(true);
  Log(LogLevel::kInfo, "worker.serving",
      {{"role", RoleName(role_.role())},
       {"listen", options_.listen},
       {"port", server->port()},
       {"handoff", transport_ == nullptr ? std::string() : transport_->address()}});

  while (!signal.Wait(kSignalPoll)) {
    SetPageMetrics();
    metrics_->SetQuarantine(pool_->quarantined_since(), SteadyTime::Now());
    if (role_.Advance()) control.Announce();
  }

  server->SetServing(false);
  role_.Stop();
  draining_ = true;
  control.Announce();
  const bool released = Drain(signal, work);
  control.EndWatches();
  // Without an attempt only idle connections remain. Blocking clients answer no GOAWAY between calls.
  server->Shutdown(SteadyTime::Now() + (released ? kFarewellTimeout : kReleaseTimeout));
  return absl::OkStatus();
}

bool WorkerHost::Drain(ShutdownSignal& signal, const Work& work) {
  Log(LogLevel::kInfo, "worker.draining", {{"timeout", options_.drain_timeout}});
  gate_.Close();
  work.start_draining();
  const SteadyTime deadline = SteadyTime::Now() + options_.drain_timeout;
  bool empty = false;
  while (!empty && SteadyTime::Now() < deadline && !signal.Again()) {
    empty = gate_.WaitEmpty(std::min(deadline, SteadyTime::Now() + kSignalPoll));
  }
  if (!empty) {
    work.end_attempts("the worker stops: drain-timeout is over");
    empty = gate_.WaitEmpty(SteadyTime::Now() + kReleaseTimeout);
  }
  Log(LogLevel::kInfo, "worker.stopped", {{"all_released", empty}});
  return empty;
}

}  // namespace baton
