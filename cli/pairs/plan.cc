// SPDX-License-Identifier: Apache-2.0
#include "cli/pairs/plan.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>

namespace baton {
namespace {

struct Members {
  std::vector<std::string> prefills;
  std::vector<std::string> decodes;  // those of role both, too
  std::vector<std::string> both;
};

// The router found that two workers with one numerics id do not fit.
std::set<WorkerPair> Mismatches(const v1::GetStatusResponse& status) {
  std::set<WorkerPair> mismatches;
  for (const v1::PairInfo& pair : status.pairs()) {
    if (pair.state() == "mismatch") mismatches.insert({pair.prefill_worker(), pair.decode_worker()});
  }
  return mismatches;
}

std::vector<WorkerPair> PossiblePairs(const Members& members, const std::set<WorkerPair>& mismatches) {
  std::vector<WorkerPair> pairs;
  for (const std::string& prefill : members.prefills) {
    for (const std::string& decode : members.decodes) {
      if (!mismatches.contains({prefill, decode})) pairs.push_back({prefill, decode});
    }
  }
  for (const std::string& worker : members.both) pairs.push_back({worker, worker});
  return pairs;
}

// Plans a move between decode workers. The sequence begins on one of the pairs of the first decode worker, in turn.
void PlanMigrations(const std::vector<WorkerPair>& possible, const Members& members, const PlanOptions& options,
                    WorkerGroup& group) {
  std::map<std::string, std::vector<WorkerPair>> by_decode;
  for (const WorkerPair& pair : possible) by_decode[pair.decode].push_back(pair);
  std::vector<WorkerPair> moves;
  for (const auto& [from, _] : by_decode) {
    for (const std::string& to : members.decodes) {
      if (from != to) moves.push_back({from, to});
    }
  }
  group.possible_migrations = moves.size();
  size_t turn = options.seed % 64;
  for (const WorkerPair& move : Choose(std::move(moves), options.max_pairs, options.seed)) {
    const std::vector<WorkerPair>& starts = by_decode[move.prefill];
    group.migrations.push_back({starts[turn++ % starts.size()], move.decode});
  }
}

}  // namespace

std::vector<WorkerPair> Choose(std::vector<WorkerPair> pairs, size_t most, uint64_t seed) {
  if (pairs.size() <= most) return pairs;
  std::mt19937_64 random(seed);
  // Not std::shuffle: the choice of a seed is the same with every library.
  for (size_t i = pairs.size(); i > 1; --i) std::swap(pairs[i - 1], pairs[random() % i]);
  std::set<std::string> prefills;
  std::set<std::string> decodes;
  std::vector<WorkerPair> chosen;
  std::vector<WorkerPair> others;
  for (WorkerPair& pair : pairs) {
    const bool new_prefill = prefills.insert(pair.prefill).second;
    const bool new_decode = decodes.insert(pair.decode).second;
    (new_prefill || new_decode ? chosen : others).push_back(std::move(pair));
  }
  chosen.insert(chosen.end(), others.begin(), others.end());
  chosen.resize(most);
  std::ranges::sort(chosen);
  return chosen;
}

std::vector<WorkerGroup> MakePlan(const v1::GetStatusResponse& status, const v1::ListModelsResponse& models,
                                  const PlanOptions& options) {
  std::map<std::pair<std::string, std::string>, Members> members;  // by model and numerics id
  for (const v1::WorkerInfo& worker : status.workers()) {
    if (worker.state() != "serving" || (!options.model.empty() && worker.model() != options.model)) continue;
    Members& group = members[{worker.model(), worker.numerics_id()}];
    (worker.role() == "prefill" ? group.prefills : group.decodes).push_back(worker.worker_id());
    if (worker.role() == "both") group.both.push_back(worker.worker_id());
  }
  const std::set<WorkerPair> mismatches = Mismatches(status);
  std::vector<WorkerGroup> groups;
  for (auto& [key, group_members] : members) {
    WorkerGroup group{.model = key.first, .numerics_id = key.second};
    for (const v1::ModelInfo& model : models.models()) {
      if (model.name() != group.model || model.numerics_id() != group.numerics_id) continue;
      group.vocab_size = model.vocab_size();
      group.max_context_tokens = model.max_context_tokens();
    }
    for (auto* names : {&group_members.prefills, &group_members.decodes, &group_members.both})
      std::ranges::sort(*names);
    std::vector<WorkerPair> possible = PossiblePairs(group_members, mismatches);
    group.possible_pairs = possible.size();
    PlanMigrations(possible, group_members, options, group);
    group.pairs = Choose(std::move(possible), options.max_pairs, options.seed);
    groups.push_back(std::move(group));
  }
  return groups;
}

v1::Pin PinTo(const WorkerPair& pair) {
  v1::Pin pin;
  pin.set_prefill_worker(pair.prefill);
  pin.set_decode_worker(pair.decode);
  return pin;
}

}  // namespace baton
