// SPDX-License-Identifier: Apache-2.0
// Models and descriptions of workers and pairs, for requests and people.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "router/worker_table.h"

namespace baton::router {

// ------------------------------------------------------------------------------------------------------------ models

// Returns the assets of a usable pair; if no pair is usable, of any pair; without a pair, of a worker that leaves.
// Requests stay with pairs of equal assets.
std::shared_ptr<const ModelAssets> WorkerTable::AssetsOf(const std::string& model) const {
  std::shared_ptr<const ModelAssets> found;
  for (const Pair& pair : pairs_.pairs()) {
    const v1::ServedModel& served = workers_.at(pair.decode).status.model();
    if (pair.state == PairSet::State::kMismatch || served.name() != model) continue;
    const auto assets = assets_.find(served.assets_fingerprint());
    if (assets == assets_.end() || assets->second.loaded == nullptr) continue;
    if (Usable(pair)) return assets->second.loaded;
    if (found == nullptr) found = assets->second.loaded;
  }
  for (const auto& [_, worker] : workers_) {
    if (found != nullptr || !worker.leaving() || worker.status.model().name() != model) continue;
    const auto assets = assets_.find(worker.status.model().assets_fingerprint());
    if (assets != assets_.end()) found = assets->second.loaded;
  }
  return found;
}

// Returns the limits over all pairs that the live workers could form. Placement asks for the pair of a long sequence.
// A worker that leaves counts: a request waits for that worker's successor.
ModelLimits WorkerTable::LimitsOf(const ServedModel& model) const {
  const bool follows_pages = options_.placement.policy == PlacementPolicy::kPrefix;
  ModelLimits limits;
  limits.max_prompt_tokens = options_.max_prompt_tokens;
  struct Largest {
    uint32_t prefill = 0;
    uint32_t decode = 0;
    uint32_t local = 0;
  };
  std::map<std::string_view, Largest> by_numerics_id;
  for (const auto& [_, worker] : workers_) {
    const v1::ServedModel& served = worker.status.model();
    if (!worker.live() || served.name() != model.name) continue;
    if (served.assets_fingerprint() != model.assets->fingerprint) continue;
    limits.vocab_size = served.vocab_size();
    // Takes the page size of a serving worker; without any, of a live worker.
    if (follows_pages && (limits.page_tokens == 0 || worker.serving())) {
      limits.page_tokens = worker.status.capacity().page_tokens();
    }
    limits.max_context_tokens = std::max(limits.max_context_tokens, served.max_context_tokens());
    const WorkerView& view = worker.known.view;
    Largest& largest = by_numerics_id[served.numerics_id()];
    if (worker.status.role() == v1::WORKER_ROLE_PREFILL) {
      largest.prefill = std::max(largest.prefill, LargestPrompt(view));
    } else {
      largest.decode = std::max(largest.decode, LargestSequence(view));
    }
    if (worker.status.role() == v1::WORKER_ROLE_BOTH) largest.local = std::max(largest.local, LargestSequence(view));
  }
  for (const auto& [_, largest] : by_numerics_id) {
    limits.max_sequence_tokens =
        std::max({limits.max_sequence_tokens, largest.local, std::min(largest.prefill, largest.decode)});
  }
  return limits;
}

// Returns why two live workers of `model` cannot be a pair, in parentheses; empty if no pair is mismatched.
std::string WorkerTable::WhyNotServed(const std::string& model) const {
  for (const Pair& pair : pairs_.pairs()) {
    if (pair.state != PairSet::State::kMismatch) continue;
    if (!model.empty() && workers_.at(pair.decode).status.model().name() != model) continue;
    return absl::StrCat(" (", PairName(pair), ": ", pair.detail, ")");
  }
  return "";
}

std::string WorkerTable::WhyNoTokenizer(const std::string& model) const {
  for (const auto& [_, worker] : workers_) {
    if (!worker.live() || worker.status.model().name() != model) continue;
    const auto assets = assets_.find(worker.status.model().assets_fingerprint());
    if (assets != assets_.end() && !assets->second.error.empty()) {
      return absl::StrCat(" cannot be served: ", assets->second.error);
    }
  }
  return " is starting: its tokenizer is not loaded yet";
}

absl::StatusOr<ServedModel> WorkerTable::FindModel(const std::string& name) {
  ForgetFound();
  if (const auto found = found_models_.find(name); found != found_models_.end()) return found->second;
  absl::StatusOr<ServedModel> model = SearchModel(name);
  if (model.ok()) found_models_[name] = *model;
  return model;
}

absl::StatusOr<ServedModel> WorkerTable::SearchModel(const std::string& name) const {
  std::set<std::string> names;
  for (const Pair& pair : pairs_.pairs()) {
    if (pair.state == PairSet::State::kMismatch) continue;
    if (const std::string& served = workers_.at(pair.decode).status.model().name(); !names.contains(served))
      names.insert(served);
  }
  // The pairs of workers that leave are forgotten.
  for (const auto& [_, worker] : workers_) {
    if (const std::string& served = worker.status.model().name(); worker.leaving() && !served.empty())
      names.insert(served);
  }
  const bool is_known = past_models_.contains(name) || std::ranges::any_of(workers_, [&](const auto& entry) {
                          const Worker& worker = entry.second;
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
  for (const auto& [_, worker] : workers_) ++counts[StateName(worker)];
  return counts;
}

WorkerTable::PairStatus WorkerTable::StatusOf(const Pair& pair) const {
  if (pair.state != PairSet::State::kReady || Usable(pair)) return {NameOf(pair.state), pair.detail};
  const Worker& away = workers_.at(pair.prefill).serving() ? workers_.at(pair.decode) : workers_.at(pair.prefill);
  return {"waiting", absl::StrCat("worker ", away.id, " is ", StateName(away))};
}

void WorkerTable::Describe(SteadyTime now, v1::GetStatusResponse& response) const {
  response.set_ready(ready());
  for (const auto& [_, worker] : workers_) {
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
    *info.mutable_facts() = status.facts();
    info.set_clock_ahead_seconds(status.clock_ahead_seconds());
    if (worker.serving() && LoadedAssets(worker) == nullptr && worker.detail.empty()) {
      const auto assets = assets_.find(status.model().assets_fingerprint());
      info.set_detail(assets != assets_.end() && !assets->second.error.empty() ? assets->second.error
                                                                               : "loading its tokenizer");
    }
  }
  for (const Pair& pair : pairs_.pairs()) {
    v1::PairInfo& info = *response.add_pairs();
    info.set_prefill_worker(workers_.at(pair.prefill).id);
    info.set_decode_worker(workers_.at(pair.decode).id);
    const PairStatus status = StatusOf(pair);
    info.set_state(status.state);
    info.set_detail(status.detail);
    info.set_transport(pair.transport);
    info.set_bytes_per_second(PairSet::RecentPath(now, pair).bytes_per_second);
  }
}

void WorkerTable::Describe(v1::ListModelsResponse& response) const {
  std::map<std::pair<std::string, std::string>, v1::ModelInfo> models;
  for (const Pair& pair : pairs_.pairs()) {
    if (pair.state == PairSet::State::kMismatch) continue;
    const v1::ServedModel& served = workers_.at(pair.decode).status.model();
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
