// SPDX-License-Identifier: Apache-2.0
// The workers that could serve a request, as placement sees them.
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "router/worker_table.h"

namespace baton::router {
namespace {

// The paths of pairs are forgotten this late, at most.
constexpr absl::Duration kGroupAge = absl::Seconds(1);

void AddTokens(std::vector<std::pair<std::string, uint64_t>>& tenants, const std::string& tenant, uint64_t tokens) {
  const auto it = std::ranges::find(tenants, tenant, [](const auto& entry) { return entry.first; });
  if (it != tenants.end()) {
    it->second += tokens;
  } else {
    tenants.emplace_back(tenant, tokens);
  }
}

}  // namespace

bool WorkerTable::Matches(const Worker& worker, const PlacementQuery& query) const {
  const v1::ServedModel& model = worker.status.model();
  return worker.live() && model.name() == query.model && model.assets_fingerprint() == query.assets_fingerprint &&
         (query.numerics_id.empty() || model.numerics_id() == query.numerics_id);
}

// Adds to a worker's report what has changed since: the router has sent work, and the worker has computed.
void WorkerTable::UpdateLoad(Worker& worker) {
  const v1::WorkerCapacity& capacity = worker.status.capacity();
  const v1::WorkerLoad& load = worker.status.load();
  Load& known = worker.known;
  known = {};
  WorkerView& view = known.view;
  view.waiting_tokens = load.waiting_tokens();
  view.waiting_batch_tokens = load.waiting_batch_tokens();
  view.waiting_requests = load.waiting_requests();
  view.sequence_seconds = load.sequence_seconds();
  view.objectives = load.tpot_objectives();
  view.tpot_slo = load.tpot_slo_seconds();
  view.prefill_tokens_per_second = load.prefill_tokens_per_second();
  view.step_seconds = load.step_seconds();
  // On a decode worker, waiting requests are sequences whose KV is on the way.
  view.running_sequences =
      load.running_sequences() + load.waiting_requests() + static_cast<uint32_t>(worker.sent.size());
  view.decoding_sequences = load.running_sequences();
  view.max_sequences = capacity.max_sequences();
  view.pages_total = capacity.pages_total();
  view.page_tokens = std::max(capacity.page_tokens(), 1u);
  view.kv_token_bytes = capacity.kv_token_bytes();
  view.max_context_tokens = worker.status.model().max_context_tokens();
  view.running_tokens = load.running_tokens();
  const v1::StepCost& cost = load.step_cost();
  view.cost = {.step = cost.step_seconds(),
               .prompt_token = cost.prompt_token_seconds(),
               .decode_row = cost.decode_row_seconds(),
               .attended = cost.attended_seconds()};
  view.pages_free =
      view.pages_total - std::min(view.pages_total, uint64_t{load.pages_used()} + load.pages_quarantined());
  known.waiting.batch = static_cast<double>(std::min(view.waiting_batch_tokens, view.waiting_tokens));
  known.waiting.interactive = static_cast<double>(view.waiting_tokens) - known.waiting.batch;
  known.waiting_at = worker.load_as_of;
  known.tokens_per_second = view.prefill_tokens_per_second * PromptShare(view);
  for (const v1::TenantLoad& of_tenant : load.tenants()) {
    AddTokens(known.tenants, of_tenant.tenant(), of_tenant.waiting_tokens());
  }
  if (load.tenants().empty() && load.waiting_tokens() > load.waiting_batch_tokens()) {
    AddTokens(known.tenants, "", load.waiting_tokens() - load.waiting_batch_tokens());
  }
  for (const SentWork& sent : worker.sent) {
    known.ComputeUntil(sent.at);
    (sent.is_batch ? known.waiting.batch : known.waiting.interactive) += sent.tokens;
    view.running_tokens += sent.context;
    view.pages_free -= std::min<uint64_t>(view.pages_free, sent.pages);
    if (!sent.is_batch && sent.tokens > 0) AddTokens(known.tenants, sent.tenant, sent.tokens);
    if (sent.tpot_slo > 0) {
      ++view.objectives;
      view.tpot_slo = view.tpot_slo > 0 ? std::min(view.tpot_slo, sent.tpot_slo) : sent.tpot_slo;
    }
  }
}

void WorkerTable::Send(Worker& worker, SentWork sent) {
  worker.sent.push_back(std::move(sent));
  UpdateLoad(worker);
}

// Completes a worker's view with what the time and the query decide.
void WorkerTable::View(SteadyTime now, const Worker& worker, const PlacementQuery& query, uint32_t cached_pages,
                       WorkerView& view) {
  view = worker.known.view;
  view.avoided = std::ranges::find(query.avoid, worker.ref->key) != query.avoid.end();
  if (query.page_tokens == view.page_tokens) view.cached_tokens = cached_pages * view.page_tokens;
  WaitingPrompts waiting = worker.known.WaitingAt(now);
  view.waiting_batch_tokens = static_cast<uint64_t>(waiting.batch);
  view.waiting_tokens = static_cast<uint64_t>(waiting.interactive + waiting.batch);
  SplitByTenant(worker.known, query.tenant, view);
}

void WorkerTable::SplitByTenant(const Load& load, const std::string& tenant, WorkerView& view) {
  const uint64_t left = view.waiting_tokens - view.waiting_batch_tokens;
  if (left == 0 || (load.tenants.size() == 1 && load.tenants[0].first == tenant)) return;
  uint64_t all = 0;
  for (const auto& [_, waiting] : load.tenants) all += waiting;
  if (all == 0) return;
  // The worker has computed some of these tokens meanwhile, and does not report every tenant.
  const double share = std::min(1.0, static_cast<double>(left) / static_cast<double>(all));
  uint64_t least = all;
  for (const auto& [name, waiting] : load.tenants) {
    least = std::min(least, std::max<uint64_t>(waiting, 1));
    const auto of_name = static_cast<uint64_t>(share * static_cast<double>(waiting));
    if (name == tenant) {
      view.tenant_tokens = of_name;
    } else {
      view.other_tenants.push_back(of_name);
    }
  }
  // Tenants that the worker did not report have less than those that it did.
  for (uint64_t rest = left - std::min(left, all); rest > 0; rest -= std::min(rest, least)) {
    view.other_tenants.push_back(std::min(rest, least));
  }
}

WorkerTable::Group WorkerTable::MakeGroup(SteadyTime now, const PlacementQuery& query) const {
  Group group{query.model, query.assets_fingerprint, query.numerics_id, now};
  absl::flat_hash_map<size_t, uint32_t> positions;  // by worker
  for (const auto& [index, worker] : workers_) {
    if (!worker.serving() || !Matches(worker, query)) continue;
    positions.emplace(index, static_cast<uint32_t>(group.workers.size()));
    group.workers.push_back(&worker);
  }
  group.candidates.workers.resize(group.workers.size());
  for (const Pair& pair : pairs_.pairs()) {
    const auto prefill = positions.find(pair.prefill);
    const auto decode = positions.find(pair.decode);
    if (pair.state != PairSet::State::kReady || prefill == positions.end() || decode == positions.end()) continue;
    group.candidates.pairs.push_back({pair.id, prefill->second, decode->second, PairSet::RecentPath(now, pair)});
  }
  group.candidates.NoteWorkersOfPairs();
  return group;
}

void WorkerTable::ForgetFound() {
  const uint64_t version = version_ + pairs_.version();  // neither ever falls
  if (found_version_ == version) return;
  found_version_ = version;
  groups_.clear();
  found_models_.clear();
}

const WorkerTable::Group& WorkerTable::FindCandidates(SteadyTime now, const PlacementQuery& query) {
  ForgetFound();
  std::erase_if(groups_, [&](const Group& group) { return now - group.made_at > kGroupAge; });
  auto found = std::ranges::find_if(groups_, [&](const Group& group) { return group.Serves(query); });
  if (found == groups_.end()) found = groups_.insert(groups_.end(), MakeGroup(now, query));
  const std::vector<uint32_t> cached_pages = pages_.CountPrefix(query.pages);
  for (size_t i = 0; i < found->workers.size(); ++i) {
    const Worker& worker = *found->workers[i];
    View(now, worker, query, cached_pages[worker.pages], found->candidates.workers[i]);
  }
  return *found;
}

}  // namespace baton::router
