// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/simulated_router.h"

#include <algorithm>
#include <limits>
#include <string>

#include "router/pair_set.h"

namespace baton::plan {
namespace {

using router::PairView;
using router::PlacementNeed;
using router::WorkerView;

// As in router/worker_table.cc: work sent this long before a report is taken to be in the report.
constexpr double kReportLag = 0.1;

// Returns a worker at which nothing delays a sequence.
WorkerView IdleDecode() {
  WorkerView view;
  view.max_sequences = std::numeric_limits<uint32_t>::max();
  view.pages_total = view.pages_free = std::numeric_limits<uint32_t>::max();
  return view;
}

}  // namespace

SimulatedRouter::SimulatedRouter(std::span<const WorkerSpec> workers, const Options& options)
    : options_(options), specs_(workers.begin(), workers.end()), workers_(workers.size()) {
  router::PairSet::Members members;
  for (size_t i = 0; i < specs_.size(); ++i) {
    (specs_[i].role == WorkerRole::kPrefill ? members.prefills : members.decodes).push_back(i);
    if (specs_[i].role == WorkerRole::kBoth) members.both.push_back(i);
    UpdateView(i);
    if (!IsMeasured(i)) ++unmeasured_;
  }
  router::PairSet set;
  set.Complete(members, [](size_t /*prefill*/, size_t /*decode*/) { return std::string(); });
  pairs_of_decode_.resize(specs_.size());
  for (const router::PairSet::Pair& pair : set.pairs()) {
    (pair.local() ? local_pairs_ : pairs_of_decode_[pair.decode]).push_back(pairs_.size());
    pairs_.push_back({pair.prefill, pair.decode});
  }
  seconds_.resize(specs_.size());
}

bool SimulatedRouter::IsMeasured(size_t worker) const {
  const WorkerReport& report = workers_[worker].report;
  const WorkerRole role = specs_[worker].role;
  return (role == WorkerRole::kDecode || report.prefill_tokens_per_second > 0) &&
         (role == WorkerRole::kPrefill || report.step_seconds > 0);
}

void SimulatedRouter::OnReport(double now, size_t index, const WorkerReport& report) {
  Worker& worker = workers_[index];
  const bool was_measured = IsMeasured(index);
  worker.report = report;
  if (!was_measured && IsMeasured(index)) --unmeasured_;
  std::erase_if(worker.sent, [&](const Sent& sent) { return sent.at + kReportLag < now; });
  UpdateView(index);
}

void SimulatedRouter::UpdateView(size_t index) {
  const Worker& worker = workers_[index];
  const WorkerKind& kind = specs_[index].kind;
  const WorkerReport& report = worker.report;
  WorkerView view{.waiting_tokens = report.waiting_tokens,
                  .prefill_tokens_per_second = report.prefill_tokens_per_second,
                  .step_seconds = report.step_seconds,
                  .running_sequences =
                      report.running_sequences + report.waiting_requests + static_cast<uint32_t>(worker.sent.size()),
                  .max_sequences = static_cast<uint32_t>(kind.schedule.max_sequences),
                  .pages_total = static_cast<uint64_t>(kind.pages),
                  .page_tokens = static_cast<uint32_t>(kind.page_tokens),
                  .kv_token_bytes = static_cast<uint32_t>(kind.kv_token_bytes),
                  .max_context_tokens = static_cast<uint32_t>(kind.max_context_tokens),
                  .running_tokens = report.running_tokens,
                  .cost = kind.known};
  uint64_t taken = report.pages_used;
  for (const Sent& sent : worker.sent) {
    view.waiting_tokens += sent.tokens;
    view.running_tokens += sent.context;
    taken += sent.pages;
  }
  view.pages_free = view.pages_total - std::min(view.pages_total, taken);
  workers_[index].view = view;
}

PairView SimulatedRouter::ViewOf(size_t pair) const {
  const auto& [prefill, decode] = pairs_[pair];
  return {.pair = pair,
          .local = prefill == decode,
          .prefill = workers_[prefill].view,
          .decode = workers_[decode].view,
          .path = {.bytes_per_second = options_.path_bytes_per_second}};
}

std::optional<size_t> SimulatedRouter::ChooseOfAll(const PlacementNeed& need, uint64_t turn) const {
  std::vector<PairView> views;
  views.reserve(pairs_.size());
  for (size_t pair = 0; pair < pairs_.size(); ++pair) views.push_back(ViewOf(pair));
  return router::ChoosePair(options_.rules, views, need, turn);
}

// All paths are alike, and the cost of a pair rises with its estimate. Each decode worker is therefore best off with
// the partner that is done soonest. The cost in a pair with an idle decode worker, without objectives, ranks the
// partners.
std::optional<size_t> SimulatedRouter::Choose(const PlacementNeed& need, uint64_t turn) {
  if (!all_measured() || options_.rules.policy == router::PlacementPolicy::kRoundRobin) return ChooseOfAll(need, turn);
  const PlacementNeed without_objectives{.prompt_tokens = need.prompt_tokens, .total_tokens = need.total_tokens};
  PairView alone;
  alone.decode = IdleDecode();
  alone.path.bytes_per_second = options_.path_bytes_per_second;
  for (size_t worker = 0; worker < specs_.size(); ++worker) {
    if (specs_[worker].role != WorkerRole::kPrefill) continue;
    alone.prefill = workers_[worker].view;
    seconds_[worker] = need.total_tokens <= router::LargestPrompt(alone.prefill)
                           ? router::CostOf(alone, without_objectives, {})
                           : std::numeric_limits<double>::infinity();
  }
  std::vector<size_t> candidates = local_pairs_;
  for (const std::vector<size_t>& pairs : pairs_of_decode_) {
    double least = std::numeric_limits<double>::infinity();
    for (const size_t pair : pairs) least = std::min(least, seconds_[pairs_[pair].prefill]);
    for (const size_t pair : pairs) {
      if (seconds_[pairs_[pair].prefill] <= least) candidates.push_back(pair);
    }
  }
  std::ranges::sort(candidates);
  std::vector<PairView> views;
  views.reserve(candidates.size());
  for (const size_t pair : candidates) views.push_back(ViewOf(pair));
  const std::optional<size_t> chosen = router::ChoosePair(options_.rules, views, need, turn);
  if (!chosen) return std::nullopt;
  return candidates[*chosen];
}

void SimulatedRouter::Send(size_t worker, const Sent& sent) {
  workers_[worker].sent.push_back(sent);
  UpdateView(worker);
}

std::optional<PairChoice> SimulatedRouter::Place(double now, const PlacementNeed& need) {
  const std::optional<size_t> chosen = Choose(need, turn_++);
  if (!chosen) return std::nullopt;
  const PairChoice pair = pairs_[*chosen];
  const uint32_t tokens = router::TokensToCompute(workers_[pair.prefill].view, need);
  const uint32_t pages = router::PagesToStart(workers_[pair.decode].view, need.prompt_tokens);
  if (pair.prefill == pair.decode) {
    Send(pair.decode, {.at = now, .tokens = tokens, .pages = pages, .context = need.prompt_tokens});
  } else {
    Send(pair.prefill, {.at = now, .tokens = tokens});
    Send(pair.decode, {.at = now, .pages = pages, .context = need.prompt_tokens});
  }
  return pair;
}

}  // namespace baton::plan
