// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/simulated_router.h"

#include <algorithm>
#include <string>

#include "router/pair_set.h"

namespace baton::plan {
namespace {

using router::PlacementNeed;
using router::WorkerView;

// Work sent this long before the time of a report's figures is in them.
constexpr double kReportLag = 0.002;

}  // namespace

SimulatedRouter::SimulatedRouter(std::span<const WorkerSpec> workers, const Options& options)
    : options_(options), specs_(workers.begin(), workers.end()), workers_(workers.size()) {
  router::PairSet::Members members;
  for (size_t i = 0; i < specs_.size(); ++i) {
    (specs_[i].role == WorkerRole::kPrefill ? members.prefills : members.decodes).push_back(i);
    if (specs_[i].role == WorkerRole::kBoth) members.both.push_back(i);
    UpdateView(i);
  }
  router::PairSet set;
  set.Complete(members, [](size_t /*prefill*/, size_t /*decode*/) { return std::string(); });
  candidates_.workers.resize(specs_.size());
  const router::PathView path{options_.path_bytes_per_second};
  for (const router::PairSet::Pair& pair : set.pairs()) {
    candidates_.pairs.push_back(
        {pair.id, static_cast<uint32_t>(pair.prefill), static_cast<uint32_t>(pair.decode), path});
  }
  candidates_.NoteWorkersOfPairs();
}

void SimulatedRouter::OnReport(double as_of, size_t index, const WorkerReport& report) {
  Worker& worker = workers_[index];
  worker.report = report;
  worker.as_of = as_of;
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

WorkerView SimulatedRouter::ViewOf(double now, const Worker& worker) {
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

void SimulatedRouter::Send(size_t worker, const Sent& sent) {
  workers_[worker].sent.push_back(sent);
  UpdateView(worker);
}

PlaceAnswer SimulatedRouter::Place(double now, PlacementNeed need, bool has_begun) {
  for (size_t i = 0; i < workers_.size(); ++i) candidates_.workers[i] = ViewOf(now, workers_[i]);
  std::optional<size_t> chosen = router::ChoosePair(options_.rules, candidates_, need, turn_++);
  if (!chosen) return {};
  const auto judge = [&] {
    if (has_begun) return router::Verdict::kServe;
    return router::Judge(candidates_.View(*chosen), need, router::FastestOf(candidates_)).verdict;
  };
  router::Verdict verdict = judge();
  if (verdict == router::Verdict::kHopeless) {
    need.is_batch = true;
    chosen = router::ChoosePair(options_.rules, candidates_, need, turn_++);
    verdict = judge();
  }
  if (verdict == router::Verdict::kLate) return {.kind = PlaceAnswer::Kind::kLate};
  if (verdict == router::Verdict::kNoRoom) return {.kind = PlaceAnswer::Kind::kNoRoom, .is_batch = need.is_batch};
  const router::ReadyPair& ready = candidates_.pairs[*chosen];
  const PairChoice pair{ready.prefill, ready.decode};
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
