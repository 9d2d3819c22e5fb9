// SPDX-License-Identifier: Apache-2.0
// Pinned requests: whether the named workers can ever serve the request, and the placement on their pair.
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status_macros.h"
#include "router/worker_table.h"

namespace baton::router {
namespace {

constexpr size_t kMaxNamedWorkers = 16;  // in an error

absl::Status Invalid(const std::string& field, const std::string& value, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", value, why));
}

}  // namespace

// Returns a worker with the id, one that serves if there is one. Null: no worker has told this id.
const WorkerTable::Worker* WorkerTable::FindById(const std::string& id) const {
  const Worker* found = nullptr;
  for (const auto& [_, worker] : workers_) {
    if (!worker.ref || worker.id != id) continue;
    if (found == nullptr || worker.serving() || (worker.live() && !found->live())) found = &worker;
  }
  return found;
}

// Returns the ids of the model's workers that compute prompts, or of those that decode.
std::string WorkerTable::NamesOfWorkers(const std::string& model, bool prefills) const {
  std::vector<std::string> names;
  for (const auto& [_, worker] : workers_) {
    const v1::WorkerRole role = worker.status.role();
    const bool fits = prefills ? role != v1::WORKER_ROLE_DECODE : role != v1::WORKER_ROLE_PREFILL;
    if (worker.ref && fits && worker.status.model().name() == model) names.push_back(worker.id);
  }
  std::ranges::sort(names);
  const size_t left_out = names.size() - std::min(names.size(), kMaxNamedWorkers);
  names.resize(names.size() - left_out);
  return absl::StrCat(absl::StrJoin(names, ", "), left_out == 0 ? "" : absl::StrCat(" and ", left_out, " more"));
}

// Returns the worker that `field` of the pin names.
absl::StatusOr<const WorkerTable::Worker*> WorkerTable::FindPinned(const std::string& field, const std::string& id,
                                                                   const RequestSpec& spec, bool prefills) const {
  const Worker* worker = FindById(id);
  if (worker == nullptr) {
    return Invalid(field, id,
                   absl::StrCat(" is no worker of this router; expected ", NamesOfWorkers(spec.model, prefills)));
  }
  const v1::ServedModel& model = worker->status.model();
  if (model.name().empty()) return absl::UnavailableError(absl::StrCat(field, ": worker ", id, " is starting"));
  if (model.name() != spec.model) {
    return Invalid(field, id, absl::StrCat(" serves model ", model.name(), ", not ", spec.model));
  }
  if (model.assets_fingerprint() != spec.assets_fingerprint) {
    return Invalid(field, id, " has other tokenizer files than the workers that serve the model");
  }
  const bool fits =
      prefills ? worker->status.role() != v1::WORKER_ROLE_DECODE : worker->status.role() != v1::WORKER_ROLE_PREFILL;
  if (!fits) {
    return Invalid(field, id,
                   absl::StrCat(" has role ", RoleName(worker->status.role()), "; expected ",
                                NamesOfWorkers(spec.model, prefills)));
  }
  return worker;
}

absl::Status WorkerTable::CheckPin(const RequestSpec& spec) const {
  if (!spec.pin) return absl::OkStatus();
  const Pin& pin = *spec.pin;
  BATON_ASSIGN_OR_RETURN(const Worker* decode, FindPinned("pin.decode_worker", pin.decode, spec, false));
  const Worker* prefill = decode;
  if (!pin.local()) {
    BATON_ASSIGN_OR_RETURN(prefill, FindPinned("pin.prefill_worker", pin.prefill, spec, true));
    if (prefill->status.role() != v1::WORKER_ROLE_PREFILL) {
      return Invalid("pin.prefill_worker", pin.prefill, " has role both, and computes prompts for itself only");
    }
  } else if (decode->status.role() != v1::WORKER_ROLE_BOTH) {
    return Invalid(
        "pin.prefill_worker", "empty",
        absl::StrCat(", but ", pin.decode, " computes no prompts; expected ", NamesOfWorkers(spec.model, true)));
  }
  std::vector<std::pair<std::string, const Worker*>> others = {{"pin.prefill_worker", prefill}};
  if (!pin.migrate_to.empty()) {
    BATON_ASSIGN_OR_RETURN(const Worker* target, FindPinned("pin.migrate_to", pin.migrate_to, spec, false));
    others.emplace_back("pin.migrate_to", target);
  }
  const std::string& numerics_id = decode->status.model().numerics_id();
  for (const auto& [field, worker] : others) {
    if (worker->status.model().numerics_id() == numerics_id) continue;
    return Invalid(field, worker->id,
                   absl::StrCat(" has numerics id ", worker->status.model().numerics_id(), ", and ", decode->id,
                                " has ", numerics_id));
  }
  const uint64_t tokens = spec.prompt.size() + spec.sampling.max_tokens();
  others.emplace_back("pin.decode_worker", decode);
  for (const auto& [field, worker] : others) {
    const bool prefills = worker == prefill && !pin.local();
    const uint32_t most = prefills ? LargestPrompt(worker->known.view) : LargestSequence(worker->known.view);
    if (worker->status.capacity().pages_total() == 0 || tokens <= most) continue;
    return Invalid(field, worker->id, absl::StrCat(" holds at most ", most, " tokens, and the request has ", tokens));
  }
  return absl::OkStatus();
}

// Places a request on the pair that its pin names. If the set does not hold the pair, asks for the pair.
PlacementResult WorkerTable::PlacePinned(SteadyTime now, const Group& group, const PlacementQuery& query) {
  const Pin& pin = *query.pin;
  const auto refuse = [&](PlacementResult::Kind kind, std::string why) {
    return PlacementResult{kind, {}, absl::StrCat("the pinned pair ", pin.prefill, "+", pin.decode, " ", why)};
  };
  const Worker* prefill = FindById(pin.prefill);
  const Worker* decode = FindById(pin.decode);
  for (const Worker* worker : {prefill, decode}) {
    if (worker != nullptr && std::ranges::find(group.workers, worker) != group.workers.end()) continue;
    const std::string state = worker == nullptr ? "is no longer known" : absl::StrCat("is ", StateName(*worker));
    return refuse(PlacementResult::Kind::kNoneReady,
                  absl::StrCat("cannot serve: ", worker == prefill ? pin.prefill : pin.decode, " ", state));
  }
  pairs_.Want(now, prefill->index, decode->index);
  const auto held = std::ranges::find_if(
      pairs_.pairs(), [&](const Pair& pair) { return pair.prefill == prefill->index && pair.decode == decode->index; });
  const Candidates& candidates = group.candidates;
  const auto ready = std::ranges::find(candidates.pairs, held->id, &ReadyPair::id);
  if (ready == candidates.pairs.end()) {
    const PairStatus status = StatusOf(*held);
    return refuse(
        PlacementResult::Kind::kNoneReady,
        absl::StrCat("is ", status.state, status.detail.empty() ? "" : absl::StrCat(" (", status.detail, ")")));
  }
  const size_t pair = ready - candidates.pairs.begin();
  const PairView view = candidates.View(pair);
  if (view.prefill.avoided || view.decode.avoided) {
    return refuse(PlacementResult::Kind::kOnlyAvoided, "has a worker that failed this request");
  }
  if (query.total_tokens > LargestSequence(view)) {
    return refuse(PlacementResult::Kind::kNoneLive, absl::StrCat("never holds ", query.total_tokens, " tokens"));
  }
  return PlaceOn(now, pair, candidates, query, query.is_batch);
}

}  // namespace baton::router
