// SPDX-License-Identifier: Apache-2.0
// Placement: what the table knows as views, the choice of workers, and the reason if none was chosen.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "router/worker_table.h"

namespace baton::router {
namespace {

// The search for a faster pair looks at every pair of workers.
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

bool WorkerTable::Matches(const Worker& worker, const PlacementQuery& query) const {
  const v1::ServedModel& model = worker.status.model();
  return worker.live() && model.name() == query.model && model.assets_fingerprint() == query.assets_fingerprint &&
         (query.numerics_id.empty() || model.numerics_id() == query.numerics_id);
}

WorkerView WorkerTable::View(SteadyTime now, const Worker& worker, const PlacementQuery& query) const {
  const v1::WorkerCapacity& capacity = worker.status.capacity();
  const v1::WorkerLoad& load = worker.status.load();
  WorkerView view;
  view.avoided = std::ranges::find(query.avoid, worker.ref->key) != query.avoid.end();
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
  AddSince(now, worker, view);
  SplitByTenant(worker, query.tenant, view);
  if (query.page_tokens == view.page_tokens) {
    view.cached_tokens = static_cast<uint32_t>(worker.pages.CountPrefix(query.pages)) * view.page_tokens;
  }
  return view;
}

void WorkerTable::AddSince(SteadyTime now, const Worker& worker, WorkerView& view) {
  WaitingPrompts waiting;
  waiting.batch = static_cast<double>(std::min(view.waiting_batch_tokens, view.waiting_tokens));
  waiting.interactive = static_cast<double>(view.waiting_tokens) - waiting.batch;
  const double speed = view.prefill_tokens_per_second * PromptShare(view);
  SteadyTime time = worker.load_as_of;
  // The worker computes as long as prompts wait.
  const auto compute_until = [&](SteadyTime end) {
    if (end <= time) return;
    waiting.Compute(speed * absl::ToDoubleSeconds(end - time));
    time = end;
  };
  for (const SentWork& sent : worker.sent) {
    compute_until(sent.at);
    (sent.is_batch ? waiting.batch : waiting.interactive) += sent.tokens;
    view.running_tokens += sent.context;
    view.pages_free -= std::min<uint64_t>(view.pages_free, sent.pages);
    if (sent.tpot_slo > 0) {
      ++view.objectives;
      view.tpot_slo = view.tpot_slo > 0 ? std::min(view.tpot_slo, sent.tpot_slo) : sent.tpot_slo;
    }
  }
  compute_until(now);
  view.waiting_batch_tokens = static_cast<uint64_t>(waiting.batch);
  view.waiting_tokens = static_cast<uint64_t>(waiting.interactive + waiting.batch);
}

void WorkerTable::SplitByTenant(const Worker& worker, const std::string& tenant, WorkerView& view) {
  std::map<std::string_view, uint64_t> tokens;
  const v1::WorkerLoad& load = worker.status.load();
  for (const v1::TenantLoad& of_tenant : load.tenants()) tokens[of_tenant.tenant()] += of_tenant.waiting_tokens();
  if (load.tenants().empty() && load.waiting_tokens() > load.waiting_batch_tokens()) {
    tokens[""] = load.waiting_tokens() - load.waiting_batch_tokens();
  }
  for (const SentWork& sent : worker.sent) {
    if (!sent.is_batch && sent.tokens > 0) tokens[sent.tenant] += sent.tokens;
  }
  uint64_t all = 0;
  for (const auto& [_, waiting] : tokens) all += waiting;
  const uint64_t left = view.waiting_tokens - view.waiting_batch_tokens;
  if (all == 0 || (tokens.size() == 1 && tokens.contains(tenant))) return;
  // The worker has computed some of these tokens meanwhile, and does not report every tenant.
  const double share = std::min(1.0, static_cast<double>(left) / static_cast<double>(all));
  uint64_t least = all;
  for (const auto& [name, waiting] : tokens) {
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

PairView WorkerTable::View(SteadyTime now, const Pair& pair) const {
  return {pair.id, pair.local(), View(now, workers_.at(pair.prefill)), View(now, workers_.at(pair.decode)), pair.path};
}

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

WorkerTable::Candidates WorkerTable::FindCandidates(SteadyTime now, const PlacementQuery& query) const {
  Candidates candidates;
  for (const auto& [index, worker] : workers_) {
    if (worker.serving() && Matches(worker, query)) candidates.views.emplace(index, View(now, worker, query));
  }
  for (const Pair& pair : pairs_.pairs()) {
    const auto prefill = candidates.views.find(pair.prefill);
    const auto decode = candidates.views.find(pair.decode);
    if (pair.state != PairSet::State::kReady || prefill == candidates.views.end() || decode == candidates.views.end()) {
      continue;
    }
    candidates.pairs.push_back(
        {pair.id, pair.local(), prefill->second, decode->second, PairSet::RecentPath(now, pair)});
  }
  return candidates;
}

PlacementResult WorkerTable::Place(SteadyTime now, const PlacementQuery& query) {
  const PlacementNeed need = NeedOf(query);
  const Candidates candidates = FindCandidates(now, query);
  if (query.migrates) return PlaceMigration(now, candidates, query);
  if (query.pin) return PlacePinned(now, candidates, query);
  const std::optional<size_t> chosen = ChoosePair(options_.placement, candidates.pairs, need, turn_++);
  if (!chosen) {
    WantFasterPair(now, candidates, need, nullptr);
    return WhyNotPlaced(now, candidates, query);
  }
  PlacementResult result = PlaceUnlessLate(now, *chosen, candidates, query, need);
  // Last: the set may forget the chosen pair for a faster one.
  WantFasterPair(now, candidates, need, &candidates.pairs[*chosen]);
  return result;
}

PlacementResult WorkerTable::PlaceUnlessLate(SteadyTime now, size_t pair, const Candidates& candidates,
                                             const PlacementQuery& query, PlacementNeed need) {
  if (!query.has_begun) {
    const AssumedSpeed assumed = FastestOf(candidates.pairs);
    Judgement judgement = Judge(candidates.pairs[pair], need, assumed);
    const bool serves_late = query.when_late == WhenLate::kServe && judgement.verdict == Verdict::kLate;
    if (!need.is_batch && (serves_late || judgement.verdict == Verdict::kHopeless)) {
      need.is_batch = true;
      pair = *ChoosePair(options_.placement, candidates.pairs, need, turn_++);
      judgement = Judge(candidates.pairs[pair], need, assumed);
    }
    if (judgement.verdict == Verdict::kServe && OlderWaits(now, query)) judgement = {Verdict::kNoRoom, kTurnSeconds};
    if (judgement.verdict == Verdict::kNoRoom) NoteWaiter(now, query);
    if (judgement.verdict != Verdict::kServe) return NotNow(judgement, query, need);
    if (waiter_ && waiter_->request == query.request) waiter_.reset();
  }
  return PlaceOn(now, candidates.pairs[pair], candidates, query, need.is_batch);
}

PlacementResult WorkerTable::PlaceOn(SteadyTime now, const PairView& view, const Candidates& candidates,
                                     const PlacementQuery& query, bool is_batch) {
  PlacementNeed need = NeedOf(query);
  need.is_batch = is_batch;
  const Pair& pair = *pairs_.Find(view.pair);
  pairs_.NoteUse(now, pair.id);
  const SentWork to_compute{.at = now,
                            .request = query.request.low,
                            .tokens = TokensToCompute(view.prefill, need),
                            .tenant = query.tenant,
                            .is_batch = need.is_batch};
  SentWork to_decode = to_compute;
  to_decode.pages = PagesToStart(view.decode, query.prompt_tokens);
  to_decode.context = query.prompt_tokens;
  to_decode.tpot_slo = need.tpot_slo;
  if (!pair.local()) {
    to_decode.tokens = 0;
    workers_.at(pair.prefill).sent.push_back(to_compute);
  }
  workers_.at(pair.decode).sent.push_back(to_decode);
  PlacementResult placed{PlacementResult::Kind::kPlaced, MakePlacement(pair.prefill, pair.decode, pair.id), ""};
  placed.placement.cached_tokens = view.prefill.cached_tokens;
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
  const AssumedSpeed assumed = FastestOf(candidates.pairs);
  std::vector<std::pair<double, uint64_t>> estimates;  // seconds, pair
  for (const PairView& pair : candidates.pairs) {
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

PlacementResult WorkerTable::PlaceMigration(SteadyTime now, const Candidates& candidates, const PlacementQuery& query) {
  std::vector<size_t> workers;
  std::vector<WorkerView> views;
  for (const auto& [worker, view] : candidates.views) {
    if (workers_.at(worker).ref->handoff_address.empty()) continue;
    if (query.pin && workers_.at(worker).id != query.pin->migrate_to) continue;
    workers.push_back(worker);
    views.push_back(view);
  }
  const PlacementNeed need = NeedOf(query);
  const std::optional<size_t> chosen = ChooseDecode(options_.placement, views, need, turn_++);
  if (!chosen) {
    return {
        PlacementResult::Kind::kNoneReady,
        {},
        absl::StrCat("no other decode worker of model ", query.model, " could take ", query.total_tokens, " tokens")};
  }
  workers_.at(workers[*chosen])
      .sent.push_back({.at = now,
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
void WorkerTable::WantFasterPair(SteadyTime now, const Candidates& candidates, const PlacementNeed& need,
                                 const PairView* chosen) {
  if (chosen != nullptr && (now < next_want_ || options_.placement.policy == PlacementPolicy::kRoundRobin)) return;
  next_want_ = now + kWantInterval;
  const AssumedSpeed assumed = FastestOf(candidates.pairs);
  std::optional<double> least;
  if (chosen != nullptr) least = CostOf(*chosen, need, assumed) * kWorthwhile - kWorthwhileSeconds;
  std::optional<std::pair<size_t, size_t>> fastest;
  for (const auto& [decode, decode_view] : candidates.views) {
    if (workers_.at(decode).ref->handoff_address.empty()) continue;
    for (const auto& [prefill, prefill_view] : candidates.views) {
      if (workers_.at(prefill).status.role() != v1::WORKER_ROLE_PREFILL || pairs_.Holds(prefill, decode)) continue;
      const PairView view{0, false, prefill_view, decode_view, {}};
      if (!IsPossible(view, need) || !WhyNoPair(prefill, decode).empty()) continue;
      const double seconds = CostOf(view, need, assumed);
      if (least && seconds >= *least) continue;
      least = seconds;
      fastest = {prefill, decode};
    }
  }
  if (fastest) pairs_.Want(now, fastest->first, fastest->second);
}

PlacementResult WorkerTable::WhyNotPlaced(SteadyTime now, const Candidates& candidates,
                                          const PlacementQuery& query) const {
  const auto fits = [&](const PairView& pair) { return query.total_tokens <= LargestSequence(pair); };
  if (std::ranges::any_of(candidates.pairs, fits)) {
    PlacementResult result{
        PlacementResult::Kind::kOnlyAvoided,
        {},
        absl::StrCat("every ready pair of workers of model ", query.model, " has a worker that failed this request")};
    result.retry_after = absl::InfiniteDuration();
    const AssumedSpeed assumed = FastestOf(candidates.pairs);
    for (const PairView& pair : candidates.pairs) {
      if (!fits(pair)) continue;
      result.retry_after = std::min(result.retry_after, absl::Seconds(SecondsUntilRoom(pair, assumed)));
    }
    return result;
  }
  for (const Pair& pair : pairs_.pairs()) {
    if (pair.state == PairSet::State::kMismatch || !Matches(workers_.at(pair.decode), query) || !fits(View(now, pair)))
      continue;
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
