// SPDX-License-Identifier: Apache-2.0
// Placement: the choice of workers, and the reason if none was chosen.
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "router/worker_table.h"

namespace baton::router {
namespace {

// The search for a faster pair looks at every worker and at many pairs.
constexpr absl::Duration kWantInterval = absl::Milliseconds(100);

// A pair that is not proven yet must promise this much to be worth a probe.
constexpr double kWorthwhile = 0.9;
constexpr double kWorthwhileSeconds = 0.005;

constexpr size_t kExplainedPairs = 8;

// Longer than two polls of a request that waits for room (router/request_attempts.cc).
constexpr absl::Duration kWaiterMemory = absl::Milliseconds(120);
constexpr double kTurnSeconds = 0.1;

PlacementNeed NeedOf(const PlacementQuery& query) {
  return {.prompt_tokens = query.prompt_tokens,
          .total_tokens = query.total_tokens,
          .is_batch = query.is_batch,
          .waited = absl::ToDoubleSeconds(query.waited),
          .time_left = query.time_left < absl::InfiniteDuration() ? absl::ToDoubleSeconds(query.time_left) : 0,
          .ttft_slo = absl::ToDoubleSeconds(query.ttft_slo),
          .tpot_slo = absl::ToDoubleSeconds(query.tpot_slo)};
}

}  // namespace

Placement WorkerTable::MakePlacement(size_t prefill, size_t decode, uint64_t pair) const {
  Placement placement;
  placement.pair = pair;
  placement.local = prefill == decode;
  placement.prefill = *workers_.at(prefill).ref;
  placement.decode = *workers_.at(decode).ref;
  placement.model = workers_.at(decode).status.model().name();
  placement.numerics_id = workers_.at(decode).status.model().numerics_id();
  return placement;
}

PlacementResult WorkerTable::Place(SteadyTime now, const PlacementQuery& query) {
  const Group& group = FindCandidates(now, query);
  if (query.migrates) return PlaceMigration(now, group, query);
  if (query.pin) return PlacePinned(now, group, query);
  const PlacementNeed need = NeedOf(query);
  const std::optional<size_t> chosen = ChoosePair(options_.placement, group.candidates, need, turn_++);
  if (!chosen) {
    WantFasterPair(now, group, need, chosen);
    return WhyNotPlaced(group.candidates, query);
  }
  PlacementResult result = PlaceUnlessLate(now, *chosen, group.candidates, query, need);
  WantFasterPair(now, group, need, chosen);  // last: the chosen pair may be forgotten for a faster one
  return result;
}

PlacementResult WorkerTable::PlaceUnlessLate(SteadyTime now, size_t pair, const Candidates& candidates,
                                             const PlacementQuery& query, PlacementNeed need) {
  if (!query.has_begun) {
    const AssumedSpeed assumed = FastestOf(candidates);
    Judgement judgement = Judge(candidates.View(pair), need, assumed);
    const bool serves_late = query.when_late == WhenLate::kServe && judgement.verdict == Verdict::kLate;
    if (!need.is_batch && (serves_late || judgement.verdict == Verdict::kHopeless)) {
      need.is_batch = true;
      pair = *ChoosePair(options_.placement, candidates, need, turn_++);
      judgement = Judge(candidates.View(pair), need, assumed);
    }
    if (judgement.verdict == Verdict::kServe && OlderWaits(now, query)) judgement = {Verdict::kNoRoom, kTurnSeconds};
    if (judgement.verdict == Verdict::kNoRoom) NoteWaiter(now, query);
    if (judgement.verdict != Verdict::kServe) return NotNow(judgement, query, need);
    if (waiter_ && waiter_->request == query.request) waiter_.reset();
  }
  return PlaceOn(now, pair, candidates, query, need.is_batch);
}

PlacementResult WorkerTable::PlaceOn(SteadyTime now, size_t chosen, const Candidates& candidates,
                                     const PlacementQuery& query, bool is_batch) {
  PlacementNeed need = NeedOf(query);
  need.is_batch = is_batch;
  const ReadyPair& ready = candidates.pairs[chosen];
  const WorkerView& prefill = candidates.workers[ready.prefill];
  const Pair& pair = *pairs_.Find(ready.id);
  pairs_.NoteUse(now, pair.id);
  const SentWork to_compute{.at = now,
                            .request = query.request.low,
                            .tokens = TokensToCompute(prefill, need),
                            .tenant = query.tenant,
                            .is_batch = need.is_batch};
  SentWork to_decode = to_compute;
  to_decode.pages = PagesToStart(candidates.workers[ready.decode], query.prompt_tokens);
  to_decode.context = query.prompt_tokens;
  to_decode.tpot_slo = need.tpot_slo;
  if (!pair.local()) {
    to_decode.tokens = 0;
    Send(workers_.at(pair.prefill), to_compute);
  }
  Send(workers_.at(pair.decode), to_decode);
  PlacementResult placed{PlacementResult::Kind::kPlaced, MakePlacement(pair.prefill, pair.decode, pair.id), ""};
  placed.placement.cached_tokens = prefill.cached_tokens;
  placed.placement.is_batch = need.is_batch;
  if (query.explain) placed.placement.estimates = Explain(candidates, need);
  return placed;
}

// Of the requests for a model that wait for room, the one that is due first gets the next room: each asks again within
// kWaiterMemory.
bool WorkerTable::OlderWaits(SteadyTime now, const PlacementQuery& query) const {
  return waiter_ && waiter_->model == query.model && now < waiter_->until && waiter_->request != query.request &&
         waiter_->due < query.due;
}

void WorkerTable::NoteWaiter(SteadyTime now, const PlacementQuery& query) {
  if (OlderWaits(now, query)) return;
  waiter_ = Waiter{query.model, query.request, query.due, now + kWaiterMemory};
}

PlacementResult WorkerTable::NotNow(const Judgement& judgement, const PlacementQuery& query,
                                    const PlacementNeed& need) {
  PlacementResult result;
  result.retry_after = absl::Seconds(judgement.retry_after);
  if (judgement.verdict == Verdict::kLate) {
    result.kind = PlacementResult::Kind::kLate;
    result.detail = absl::StrCat("the first token of a request for model ", query.model, " would come too late");
  } else {
    result.kind = PlacementResult::Kind::kNoRoom;
    result.detail =
        absl::StrCat("the decode workers of model ", query.model, " have no time per token left for one more sequence");
    result.may_wait = need.is_batch || need.ttft_slo > 0;
  }
  return result;
}

// Returns the pairs with the least costs in seconds, such as "p0+d1 0.0123, p1+d1 0.0208".
std::string WorkerTable::Explain(const Candidates& candidates, const PlacementNeed& need) const {
  const AssumedSpeed assumed = FastestOf(candidates);
  std::vector<std::pair<double, uint64_t>> estimates;  // seconds, pair
  for (size_t i = 0; i < candidates.pairs.size(); ++i) {
    const PairView pair = candidates.View(i);
    if (IsPossible(pair, need)) estimates.emplace_back(CostOf(pair, need, assumed), pair.pair);
  }
  const size_t shown = std::min(estimates.size(), kExplainedPairs);
  std::ranges::partial_sort(estimates, estimates.begin() + static_cast<ptrdiff_t>(shown));
  std::string text;
  for (size_t i = 0; i < shown; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", PairName(*pairs_.Find(estimates[i].second)), " ",
                    absl::StrFormat("%.4f", estimates[i].first));
  }
  return text;
}

PlacementResult WorkerTable::PlaceMigration(SteadyTime now, const Group& group, const PlacementQuery& query) {
  std::vector<size_t> workers;
  std::vector<WorkerView> views;
  for (size_t i = 0; i < group.workers.size(); ++i) {
    const Worker& worker = *group.workers[i];
    if (worker.ref->handoff_address.empty()) continue;
    if (query.pin && worker.id != query.pin->migrate_to) continue;
    workers.push_back(worker.index);
    views.push_back(group.candidates.workers[i]);
  }
  const PlacementNeed need = NeedOf(query);
  const std::optional<size_t> chosen = ChooseDecode(options_.placement, views, need, turn_++);
  if (!chosen) {
    return {
        PlacementResult::Kind::kNoneReady,
        {},
        absl::StrCat("no other decode worker of model ", query.model, " could take ", query.total_tokens, " tokens")};
  }
  Send(workers_.at(workers[*chosen]), {.at = now,
                                       .request = query.request.low,
                                       .pages = PagesToStart(views[*chosen], query.prompt_tokens),
                                       .context = query.prompt_tokens,
                                       .tenant = query.tenant,
                                       .is_batch = query.is_batch,
                                       .tpot_slo = need.tpot_slo});
  Placement placement = MakePlacement(workers[*chosen], workers[*chosen], 0);
  placement.prefill = {};
  placement.local = false;
  placement.is_batch = query.is_batch;
  return {PlacementResult::Kind::kPlaced, std::move(placement), ""};
}

// Asks for the fastest of the pairs that the set does not hold, if that pair would be faster than the chosen pair.
void WorkerTable::WantFasterPair(SteadyTime now, const Group& group, const PlacementNeed& need,
                                 std::optional<size_t> chosen) {
  if (chosen && (now < next_want_ || options_.placement.policy == PlacementPolicy::kRoundRobin)) return;
  next_want_ = now + kWantInterval;
  double most = std::numeric_limits<double>::infinity();
  if (chosen) {
    const double cost = CostOf(group.candidates.View(*chosen), need, FastestOf(group.candidates));
    most = cost * kWorthwhile - kWorthwhileSeconds;
  }
  std::map<std::string_view, Provable> by_numerics_id;
  for (uint32_t i = 0; i < group.workers.size(); ++i) {
    const Worker& worker = *group.workers[i];
    Provable& provable = by_numerics_id[worker.status.model().numerics_id()];
    if (!worker.ref->handoff_address.empty()) provable.decodes.push_back(i);
    if (worker.status.role() == v1::WORKER_ROLE_PREFILL) provable.prefills.push_back(i);
  }
  const auto is_held = [&](uint32_t prefill, uint32_t decode) {
    return pairs_.Holds(group.workers[prefill]->index, group.workers[decode]->index);
  };
  std::optional<PairToProve> fastest;
  for (const auto& [_, provable] : by_numerics_id) {
    const std::optional<PairToProve> found = ChoosePairToProve(group.candidates, provable, need, most, is_held);
    if (!found) continue;
    fastest = found;
    most = found->cost;
  }
  if (fastest) pairs_.Want(now, group.workers[fastest->prefill]->index, group.workers[fastest->decode]->index);
}

PlacementResult WorkerTable::WhyNotPlaced(const Candidates& candidates, const PlacementQuery& query) const {
  const auto fits = [&](const PairView& pair) { return query.total_tokens <= LargestSequence(pair); };
  const AssumedSpeed assumed = FastestOf(candidates);
  std::optional<double> until_room;
  for (size_t i = 0; i < candidates.pairs.size(); ++i) {
    const PairView pair = candidates.View(i);
    if (!fits(pair)) continue;
    const double seconds = SecondsUntilRoom(pair, assumed);
    until_room = std::min(until_room.value_or(seconds), seconds);
  }
  if (until_room) {
    PlacementResult result{
        PlacementResult::Kind::kOnlyAvoided,
        {},
        absl::StrCat("every ready pair of workers of model ", query.model, " has a worker that failed this request")};
    result.retry_after = absl::Seconds(*until_room);
    return result;
  }
  for (const Pair& pair : pairs_.pairs()) {
    const Worker& prefill = workers_.at(pair.prefill);
    const Worker& decode = workers_.at(pair.decode);
    if (pair.state == PairSet::State::kMismatch || !Matches(decode, query)) continue;
    if (query.total_tokens > std::min(LargestPrompt(prefill.known.view), LargestSequence(decode.known.view))) continue;
    const PairStatus status = StatusOf(pair);
    return {PlacementResult::Kind::kNoneReady,
            {},
            absl::StrCat("no pair of workers is ready for model ", query.model, ": ", PairName(pair), " is ",
                         status.state, status.detail.empty() ? "" : absl::StrCat(" (", status.detail, ")"))};
  }
  for (const auto& [_, worker] : workers_) {
    if (!worker.leaving() || !Matches(worker, query)) continue;
    return {PlacementResult::Kind::kNoneReady,
            {},
            absl::StrCat("no pair of workers is ready for model ", query.model, ": ", worker.id, " is ",
                         StateName(worker))};
  }
  return {PlacementResult::Kind::kNoneLive,
          {},
          absl::StrCat("no live pair of workers for ", query.total_tokens, " tokens of model ", query.model,
                       query.numerics_id.empty() ? "" : absl::StrCat(" with numerics id ", query.numerics_id))};
}

}  // namespace baton::router
