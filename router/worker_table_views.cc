// SPDX-License-Identifier: Apache-2.0
// Answers to requests and people, from the table. worker_table.cc changes the table.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "router/worker_table.h"

namespace baton::router {

// --------------------------------------------------------------------------------------------------------- placement

bool WorkerTable::Matches(const Worker& worker, const PlacementQuery& query) const {
  const v1::ServedModel& model = worker.status.model();
  return worker.live() && model.name() == query.model && model.assets_fingerprint() == query.assets_fingerprint &&
         (query.numerics_id.empty() || model.numerics_id() == query.numerics_id);
}

WorkerView WorkerTable::View(const Worker& worker, const PlacementQuery& query) const {
  const v1::WorkerCapacity& capacity = worker.status.capacity();
  const v1::WorkerLoad& load = worker.status.load();
  WorkerView view;
  view.avoided = std::ranges::find(query.avoid, worker.ref->key) != query.avoid.end();
  view.waiting_tokens = load.waiting_tokens();
  view.prefill_tokens_per_second = load.prefill_tokens_per_second();
  view.step_seconds = load.step_seconds();
  view.running_sequences = load.running_sequences() + static_cast<uint32_t>(worker.sent.size());
  view.max_sequences = capacity.max_sequences();
  view.pages_total = capacity.pages_total();
  view.page_tokens = std::max(capacity.page_tokens(), 1u);
  view.kv_token_bytes = capacity.kv_token_bytes();
  view.max_context_tokens = worker.status.model().max_context_tokens();
  uint64_t taken = uint64_t{load.pages_used()} + load.pages_quarantined();
  for (const SentWork& sent : worker.sent) {
    view.waiting_tokens += sent.tokens;
    taken += sent.pages;
  }
  view.pages_free = view.pages_total - std::min(view.pages_total, taken);
  if (query.page_tokens == view.page_tokens) {
    view.cached_tokens = static_cast<uint32_t>(worker.pages.CountPrefix(query.pages)) * view.page_tokens;
  }
  return view;
}

PairView WorkerTable::View(const Pair& pair) const {
  return {pair.id, pair.local(), View(workers_[pair.prefill]), View(workers_[pair.decode]), pair.path};
}

Placement WorkerTable::MakePlacement(size_t prefill, size_t decode, uint64_t pair) const {
  Placement placement;
  placement.pair = pair;
  placement.local = prefill == decode;
  placement.prefill = *workers_[prefill].ref;
  placement.decode = *workers_[decode].ref;
  placement.model = workers_[decode].status.model().name();
  placement.numerics_id = workers_[decode].status.model().numerics_id();
  return placement;
}

WorkerTable::Candidates WorkerTable::FindCandidates(const PlacementQuery& query) const {
  Candidates candidates;
  for (size_t i = 0; i < workers_.size(); ++i) {
    const Worker& worker = workers_[i];
    if (worker.serving() && Matches(worker, query)) candidates.views.emplace(i, View(worker, query));
  }
  for (const Pair& pair : pairs_.pairs()) {
    const auto prefill = candidates.views.find(pair.prefill);
    const auto decode = candidates.views.find(pair.decode);
    if (pair.state != PairSet::State::kReady || prefill == candidates.views.end() || decode == candidates.views.end()) {
      continue;
    }
    candidates.pairs.push_back({pair.id, pair.local(), prefill->second, decode->second, pair.path});
  }
  return candidates;
}

std::optional<size_t> WorkerTable::BestDecode(const Candidates& candidates, const PlacementNeed& need,
                                              uint64_t turn) const {
  std::vector<size_t> workers;
  std::vector<WorkerView> views;
  for (const auto& [worker, view] : candidates.views) {
    if (workers_[worker].ref->handoff_address.empty()) continue;
    workers.push_back(worker);
    views.push_back(view);
  }
  const std::optional<size_t> best = ChooseDecode(options_.placement, views, need, turn);
  if (!best) return std::nullopt;
  return workers[*best];
}

PlacementResult WorkerTable::Place(SteadyTime now, const PlacementQuery& query) {
  const PlacementNeed need{query.prompt_tokens, query.total_tokens};
  const Candidates candidates = FindCandidates(query);
  if (query.migrates) return PlaceMigration(now, candidates, query);
  const std::optional<size_t> chosen = ChoosePair(options_.placement, candidates.pairs, need, turn_++);
  WantSooner(candidates, need, chosen ? &candidates.pairs[*chosen] : nullptr);
  if (!chosen) return WhyNotPlaced(candidates, query);
  const PairView& view = candidates.pairs[*chosen];
  const Pair& pair = *pairs_.Find(view.pair);
  const uint32_t pages = query.prompt_tokens / view.decode.page_tokens + 1;
  workers_[pair.prefill].sent.push_back({now, TokensToCompute(view.prefill, need), pair.local() ? pages : 0});
  if (!pair.local()) workers_[pair.decode].sent.push_back({now, 0, pages});
  PlacementResult placed{PlacementResult::Kind::kPlaced, MakePlacement(pair.prefill, pair.decode, pair.id), ""};
  placed.placement.cached_tokens = view.prefill.cached_tokens;
  return placed;
}

PlacementResult WorkerTable::PlaceMigration(SteadyTime now, const Candidates& candidates, const PlacementQuery& query) {
  const std::optional<size_t> decode = BestDecode(candidates, {query.prompt_tokens, query.total_tokens}, turn_++);
  if (!decode) return {PlacementResult::Kind::kNoneReady, {}, "no other decode worker takes the sequence"};
  workers_[*decode].sent.push_back({now, 0, query.prompt_tokens / candidates.views.at(*decode).page_tokens + 1});
  Placement placement = MakePlacement(*decode, *decode, 0);
  placement.prefill = {};
  placement.local = false;
  return {PlacementResult::Kind::kPlaced, std::move(placement), ""};
}

// Asks for the proof of the pair that would be sooner than the chosen pair. Without a chosen pair, of the best.
void WorkerTable::WantSooner(const Candidates& candidates, const PlacementNeed& need, const PairView* chosen) {
  if (options_.placement.policy == PlacementPolicy::kRoundRobin && chosen != nullptr) return;
  const std::optional<size_t> decode = BestDecode(candidates, need, 0);
  if (!decode) return;
  std::vector<size_t> prefills;
  std::vector<PairView> pairs;
  for (const auto& [worker, view] : candidates.views) {
    if (workers_[worker].status.role() != v1::WORKER_ROLE_PREFILL || !WhyNoPair(worker, *decode).empty()) continue;
    prefills.push_back(worker);
    pairs.push_back({0, false, view, candidates.views.at(*decode), {}});
  }
  const std::optional<size_t> best = ChoosePair(options_.placement, pairs, need, 0);
  if (!best) return;
  const AssumedSpeed assumed = FastestOf(candidates.pairs);
  if (chosen == nullptr || EstimateSeconds(pairs[*best], need, assumed) < EstimateSeconds(*chosen, need, assumed)) {
    pairs_.Want(prefills[*best], *decode);
  }
}

PlacementResult WorkerTable::WhyNotPlaced(const Candidates& candidates, const PlacementQuery& query) const {
  const auto fits = [&](const PairView& pair) { return query.total_tokens <= LargestSequence(pair); };
  if (std::ranges::any_of(candidates.pairs, fits)) {
    return {PlacementResult::Kind::kOnlyAvoided, {}, absl::StrCat("no other pair of workers serves ", query.model)};
  }
  for (const Pair& pair : pairs_.pairs()) {
    const Worker& prefill = workers_[pair.prefill];
    const Worker& decode = workers_[pair.decode];
    if (pair.state == PairSet::State::kMismatch || !Matches(decode, query)) continue;
    if (prefill.draining() || decode.draining() || !fits(View(pair))) continue;
    return {PlacementResult::Kind::kNoneReady,
            {},
            absl::StrCat("no pair of workers is ready for model ", query.model, ": ", PairName(pair), " is ",
                         NameOf(pair.state), pair.detail.empty() ? "" : absl::StrCat(" (", pair.detail, ")"))};
  }
  return {PlacementResult::Kind::kNoneLive,
          {},
          absl::StrCat("no live pair of workers for model ", query.model,
                       query.numerics_id.empty() ? "" : absl::StrCat(" with numerics id ", query.numerics_id))};
}

// ------------------------------------------------------------------------------------------------------------ models

// Prefers the assets of a usable pair: requests stay with pairs of equal assets.
std::shared_ptr<const ModelAssets> WorkerTable::AssetsOf(const std::string& model) const {
  std::shared_ptr<const ModelAssets> found;
  for (const Pair& pair : pairs_.pairs()) {
    const v1::ServedModel& served = workers_[pair.decode].status.model();
    if (pair.state == PairSet::State::kMismatch || served.name() != model) continue;
    const auto assets = assets_.find(served.assets_fingerprint());
    if (assets == assets_.end() || assets->second.loaded == nullptr) continue;
    if (Usable(pair)) return assets->second.loaded;
    if (found == nullptr) found = assets->second.loaded;
  }
  return found;
}

// Of the largest pair: placement finds it.
ModelLimits WorkerTable::LimitsOf(const ServedModel& model) const {
  const bool follows_pages = options_.placement.policy == PlacementPolicy::kPrefix;
  ModelLimits limits;
  limits.max_prompt_tokens = options_.max_prompt_tokens;
  for (const Pair& pair : pairs_.pairs()) {
    const v1::ServedModel& served = workers_[pair.decode].status.model();
    if (pair.state == PairSet::State::kMismatch || served.name() != model.name) continue;
    if (served.assets_fingerprint() != model.assets->fingerprint) continue;
    limits.vocab_size = served.vocab_size();
    // Of a pair that serves, if there is one.
    if (follows_pages && (limits.page_tokens == 0 || Usable(pair))) {
      limits.page_tokens = workers_[pair.decode].status.capacity().page_tokens();
    }
    limits.max_context_tokens = std::max(limits.max_context_tokens, served.max_context_tokens());
    limits.max_sequence_tokens = std::max(limits.max_sequence_tokens, LargestSequence(View(pair)));
  }
  return limits;
}

// Of live workers that do not fit each other.
std::string WorkerTable::WhyNotServed(const std::string& model) const {
  for (const Pair& pair : pairs_.pairs()) {
    if (pair.state != PairSet::State::kMismatch) continue;
    if (!model.empty() && workers_[pair.decode].status.model().name() != model) continue;
    return absl::StrCat(" (", PairName(pair), ": ", pair.detail, ")");
  }
  return "";
}

std::string WorkerTable::WhyNoTokenizer(const std::string& model) const {
  for (const Worker& worker : workers_) {
    if (!worker.live() || worker.status.model().name() != model) continue;
    const auto assets = assets_.find(worker.status.model().assets_fingerprint());
    if (assets != assets_.end() && !assets->second.error.empty()) {
      return absl::StrCat(" cannot be served: ", assets->second.error);
    }
  }
  return " is starting: its tokenizer is not loaded yet";
}

absl::StatusOr<ServedModel> WorkerTable::FindModel(const std::string& name) const {
  std::set<std::string> names;
  for (const Pair& pair : pairs_.pairs()) {
    if (pair.state != PairSet::State::kMismatch) names.insert(workers_[pair.decode].status.model().name());
  }
  const bool is_known = std::any_of(workers_.begin(), workers_.end(), [&](const Worker& worker) {
    return worker.ref && worker.status.model().name() == name;
  });
  if (names.empty() || (is_known && !names.contains(name))) {
    return absl::UnavailableError(
        absl::StrCat("no live pair of workers serves ", name.empty() ? "any model" : name, WhyNotServed(name)));
  }
  if (name.empty() && names.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat("model: empty; expected one of ", absl::StrJoin(names, ", ")));
  }
  if (!name.empty() && !names.contains(name)) {
    return absl::NotFoundError(absl::StrCat("model: ", name, "; served are ", absl::StrJoin(names, ", ")));
  }
  ServedModel model;
  model.name = name.empty() ? *names.begin() : name;
  model.assets = AssetsOf(model.name);
  if (model.assets == nullptr) {
    return absl::UnavailableError(absl::StrCat("model ", model.name, WhyNoTokenizer(model.name)));
  }
  model.limits = LimitsOf(model);
  return model;
}

// ------------------------------------------------------------------------------------------------------- description

std::map<std::string, int> WorkerTable::workers_by_state() const {
  std::map<std::string, int> counts{{"connecting", 0}, {"starting", 0}, {"serving", 0}, {"draining", 0}, {"lost", 0}};
  for (const Worker& worker : workers_) ++counts[StateName(worker)];
  return counts;
}

void WorkerTable::Describe(v1::GetStatusResponse& response) const {
  response.set_ready(ready());
  for (const Worker& worker : workers_) {
    const v1::WorkerStatus& status = worker.status;
    v1::WorkerInfo& info = *response.add_workers();
    info.set_worker_id(worker.id);
    info.set_role(RoleName(status.role()));
    info.set_address(worker.address);
    info.set_model(status.model().name());
    info.set_state(StateName(worker));
    info.set_detail(worker.detail);
    info.set_waiting_requests(status.load().waiting_requests());
    info.set_running_sequences(status.load().running_sequences());
    info.set_pages_total(status.capacity().pages_total());
    info.set_pages_used(status.load().pages_used());
    info.set_pages_cached(status.load().pages_cached());
    info.set_pages_quarantined(status.load().pages_quarantined());
    info.set_prefill_tokens_per_second(status.load().prefill_tokens_per_second());
    info.set_numerics_id(status.model().numerics_id());
    if (worker.serving() && LoadedAssets(worker) == nullptr && worker.detail.empty()) {
      const auto assets = assets_.find(status.model().assets_fingerprint());
      info.set_detail(assets != assets_.end() && !assets->second.error.empty() ? assets->second.error
                                                                               : "loading its tokenizer");
    }
  }
  for (const Pair& pair : pairs_.pairs()) {
    v1::PairInfo& info = *response.add_pairs();
    info.set_prefill_worker(workers_[pair.prefill].id);
    info.set_decode_worker(workers_[pair.decode].id);
    if (pair.state == PairSet::State::kReady && !Usable(pair)) {
      info.set_state("waiting");
      info.set_detail("a worker of it does not serve");
    } else {
      info.set_state(NameOf(pair.state));
      info.set_detail(pair.detail);
    }
  }
}

void WorkerTable::Describe(v1::ListModelsResponse& response) const {
  std::map<std::pair<std::string, std::string>, v1::ModelInfo> models;
  for (const Pair& pair : pairs_.pairs()) {
    if (pair.state == PairSet::State::kMismatch) continue;
    const v1::ServedModel& served = workers_[pair.decode].status.model();
    v1::ModelInfo& info = models[{served.name(), served.numerics_id()}];
    info.set_name(served.name());
    info.set_architecture(served.architecture());
    info.set_vocab_size(served.vocab_size());
    info.set_max_context_tokens(served.max_context_tokens());
    info.set_numerics_id(served.numerics_id());
    info.set_ready(info.ready() || Usable(pair));
  }
  for (auto& [key, info] : models) *response.add_models() = std::move(info);
}

}  // namespace baton::router
