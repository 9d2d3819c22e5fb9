// SPDX-License-Identifier: Apache-2.0
// What the table tells requests and people. worker_table.cc is about how it changes.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "router/worker_table.h"

namespace baton::router {

// --------------------------------------------------------------------------------------------------------- placement

bool WorkerTable::Matches(const Pair& pair, const PlacementQuery& query) const {
  const v1::ServedModel& model = workers_[pair.decode].status.model();
  return pair.state != PairState::kMismatch && model.name() == query.model &&
         model.assets_fingerprint() == query.assets_fingerprint &&
         (query.numerics_id.empty() || model.numerics_id() == query.numerics_id);
}

WorkerView WorkerTable::View(const Worker& worker, const PlacementQuery& query) const {
  const v1::WorkerCapacity& capacity = worker.status.capacity();
  const v1::WorkerLoad& load = worker.status.load();
  WorkerView view;
  view.key = worker.ref->key;
  view.waiting_tokens = load.waiting_tokens();
  view.prefill_tokens_per_second = load.prefill_tokens_per_second();
  view.running_sequences = load.running_sequences() + static_cast<uint32_t>(worker.sent.size());
  view.max_sequences = capacity.max_sequences();
  view.pages_total = capacity.pages_total();
  view.page_tokens = std::max(capacity.page_tokens(), 1u);
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

PairView WorkerTable::View(const Pair& pair, const PlacementQuery& query) const {
  return {pair.id, pair.prefill == pair.decode, View(workers_[pair.prefill], query),
          View(workers_[pair.decode], query)};
}

Placement WorkerTable::MakePlacement(const Pair& pair) const {
  const Worker& decode = workers_[pair.decode];
  Placement placement;
  placement.pair = pair.id;
  placement.local = pair.prefill == pair.decode;
  placement.prefill = *workers_[pair.prefill].ref;
  placement.decode = *decode.ref;
  placement.model = decode.status.model().name();
  placement.numerics_id = decode.status.model().numerics_id();
  return placement;
}

PlacementResult WorkerTable::Place(SteadyTime now, const PlacementQuery& query) {
  const PlacementNeed need{query.prompt_tokens, query.total_tokens, query.migrates};
  std::vector<PairView> views;
  const Pair* hopeful = nullptr;
  for (const Pair& pair : pairs_) {
    if (!Matches(pair, query) || (query.migrates && workers_[pair.decode].ref->handoff_address.empty())) continue;
    const PairView view = View(pair, query);
    if (!Fits(view, need)) continue;
    if (Usable(pair)) {
      views.push_back(view);
    } else if (!workers_[pair.prefill].draining() && !workers_[pair.decode].draining()) {
      hopeful = &pair;
    }
  }
  if (const std::optional<size_t> chosen = ChoosePair(options_.placement, views, need, query.avoid, turn_++)) {
    const PairView& view = views[*chosen];
    const Pair& pair = *FindPair(view.pair);
    const SentWork pages{now, 0, query.prompt_tokens / view.decode.page_tokens + 1};
    if (query.migrates) {
      workers_[pair.decode].sent.push_back(pages);
      PlacementResult placed{PlacementResult::Kind::kPlaced, MakePlacement(pair), ""};
      placed.placement.pair = 0;
      placed.placement.local = false;
      return placed;
    }
    workers_[pair.prefill].sent.push_back({now, TokensToCompute(view.prefill, need), 0});
    if (pair.prefill == pair.decode) {
      workers_[pair.decode].sent.back().pages = pages.pages;
    } else {
      workers_[pair.decode].sent.push_back(pages);
    }
    PlacementResult placed{PlacementResult::Kind::kPlaced, MakePlacement(pair), ""};
    placed.placement.cached_tokens = view.prefill.cached_tokens;
    return placed;
  }
  if (!views.empty()) {
    return {PlacementResult::Kind::kOnlyAvoided, {}, absl::StrCat("no other pair of workers serves ", query.model)};
  }
  if (hopeful != nullptr) {
    return {PlacementResult::Kind::kNoneReady,
            {},
            absl::StrCat("no pair of workers is ready for model ", query.model, ": ", PairName(*hopeful), " is ",
                         StateName(hopeful->state),
                         hopeful->detail.empty() ? "" : absl::StrCat(" (", hopeful->detail, ")"))};
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
  for (const Pair& pair : pairs_) {
    const v1::ServedModel& served = workers_[pair.decode].status.model();
    if (pair.state == PairState::kMismatch || served.name() != model) continue;
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
  for (const Pair& pair : pairs_) {
    const v1::ServedModel& served = workers_[pair.decode].status.model();
    if (pair.state == PairState::kMismatch || served.name() != model.name) continue;
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
std::string WorkerTable::WhyNoPair(const std::string& model) const {
  for (const Pair& pair : pairs_) {
    if (pair.state != PairState::kMismatch) continue;
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
  for (const Pair& pair : pairs_) {
    if (pair.state != PairState::kMismatch) names.insert(workers_[pair.decode].status.model().name());
  }
  const bool is_known = std::any_of(workers_.begin(), workers_.end(), [&](const Worker& worker) {
    return worker.ref && worker.status.model().name() == name;
  });
  if (names.empty() || (is_known && !names.contains(name))) {
    return absl::UnavailableError(
        absl::StrCat("no live pair of workers serves ", name.empty() ? "any model" : name, WhyNoPair(name)));
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
  for (const Pair& pair : pairs_) {
    v1::PairInfo& info = *response.add_pairs();
    info.set_prefill_worker(workers_[pair.prefill].id);
    info.set_decode_worker(workers_[pair.decode].id);
    if (pair.state == PairState::kReady && !Usable(pair)) {
      info.set_state("waiting");
      info.set_detail("a worker of it does not serve");
    } else {
      info.set_state(StateName(pair.state));
      info.set_detail(pair.detail);
    }
  }
}

void WorkerTable::Describe(v1::ListModelsResponse& response) const {
  std::map<std::pair<std::string, std::string>, v1::ModelInfo> models;
  for (const Pair& pair : pairs_) {
    if (pair.state == PairState::kMismatch) continue;
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
