// SPDX-License-Identifier: Apache-2.0
#include "router/worker_registry.h"

#include <algorithm>
#include <utility>

#include "absl/base/call_once.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/grpc.h"
#include "common/log.h"
#include "common/status_macros.h"
#include "common/steady_time.h"
#include "router/unary_call.h"
#include "router/worker_connection.h"

namespace baton::router {
namespace {

using WatchCall = StreamCall<v1::WatchStatusRequest, v1::WorkerStatus>;
using PagesCall = StreamCall<v1::WatchPagesRequest, v1::PageNews>;
using AssetsCall = StreamCall<v1::GetModelAssetsRequest, v1::ModelAssetPiece>;

// Larger than a client's messages: prompts travel to workers with their page names.
constexpr int kWorkerMessageBytes = 64 << 20;
constexpr size_t kMaxAssetsBytes = size_t{256} << 20;
constexpr absl::Duration kPagesInterval = absl::Milliseconds(100);
constexpr absl::Duration kAssetsTimeout = absl::Minutes(1);

}  // namespace

// Thread-safe. The first caller of channel() or control() makes both, so that the registry's lock does not cover this.
class WorkerRegistry::Link {
 public:
  Link(std::string address, absl::Duration peer_timeout) : address_(std::move(address)), peer_timeout_(peer_timeout) {}

  const std::shared_ptr<grpc::Channel>& channel() const {
    absl::call_once(made_, [this] {
      channel_ = MakeChannel(address_, {.max_message_bytes = kWorkerMessageBytes, .peer_timeout = peer_timeout_});
      control_ = v1::WorkerControl::NewStub(channel_);
    });
    return channel_;
  }
  v1::WorkerControl::Stub& control() const {
    channel();
    return *control_;
  }
  const std::shared_ptr<CallGroup>& calls() const { return calls_; }  // of control

 private:
  const std::string address_;
  const absl::Duration peer_timeout_;
  const std::shared_ptr<CallGroup> calls_ = std::make_shared<CallGroup>();
  mutable absl::once_flag made_;
  mutable std::shared_ptr<grpc::Channel> channel_;
  mutable std::unique_ptr<v1::WorkerControl::Stub> control_;
};

struct WorkerRegistry::Fetch {
  AssetFiles files;
  size_t bytes = 0;

  // Call after the call has ended with `status`. Slow; gRPC's other threads deliver heartbeats meanwhile.
  absl::StatusOr<std::shared_ptr<const ModelAssets>> Build(const std::string& fingerprint, const absl::Status& status) {
    BATON_RETURN_IF_ERROR(status);
    if (bytes > kMaxAssetsBytes) {
      return absl::ResourceExhaustedError(absl::StrCat("model assets of more than ", kMaxAssetsBytes, " bytes"));
    }
    return ModelAssets::Build(fingerprint, files);
  }
};

WorkerRegistry::WorkerRegistry(Options options)
    : options_(std::move(options)),
      table_({options_.peer_timeout, options_.max_prompt_tokens, options_.placement,
              [](const WorkerRef& worker) { return worker.connection->calls()->empty(); }}) {}

WorkerRegistry::~WorkerRegistry() = default;

void WorkerRegistry::Start() { Tick(); }

void WorkerRegistry::SetWorkers(std::span<const std::string> addresses) {
  Update([&](WorkerTable& table) { table.SetMembers(SteadyTime::Now(), addresses); });
}

void WorkerRegistry::Shutdown(SteadyTime deadline) {
  std::vector<WorkerRef> workers;
  std::vector<std::shared_ptr<const Link>> links;
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    tick_.Cancel();
    while (updates_ > 0) {
      if (!no_updates_.WaitUntil(mutex_, deadline)) break;
    }
    workers = table_.refs();
    links = closing_;
    for (const auto& [_, link] : links_) links.push_back(link);
  }
  for (const auto& link : links) link->calls()->CancelAll();
  for (const WorkerRef& worker : workers) worker.connection->calls()->CancelAll();
  for (const auto& link : links) link->calls()->WaitEmpty(deadline);
  for (const WorkerRef& worker : workers) worker.connection->calls()->WaitEmpty(deadline);
}

void WorkerRegistry::Tick() {
  Update([](WorkerTable&) {});
  const absl::Duration interval =
      std::clamp(options_.peer_timeout / 10, absl::Milliseconds(20), absl::Milliseconds(200));
  MutexLock lock(mutex_);
  if (stopped_) return;
  tick_.Start(interval, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->Tick();
  });
}

template <typename Change>
void WorkerRegistry::Update(Change change) {
  WorkerTable::Effects effects;
  std::vector<std::shared_ptr<const Link>> closing;
  {
    MutexLock lock(mutex_);
    if (stopped_) return;
    ++updates_;
    change(table_);
    effects = table_.Advance(SteadyTime::Now());
    for (const auto& [worker, address] : effects.joined) {
      links_.emplace(worker, std::make_shared<const Link>(address, options_.peer_timeout));
    }
    std::erase_if(closing_, [](const auto& link) { return link->calls()->empty(); });
    for (const size_t worker : effects.forgotten) closing.push_back(std::move(links_.extract(worker).mapped()));
    closing_.insert(closing_.end(), closing.begin(), closing.end());
  }
  for (const auto& link : closing) link->calls()->CancelAll();
  Run(std::move(effects));
  if (options_.on_change) options_.on_change(*this);
  MutexLock lock(mutex_);
  if (--updates_ == 0) no_updates_.NotifyAll();
}

void WorkerRegistry::Run(WorkerTable::Effects effects) {
  for (const WorkerTable::Event& event : effects.events) {
    Log(event.is_bad ? LogLevel::kWarning : LogLevel::kInfo, event.name,
        {{"subject", event.subject}, {"detail", event.detail}});
  }
  for (const WorkerRef& lost : effects.lost) lost.connection->calls()->CancelAll();
  for (const size_t worker : effects.connect) Connect(worker);
  for (const WorkerTable::WatchPages& watch : effects.watch_pages) WatchPages(watch);
  for (const auto& [worker, fingerprint] : effects.fetch) FetchAssets(worker, fingerprint);
  for (const Placement& placement : effects.probe) StartProbe(placement);
}

std::shared_ptr<const WorkerRegistry::Link> WorkerRegistry::FindLink(size_t worker) {
  MutexLock lock(mutex_);
  const auto it = links_.find(worker);
  return it == links_.end() ? nullptr : it->second;
}

void WorkerRegistry::Connect(size_t worker) {
  const std::shared_ptr<const Link> link = FindLink(worker);
  if (link == nullptr) return;
  v1::WatchStatusRequest request;
  request.set_protocol(v1::WORKER_PROTOCOL_CURRENT);
  request.set_heartbeat_interval_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(options_.heartbeat_interval)));
  WatchCall::Start(
      {link->calls()}, std::move(request),
      [&](auto* context, const auto* message, auto* reactor) {
        link->control().async()->WatchStatus(context, message, reactor);
      },
      [weak = weak_from_this(), worker, channel = link->channel()](v1::WorkerStatus status) {
        const auto self = weak.lock();
        if (self == nullptr) return;
        const absl::Duration ahead = absl::FromUnixNanos(status.sent_unix_nanos()) - absl::Now();
        status.set_clock_ahead_seconds(absl::ToDoubleSeconds(ahead));
        self->Update([&](WorkerTable& table) {
          table.OnStatus(SteadyTime::Now(), worker, status,
                         [&] { return std::make_shared<WorkerConnection>(channel); });
        });
      },
      [weak = weak_from_this(), worker](const absl::Status& status) {
        const auto self = weak.lock();
        if (self == nullptr) return;
        self->Update([&](WorkerTable& table) { table.OnStreamEnded(SteadyTime::Now(), worker, status); });
      });
}

void WorkerRegistry::WatchPages(const WorkerTable::WatchPages& watch) {
  const std::shared_ptr<const Link> link = FindLink(watch.worker);
  if (link == nullptr) return;
  v1::WatchPagesRequest request;
  request.set_protocol(v1::WORKER_PROTOCOL_CURRENT);
  request.set_interval_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(kPagesInterval)));
  PagesCall::Start(
      {link->calls()}, std::move(request),
      [&](auto* context, const auto* message, auto* reactor) {
        link->control().async()->WatchPages(context, message, reactor);
      },
      [weak = weak_from_this(), watch](const v1::PageNews& news) {
        const auto self = weak.lock();
        if (self == nullptr) return;
        MutexLock lock(self->mutex_);
        if (!self->stopped_) self->table_.OnPages(watch, news);
      },
      [weak = weak_from_this(), watch](const absl::Status& status) {
        const auto self = weak.lock();
        if (self == nullptr) return;
        self->Update([&](WorkerTable& table) { table.OnPagesEnded(SteadyTime::Now(), watch, status); });
      });
}

void WorkerRegistry::FetchAssets(size_t worker, const std::string& fingerprint) {
  v1::GetModelAssetsRequest request;
  request.set_assets_fingerprint(fingerprint);
  const std::shared_ptr<const Link> link = FindLink(worker);
  if (link == nullptr) {
    return Update([&](WorkerTable& table) {
      table.OnAssets(SteadyTime::Now(), fingerprint, absl::UnavailableError("the worker left"));
    });
  }
  // Only the call's reactions use `fetch`, and reactions run one at a time.
  const auto fetch = std::make_shared<Fetch>();
  AssetsCall::Start(
      {link->calls(), kAssetsTimeout}, std::move(request),
      [&](auto* context, const auto* message, auto* reactor) {
        link->control().async()->GetModelAssets(context, message, reactor);
      },
      [fetch](v1::ModelAssetPiece piece) {
        fetch->bytes += piece.data().size() + piece.name().size();
        if (fetch->bytes <= kMaxAssetsBytes) fetch->files[piece.name()] += piece.data();
      },
      [weak = weak_from_this(), fetch, fingerprint](const absl::Status& status) {
        const auto self = weak.lock();
        if (self == nullptr) return;
        auto assets = fetch->Build(fingerprint, status);
        self->Update([&](WorkerTable& table) { table.OnAssets(SteadyTime::Now(), fingerprint, std::move(assets)); });
      });
}

void WorkerRegistry::StartProbe(const Placement& placement) {
  const uint64_t pair = placement.pair;
  auto done = [weak = weak_from_this(), pair](const absl::Status& status) {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->Update([&](WorkerTable& table) { table.OnProbed(SteadyTime::Now(), pair, status); });
  };
  absl::StatusOr<ServedModel> model = FindModel(placement.model);
  if (!model.ok()) return done(model.status());
  options_.probe(placement, model->assets, done);
}

PlacementResult WorkerRegistry::Place(const PlacementQuery& query) {
  MutexLock lock(mutex_);
  return table_.Place(SteadyTime::Now(), query);
}

void WorkerRegistry::PairBroken(uint64_t pair, const std::string& why) {
  Update([&](WorkerTable& table) { table.OnPairBroken(SteadyTime::Now(), pair, why); });
}

void WorkerRegistry::HandedOver(uint64_t pair, const v1::HandedOver& measured) {
  MutexLock lock(mutex_);
  table_.OnHandedOver(SteadyTime::Now(), pair, measured);
}

void WorkerRegistry::ChangeRole(const RoleRequest& request,
                                const std::function<void(absl::StatusOr<std::string> from)>& done) {
  absl::StatusOr<WorkerTable::RoleOrder> order = absl::UnavailableError("the router ends");
  std::shared_ptr<const Link> link;
  {
    MutexLock lock(mutex_);
    if (!stopped_) order = table_.OrderRole(SteadyTime::Now(), request.id, request.role, request.force);
    if (order.ok()) link = links_.at(order->worker);
  }
  if (!order.ok()) return done(order.status());
  v1::ChangeRoleRequest message;
  message.set_protocol(v1::WORKER_PROTOCOL_CURRENT);
  message.set_from(request.expected);
  message.set_to(order->to);
  message.set_force(request.force);
  message.set_reason(request.reason);
  StartUnaryCall<v1::ChangeRoleRequest, v1::ChangeRoleResponse>(
      link->calls(), WorkerTable::kOrderCallTimeout, std::move(message),
      [&](auto* context, const auto* in, auto* out, auto on_done) {
        link->control().async()->ChangeRole(context, in, out, std::move(on_done));
      },
      [weak = weak_from_this(), done, link, id = request.id, order = *order](const absl::Status& status) {
        if (const auto self = weak.lock()) {
          self->Update([&](WorkerTable& table) { table.OnOrderEnded(SteadyTime::Now(), order, status); });
        }
        if (status.ok()) return done(std::string(WorkerTable::RoleName(order.from)));
        done(absl::Status(status.code(), absl::StrCat("worker ", id, ": ", std::string(status.message()))));
      });
}

std::map<std::string, BalanceFacts> WorkerRegistry::balance_facts(absl::Duration settle) const {
  MutexLock lock(mutex_);
  return table_.balance_facts(settle);
}

absl::StatusOr<ServedModel> WorkerRegistry::FindModel(const std::string& name) {
  MutexLock lock(mutex_);
  return table_.FindModel(name);
}

absl::Status WorkerRegistry::CheckPin(const RequestSpec& spec) const {
  MutexLock lock(mutex_);
  return table_.CheckPin(spec);
}

size_t WorkerRegistry::ready_pairs() const {
  MutexLock lock(mutex_);
  return table_.ready_pairs();
}

std::map<std::string, int> WorkerRegistry::workers_by_state() const {
  MutexLock lock(mutex_);
  return table_.workers_by_state();
}

void WorkerRegistry::Describe(v1::GetStatusResponse& response) const {
  MutexLock lock(mutex_);
  table_.Describe(SteadyTime::Now(), response);
}

void WorkerRegistry::Describe(v1::ListModelsResponse& response) const {
  MutexLock lock(mutex_);
  table_.Describe(response);
}

}  // namespace baton::router
