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

// Work sent this long before the time of a report's figures is in them.
constexpr double kReportLag = 0.002;

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

void SimulatedRouter::OnReport(double as_of, size_t index, const WorkerReport& report) {
  Worker& worker = workers_[index];
  const bool was_measured = IsMeasured(index);
  worker.report = report;
  worker.as_of = as_of;
  if (!was_measured && IsMeasured(index)) --unmeasured_;
  std::erase_if(worker.sent, [&](const Sent& sent) { return sent.at + kReportLag < as_of; });
  UpdateView(index);
}

void SimulatedRouter::UpdateView(size_t index) {
  const Worker& worker = workers_[index];
  const WorkerKind& kind = specs_[index].kind;
  const WorkerReport& report = worker.report;
  WorkerView view{.waiting_requests = report.waiting_requests,
                  .prefill_tokens_per_second = report.prefill_tokens_per_second,
                  .step_seconds = report.step_seconds,
                  .sequence_seconds = report.sequence_seconds,
                  .decoding_sequences = report.running_sequences,
                  .running_sequences =
                      report.running_sequences + report.waiting_requests + static_cast<uint32_t>(worker.sent.size()),
                  .objectives = report.tpot_objectives,
                  .tpot_slo = report.tpot_slo_seconds,
                  .max_sequences = static_cast<uint32_t>(kind.schedule.max_sequences),
                  .pages_total = static_cast<uint64_t>(kind.pages),
                  .page_tokens = static_cast<uint32_t>(kind.page_tokens),
                  .kv_token_bytes = static_cast<uint32_t>(kind.kv_token_bytes),
                  .max_context_tokens = static_cast<uint32_t>(kind.max_context_tokens),
                  .running_tokens = report.running_tokens,
                  .cost = kind.known};
  uint64_t taken = report.pages_used;
  for (const Sent& sent : worker.sent) {
    view.running_tokens += sent.context;
    taken += sent.pages;
    if (sent.tpot_slo <= 0) continue;
    ++view.objectives;
    view.tpot_slo = view.tpot_slo > 0 ? std::min(view.tpot_slo, sent.tpot_slo) : sent.tpot_slo;
  }
  view.pages_free = view.pages_total - std::min(view.pages_total, taken);
  workers_[index].view = view;
}

WorkerView SimulatedRouter::ViewOfWorker(double now, size_t index) const {
  const Worker& worker = workers_[index];
  WorkerView view = worker.view;
  router::WaitingPrompts waiting;
  waiting.batch = static_cast<double>(worker.report.waiting_batch_tokens);
  waiting.interactive = static_cast<double>(worker.report.waiting_tokens) - waiting.batch;
  const double speed = view.prefill_tokens_per_second * router::PromptShare(view);
  double time = worker.as_of;
  for (const Sent& sent : worker.sent) {
    if (sent.at > time) waiting.Compute(speed * (sent.at - time));
    time = std::max(time, sent.at);
    (sent.is_batch ? waiting.batch : waiting.interactive) += sent.tokens;
  }
  if (now > time) waiting.Compute(speed * (now - time));
  view.waiting_batch_tokens = static_cast<uint64_t>(waiting.batch);
  view.waiting_tokens = static_cast<uint64_t>(waiting.interactive + waiting.batch);
  return view;
}

PairView SimulatedRouter::ViewOf(double now, size_t pair) const {
  const auto& [prefill, decode] = pairs_[pair];
  return {.pair = pair,
          .local = prefill == decode,
          .prefill = ViewOfWorker(now, prefill),
          .decode = ViewOfWorker(now, decode),
          .path = {.bytes_per_second = options_.path_bytes_per_second}};
}

std::optional<size_t> SimulatedRouter::ChooseOfAll(double now, const PlacementNeed& need, uint64_t turn) const {
  std::vector<PairView> views;
  views.reserve(pairs_.size());
  for (size_t pair = 0; pair < pairs_.size(); ++pair) views.push_back(ViewOf(now, pair));
  return router::ChoosePair(options_.rules, views, need, turn);
}

// All paths are alike, and the cost of a pair rises with its estimate. Each decode worker is therefore best off with
// the partner that is done soonest. The cost in a pair with an idle decode worker, without objectives, ranks the
// partners.
std::optional<size_t> SimulatedRouter::Choose(double now, const PlacementNeed& need, uint64_t turn) {
  if (!all_measured() || options_.rules.policy == router::PlacementPolicy::kRoundRobin)
    return ChooseOfAll(now, need, turn);
  const PlacementNeed without_objectives{
      .prompt_tokens = need.prompt_tokens, .total_tokens = need.total_tokens, .is_batch = need.is_batch};
  PairView alone;
  alone.decode = IdleDecode();
  alone.path.bytes_per_second = options_.path_bytes_per_second;
  for (size_t worker = 0; worker < specs_.size(); ++worker) {
    if (specs_[worker].role != WorkerRole::kPrefill) continue;
    alone.prefill = ViewOfWorker(now, worker);
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
  for (const size_t pair : candidates) views.push_back(ViewOf(now, pair));
  const std::optional<size_t> chosen = router::ChoosePair(options_.rules, views, need, turn);
  if (!chosen) return std::nullopt;
  return candidates[*chosen];
}

void SimulatedRouter::Send(size_t worker, const Sent& sent) {
  workers_[worker].sent.push_back(sent);
  UpdateView(worker);
}

PlaceAnswer SimulatedRouter::Place(double now, PlacementNeed need, bool has_begun) {
  std::optional<size_t> chosen = Choose(now, need, turn_++);
  if (!chosen) return {};
  const auto judge = [&] {
    if (has_begun) return router::Verdict::kServe;
    const PairView view = ViewOf(now, *chosen);
    return router::Judge(view, need, router::FastestOf({&view, 1})).verdict;
  };
  router::Verdict verdict = judge();
  if (verdict == router::Verdict::kHopeless) {
    need.is_batch = true;
    chosen = Choose(now, need, turn_++);
    verdict = judge();
  }
  if (verdict == router::Verdict::kLate) return {.kind = PlaceAnswer::Kind::kLate};
  if (verdict == router::Verdict::kNoRoom) return {.kind = PlaceAnswer::Kind::kNoRoom, .is_batch = need.is_batch};
  const PairChoice pair = pairs_[*chosen];
  Sent to_compute{
      .at = now, .tokens = router::TokensToCompute(workers_[pair.prefill].view, need), .is_batch = need.is_batch};
  Sent to_decode = to_compute;
  to_decode.pages = router::PagesToStart(workers_[pair.decode].view, need.prompt_tokens);
  to_decode.context = need.prompt_tokens;
  to_decode.tpot_slo = need.tpot_slo;
  if (pair.prefill != pair.decode) {
    to_decode.tokens = 0;
    Send(pair.prefill, to_compute);
  }
  Send(pair.decode, to_decode);
  return {.kind = PlaceAnswer::Kind::kPlaced, .pair = pair, .is_batch = need.is_batch};
}

}  // namespace baton::plan
