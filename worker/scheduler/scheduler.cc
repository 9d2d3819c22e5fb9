// SPDX-License-Identifier: Apache-2.0
// Attempts come and go; capacity is claimed, granted and preempted. The steps are in steps.cc.
#include "worker/scheduler/scheduler.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log.h"
#include "common/strings.h"

namespace baton {

Scheduler::Scheduler(const Parts& parts, const ScheduleLimits& limits)
    : parts_(parts), limits_(limits), runner_(parts.model, parts.pool) {}

void Scheduler::HandOver(Attempt attempt, const HandoffTarget& target, std::shared_ptr<AttemptEvents> events) {
  Submit(Route::kHandOver, std::move(attempt), target, std::move(events));
}

void Scheduler::Receive(Attempt attempt, std::shared_ptr<AttemptEvents> events) {
  Submit(Route::kReceive, std::move(attempt), /*target=*/{}, std::move(events));
}

void Scheduler::RunLocally(Attempt attempt, std::shared_ptr<AttemptEvents> events) {
  Submit(Route::kLocal, std::move(attempt), /*target=*/{}, std::move(events));
}

void Scheduler::Submit(Route route, Attempt submitted, const HandoffTarget& target,
                       std::shared_ptr<AttemptEvents> events) {
  auto job = std::make_unique<Job>(std::move(submitted), *parts_.pool, route, std::move(events), parts_.now());
  Job& added = *job;
  added.target = target;
  const Attempt& attempt = added.sequence.attempt();
  const AttemptKey key = attempt.key;
  if (!jobs_.Add({attempt.due, key}, job)) {
    // The attempt that is here did not come through the receiver, which opens an attempt once.
    if (added.route == Route::kReceive) parts_.receiver->CloseAttempt(key);
    parts_.metrics->AttemptEnded(attempt, Cause::kInvalid);
    added.events->OnFailed(Outcome(Cause::kInvalid, absl::StrCat("attempt ", key.ToString(), " is here already")));
    return;
  }
  if (added.route != Route::kReceive) added.tenant = tenants_.Enter(attempt.tenant);
  added.expected_cached = CountCached(added);
  recent_.emplace_back(parts_.now(), key.request.low);
  recent_changed_ = true;
  Log(LogLevel::kDebug, "attempt.accepted",
      {{"request", key.request.ToString()},
       {"attempt", key.attempt},
       {"trace", attempt.trace_id},
       {"tokens", attempt.context_tokens()},
       {"phase", Name(added.phase)}});
  added.events->OnAccepted();
}

void Scheduler::Cancel(const AttemptKey& key) {
  Job* job = jobs_.Find(key);
  if (job == nullptr || job->phase == Phase::kReleasing) return;
  if (job->phase == Phase::kAtRest) {  // the other worker's answer decides
    job->cancelled_at_rest = true;
    return;
  }
  Log(LogLevel::kDebug, "attempt.cancelled", {{"request", key.request.ToString()}, {"attempt", key.attempt}});
  End(*job, Cause::kCancelled);
}

void Scheduler::StopDraining() {
  draining_ = false;
  for (auto& [age, job] : jobs_) job->told_draining = false;
}

void Scheduler::FailWaiting(const std::string& why) {
  for (const AttemptKey& key : jobs_.Keys()) {
    Job& job = *jobs_.Find(key);
    if (job.waits_to_compute()) Fail(job, Outcome(Cause::kDraining, why));
  }
}

void Scheduler::FailAll(const std::string& why) {
  for (const AttemptKey& key : jobs_.Keys()) {
    Job& job = *jobs_.Find(key);
    if (job.phase == Phase::kReleasing) continue;
    Fail(job, Outcome(Cause::kDraining, why));
  }
}

bool Scheduler::Tick() {
  if (draining_) AnnounceDraining();
  GrowAll();  // first, so that the ledger keeps pages for a sequence that could not grow
  ClaimForPrompts();
  FailLate();
  GiveUpLateLoads();
  const bool refused = TakeDecisions();
  const std::vector<Share> plan = Plan();
  if (!plan.empty()) {
    // Attempts may have come since the last step, and this step may take long.
    PublishLoad();
    parts_.load->step_began_nanos = (parts_.now() - SteadyTime()) / absl::Nanoseconds(1);
    RunStep(plan);
    parts_.load->step_began_nanos = 0;
  }
  PublishLoad();
  return refused || !plan.empty();
}

void Scheduler::FailLate() {
  const SteadyTime now = parts_.now();
  std::vector<AttemptKey> late;
  for (const auto& [age, job] : jobs_) {
    if (job->waits_to_compute() && now + TimeToCompute(*job) > job->first_token_by) late.push_back(age.key);
  }
  for (const AttemptKey& key : late) {
    Job& job = *jobs_.Find(key);
    Fail(job,
         Outcome(Cause::kTooLate,
                 Concat("the prompt has waited for ", absl::FormatDuration(now - job.queued_since),
                        " and computing it takes about ", absl::FormatDuration(TimeToCompute(job)), ", of the ",
                        absl::FormatDuration(job.first_token_by - job.queued_since), " left for the first token")));
  }
}

// Returns 0 before the first measurements.
absl::Duration Scheduler::TimeToCompute(const Job& job) const {
  // A prompt in this phase waits for a prefix that another prompt computes, of a length not known here.
  if (!times_.cost.known() || job.phase == Phase::kWaiting) return absl::ZeroDuration();
  StepWork work;
  work.AddPrompt(0, TokensToCompute(job));
  return absl::Seconds(times_.cost.Seconds(work));
}

int Scheduler::CountCached(Job& job) const {
  const int published = parts_.pool->CountPublished(job.sequence.page_names());
  return parts_.pool->layout().tokens_in(published + CountInTiers(job, published));
}

int Scheduler::TokensToCompute(const Job& job) {
  // The pending tokens of a prompt without pages do not count its cached tokens yet.
  const int cached = job.sequence.page_ids().empty() ? job.expected_cached : 0;
  return std::max(job.sequence.pending_tokens() - cached, 1);
}

PromptFigures Scheduler::FiguresOf(const Job& job) const {
  return {.queued = job.started.value_or(job.queued_since) - job.queued_since,
          .prefill = job.prefill,
          .cached_tokens = job.sequence.cached_tokens(),
          .chunks = job.chunks};
}

// ---------------------------------------------------------------------------------------------------- capacity

BatchState Scheduler::StateOfBatch() const {
  BatchState state;
  for (const auto& [age, job] : jobs_) {
    if (job->route == Route::kReceive || job->phase == Phase::kReleasing) continue;
    if (job->phase == Phase::kWaiting) {
      ++state.waiting;
      state.oldest_wait = std::max(state.oldest_wait, parts_.now() - job->queued_since);
    } else {
      ++state.in_progress;
    }
  }
  return state;
}

SteadyTime Scheduler::next_wake() const {
  SteadyTime next = SteadyTime::InfiniteFuture();
  const bool collects = limits_.batching == Batching::kWindow && StateOfBatch().in_progress == 0;
  for (const auto& [age, job] : jobs_) {
    if (!job->waits_to_compute()) continue;
    next = std::min(next, job->first_token_by - TimeToCompute(*job));
    if (collects) next = std::min(next, job->queued_since + limits_.batch_window);
    if (job->loading.has_value()) next = std::min(next, WhenLate(*job));
  }
  return next;
}

void Scheduler::ClaimForPrompts() {
  if (!MayStartPrompts(limits_, StateOfBatch())) return;
  std::vector<Job*> claiming;
  for (auto& [age, job] : jobs_) {
    if (job->phase != Phase::kWaiting || IsComputedByAnother(*job)) continue;
    job->Advance(PhaseEvent::kClaimed);
    job->expected_cached = CountCached(*job);
    claiming.push_back(job.get());
  }
  for (Job* job : claiming) Claim(*job, /*urgent=*/false);
}

// Returns whether another prompt computes the next page that `job` could share. Once that page is published, `job`
// continues from there.
bool Scheduler::IsComputedByAnother(Job& job) {
  const std::optional<Sequence::NamedPage> missing = job.sequence.FirstMissingPage();
  return missing.has_value() && std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& entry) {
           Job& other = *entry.second;
           return other.computes_soon() && other.sequence.HasPage(*missing);
         });
}

// Claims all pages of the context, and the next token's page for a sequence that decodes here. Part of a prompt's pages
// would keep another prompt from starting.
void Scheduler::Claim(Job& job, bool urgent) {
  const Attempt& attempt = job.sequence.attempt();
  const int tokens = static_cast<int>(job.sequence.tokens().size()) + (job.route == Route::kLocal ? 1 : 0);
  const auto names = job.sequence.sharable_names();
  const absl::Status queued = parts_.ledger->Enqueue({.claimant = CapacityLedger::Claimant::kLocalPrompt,
                                                      .age = {attempt.due, attempt.key},
                                                      .pages = parts_.pool->layout().pages_for(tokens),
                                                      .names = {names.begin(), names.end()},
                                                      .urgent = urgent});
  if (!queued.ok()) Fail(job, Outcome(Cause::kOverloaded, std::string(queued.message())));
}

bool Scheduler::TakeDecisions() {
  bool refused = false;
  std::vector<Job*> to_reserve;
  for (CapacityLedger::Decision& decision : parts_.ledger->TakeDecisions(CapacityLedger::Claimant::kLocalPrompt)) {
    Job* job = jobs_.Find(decision.key);
    if (job == nullptr || (job->phase != Phase::kClaiming && job->phase != Phase::kReclaiming)) {
      parts_.ledger->Leave(CapacityLedger::Claimant::kLocalPrompt, decision.key);
    } else if (!decision.pages.ok()) {
      Fail(*job, Outcome(Cause::kQuarantined, std::string(decision.pages.status().message())));
      refused = true;
    } else {
      Admit(*job, *std::move(decision.pages));
      if (job->phase == Phase::kReserving) to_reserve.push_back(job);
    }
  }
  for (Job* job : to_reserve) Reserve(*job);
  return refused;
}

void Scheduler::Admit(Job& job, SharedPages pages) {
  if (StartLoad(job, &pages)) {
    job.Advance(PhaseEvent::kAdmittedToLoad);
  } else {
    Begin(job, std::move(pages), /*loaded=*/0);
  }
}

// `loaded` pages behind the cached pages hold their tokens' KV, too.
void Scheduler::Begin(Job& job, SharedPages pages, int loaded) {
  job.sequence.TakePages(std::move(pages));
  if (loaded > 0) job.sequence.TakeLoaded(loaded);
  const bool reserves =
      job.route == Route::kHandOver && (job.phase == Phase::kClaiming || job.phase == Phase::kLoading);
  job.Advance(reserves ? PhaseEvent::kAdmittedToReserve : PhaseEvent::kAdmittedToCompute);
}

// Gives each sequence that decodes the page of its next token, oldest first.
void Scheduler::GrowAll() {
  std::vector<Age> running;
  for (const auto& [age, job] : jobs_) {
    if (job->in_batch()) running.push_back(age);
  }
  for (size_t i = 0; i < running.size(); ++i) {
    const AttemptKey key = running[i].key;
    while (!Grow(jobs_.Find(key)->sequence)) {
      if (!PreemptFor(key, running)) return;
      if (i == running.size()) return;  // the youngest was `key` itself
    }
  }
}

bool Scheduler::Grow(Sequence& sequence) {
  const int missing = sequence.missing_pages();
  if (missing == 0) return true;
  absl::StatusOr<std::vector<PageRef>> pages = parts_.ledger->Grow(missing);
  if (!pages.ok()) return false;
  sequence.AddPages(*std::move(pages));
  return true;
}

bool Scheduler::PreemptFor(const AttemptKey& needy, std::vector<Age>& running) {
  // Pages of attempts that have ended will come back soon.
  const bool pages_will_come = std::any_of(jobs_.begin(), jobs_.end(),
                                           [](const auto& entry) { return entry.second->phase == Phase::kReleasing; });
  if (pages_will_come) return false;
  if (const std::optional<AttemptKey> victim = PickVictim(running)) {
    Fail(*jobs_.Find(*victim), Outcome(Cause::kPreempted, "KV pages ran out and this was the youngest sequence"));
    running.pop_back();
    return true;
  }
  // `needy` is the oldest sequence and runs alone. Pages of grants will come back; pages in quarantine may not.
  Job& job = *jobs_.Find(needy);
  if (parts_.pool->counts().used <= job.sequence.page_ids().size()) {
    Fail(job, Outcome(Cause::kPreempted, "KV pages are in quarantine"));
  }
  return false;
}

void Scheduler::LeaveCapacity(const Job& job) {
  const AttemptKey& key = job.sequence.key();
  if (job.route == Route::kReceive) return parts_.receiver->CloseAttempt(key);
  parts_.ledger->Withdraw(CapacityLedger::Claimant::kLocalPrompt, key);
  parts_.ledger->Leave(CapacityLedger::Claimant::kLocalPrompt, key);
}

// ---------------------------------------------------------------------------------------------------- endings

void Scheduler::Fail(Job& job, const Outcome& why, Handoff handoff) {
  const AttemptKey& key = job.sequence.key();
  Log(LogLevel::kWarning, "attempt.failed",
      {{"request", key.request.ToString()},
       {"attempt", key.attempt},
       {"phase", Name(job.phase)},
       {"outcome", Name(why.cause)},
       {"at_fault", Name(why.at_fault)},
       {"detail", why.detail}});
  job.events->OnFailed(why);
  End(job, why.cause, handoff);
}

void Scheduler::End(Job& job, Cause cause, Handoff handoff) {
  const AttemptKey key = job.sequence.key();
  const bool aborts_handoff = job.hands_over() && handoff != Handoff::kOver;
  parts_.metrics->AttemptEnded(job.sequence.attempt(), cause);
  if (job.phase == Phase::kDecoding && cause == Cause::kFinished) {
    UpdateMean(parts_.load->sequence_seconds, absl::ToDoubleSeconds(parts_.now() - job.decoding_since()));
  }
  job.Advance(PhaseEvent::kEnded);
  if (job.loading.has_value()) {
    job.loading->load->given_up = true;
    parts_.tiers->DropGivenUp();
  }
  LeaveTenant(job);
  AbortDeparture(job, Outcome(Cause::kRevoked, Concat("the attempt has ended: ", Name(cause))));
  LeaveCapacity(job);
  if (aborts_handoff) {
    parts_.sender->Abort(key, /*finished=*/handoff == Handoff::kOpenButFinished,
                         [this, key] { Post([this, key] { OnNoLongerRead(key); }); });
  }
  if (job.readers == 0) Erase(key);
}

void Scheduler::LeaveTenant(Job& job) {
  if (TenantShares::Share* const share = std::exchange(job.tenant, nullptr)) tenants_.Leave(*share);
}

void Scheduler::OnNoLongerRead(const AttemptKey& key) {
  Job* job = jobs_.Find(key);
  if (job == nullptr) return;
  --job->readers;
  if (job->phase == Phase::kReleasing) {
    if (job->readers == 0) Erase(key);
  } else if (job->cancelled_at_rest) {
    Cancel(key);
  }
}

void Scheduler::Erase(const AttemptKey& key) {
  // Nobody reads the pages any more, so that published pages may replace them.
  Job& job = *jobs_.Find(key);
  job.sequence.Publish(/*replace=*/true);
  jobs_.Erase(key);
}

// Routers hear of an attempt in at least one report, if they ask for a report twice in this time.
constexpr absl::Duration kRecent = absl::Milliseconds(500);
constexpr size_t kMaxRecent = 1024;

void Scheduler::PublishRecent() {
  const SteadyTime oldest = parts_.now() - kRecent;
  while (!recent_.empty() && (recent_.front().first < oldest || recent_.size() > kMaxRecent)) {
    recent_.pop_front();
    recent_changed_ = true;
  }
  if (!std::exchange(recent_changed_, false)) return;
  std::vector<uint64_t> requests;
  requests.reserve(recent_.size());
  for (const auto& [_, request] : recent_) requests.push_back(request);
  parts_.load->SetRecent(std::move(requests));
}

void Scheduler::PublishLoad() {
  PublishRecent();
  uint32_t waiting = 0;
  uint32_t running = 0;
  uint64_t waiting_tokens = 0;
  uint64_t waiting_batch_tokens = 0;
  uint64_t blocked_tokens = 0;
  uint64_t running_tokens = 0;
  uint32_t objectives = 0;
  const bool has_tenants = tenants_.has_tenants();
  std::map<std::string, uint64_t> tenants;
  absl::Duration tpot_slo = absl::InfiniteDuration();
  for (const auto& [age, job] : jobs_) {
    if (job->phase == Phase::kReleasing) continue;
    (job->waits() ? waiting : running) += 1;
    const Attempt& attempt = job->sequence.attempt();
    if (job->phase == Phase::kDecoding) running_tokens += job->sequence.kv_tokens();
    if (job->route != Route::kHandOver && attempt.tpot_slo > absl::ZeroDuration()) {
      ++objectives;
      tpot_slo = std::min(tpot_slo, attempt.tpot_slo);
    }
    if (!job->has_prompt_to_compute()) continue;
    const int tokens = TokensToCompute(*job);
    waiting_tokens += tokens;
    if (job->phase == Phase::kQueued) blocked_tokens += tokens;
    if (attempt.priority == Priority::kBatch) {
      waiting_batch_tokens += tokens;
    } else if (has_tenants) {
      tenants[attempt.tenant] += tokens;
    }
  }
  parts_.load->waiting_requests = waiting;
  parts_.load->running_sequences = running;
  parts_.load->waiting_tokens = waiting_tokens;
  parts_.load->SetTenants(std::move(tenants));
  parts_.load->waiting_batch_tokens = waiting_batch_tokens;
  parts_.load->blocked_tokens = blocked_tokens;
  parts_.load->waiting_reservations = static_cast<uint32_t>(parts_.ledger->counts().waiting_reservations);
  parts_.load->running_tokens = running_tokens;
  parts_.load->tpot_objectives = objectives;
  parts_.load->tpot_slo_seconds = objectives > 0 ? absl::ToDoubleSeconds(tpot_slo) : 0;
  parts_.metrics->SetSequences(running, waiting);
  parts_.metrics->SetPages(parts_.pool->counts());
}

}  // namespace baton
