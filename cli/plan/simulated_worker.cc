// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/simulated_worker.h"

#include <algorithm>
#include <utility>

namespace baton::plan {

SimulatedWorker::SimulatedWorker(const WorkerKind& kind)
    : kind_(kind), ledger_({.pages = kind.pages, .max_sequences = kind.schedule.max_sequences}) {
  times_.cost = kind.cost;
}

// ---------------------------------------------------------------------------------------------------------- attempts

void SimulatedWorker::Submit(const Attempt& attempt, Route route) {
  auto job = std::make_unique<Job>();
  job->attempt = attempt;
  job->route = route;
  job->tokens = attempt.context_tokens;
  Job& added = *job;
  jobs_.insert_or_assign(attempt.request, std::move(job));
  Count(added, 1);
  if (route == Route::kReceive) return;
  Enter(added, Phase::kClaiming);
  Claim(added, /*urgent=*/false);
}

// A sequence that decodes here has room for its next token.
void SimulatedWorker::Claim(Job& job, bool urgent) {
  ledger_.Enqueue({.claimant = SimulatedLedger::Claimant::kLocalPrompt,
                   .age = job.attempt.age,
                   .request = job.attempt.request,
                   .pages = kind_.PagesFor(job.tokens + (job.route == Route::kLocal ? 1 : 0)),
                   .urgent = urgent});
}

bool SimulatedWorker::Reserve(RequestIndex request, WorkerEffects& effects) {
  Job& job = Find(request);
  ledger_.Enqueue({.claimant = SimulatedLedger::Claimant::kReservation,
                   .age = job.attempt.age,
                   .request = request,
                   .pages = kind_.PagesFor(job.tokens) + 1});
  TakeReservations(effects);
  return job.has_slot;
}

void SimulatedWorker::TakeReservations(WorkerEffects& effects) {
  for (const SimulatedLedger::Claim& claim : ledger_.TakeGrants(SimulatedLedger::Claimant::kReservation)) {
    Job& job = Find(claim.request);
    job.has_slot = true;
    job.pages = claim.pages;
    effects.granted.push_back(claim.request);
  }
}

void SimulatedWorker::OnNoRoom(RequestIndex request, WorkerEffects& effects) {
  Job& job = Find(request);
  if (job.phase != Phase::kReserving) return;
  Enter(job, Phase::kQueued);
  job.has_slot = false;
  ledger_.FreePages(std::exchange(job.pages, 0));
  ledger_.Leave();
  TakeReservations(effects);
}

void SimulatedWorker::OnGranted(RequestIndex request, WorkerEffects& effects) {
  Job& job = Find(request);
  if (job.phase == Phase::kReserving) {
    Enter(job, Phase::kComputing);
  } else if (job.phase == Phase::kQueued) {
    Enter(job, Phase::kReclaiming);
    Claim(job, /*urgent=*/true);
  }
  TakeReservations(effects);
}

void SimulatedWorker::OnReceived(RequestIndex request) {
  Job& job = Find(request);
  Count(job, -1);
  job.kv_tokens = job.tokens++;
  --job.attempt.output_tokens;
  Count(job, 1);
  Enter(job, Phase::kDecoding);
}

void SimulatedWorker::Release(RequestIndex request, WorkerEffects& effects) {
  Erase(Find(request));
  TakeReservations(effects);
}

void SimulatedWorker::Erase(Job& job) {
  Count(job, -1);
  if (job.in_batch()) std::erase(batch_, &job);
  const bool has_slot = job.has_slot;
  const int pages = job.pages;
  jobs_.erase(job.attempt.request);
  if (!has_slot) return;
  ledger_.Leave();
  ledger_.FreePages(pages);
}

// ---------------------------------------------------------------------------------------------------------- capacity

void SimulatedWorker::TakeLocalGrants(WorkerEffects& effects) {
  for (const SimulatedLedger::Claim& claim : ledger_.TakeGrants(SimulatedLedger::Claimant::kLocalPrompt)) {
    Job& job = Find(claim.request);
    job.has_slot = true;
    job.pages = claim.pages;
    const bool reserves = job.route == Route::kHandOver && job.phase == Phase::kClaiming;
    Enter(job, reserves ? Phase::kReserving : Phase::kComputing);
    if (reserves) effects.to_reserve.push_back(claim.request);
  }
}

void SimulatedWorker::GrowAll(WorkerEffects& effects) {
  for (size_t i = 0; i < batch_.size(); ++i) {
    Job* const job = batch_[i];
    while (kind_.PagesFor(job->tokens) > job->pages) {
      if (ledger_.Grow(1)) {
        ++job->pages;
        continue;
      }
      if (!Preempt(effects)) return;
      if (i == batch_.size()) return;  // the youngest was this sequence
    }
  }
}

bool SimulatedWorker::Preempt(WorkerEffects& effects) {
  std::vector<Age> running;
  running.reserve(batch_.size());
  for (const Job* job : batch_) running.push_back(job->attempt.age);
  const std::optional<AttemptKey> victim = PickVictim(running);
  if (!victim) return false;
  const auto request = static_cast<RequestIndex>(victim->request.low);
  effects.preempted.push_back(request);
  Erase(Find(request));
  return true;
}

// ------------------------------------------------------------------------------------------------------------- steps

std::optional<double> SimulatedWorker::StartStep(WorkerEffects& effects) {
  GrowAll(effects);
  TakeLocalGrants(effects);
  TakeReservations(effects);
  std::vector<Candidate> candidates;
  candidates.reserve(batch_.size());
  bool has_prompt = false;
  for (const Job* job : batch_) {
    if (kind_.PagesFor(job->tokens) > job->pages) continue;
    candidates.push_back({.age = job->attempt.age,
                          .pending_tokens = job->pending(),
                          .position = job->kv_tokens,
                          .tpot_slo = job->attempt.tpot_slo});
    has_prompt |= job->pending() > 1;
  }
  step_work_ = {};
  bool ran_prompt = false;
  for (const Share& share : PlanStep(std::move(candidates), kind_.schedule, times_)) {
    Job& job = Find(static_cast<RequestIndex>(share.key.request.low));
    step_.push_back({&job, share.tokens});
    if (share.tokens > 1) {
      step_work_.AddPrompt(job.kv_tokens, share.tokens);
      ran_prompt = true;
    } else {
      step_work_.AddDecode(job.kv_tokens);
    }
  }
  times_.steps_without_prompt = has_prompt && !ran_prompt ? times_.steps_without_prompt + 1 : 0;
  if (step_.empty()) {
    Publish();
    return std::nullopt;
  }
  Publish();
  return kind_.cost.Seconds(step_work_);
}

void SimulatedWorker::FinishStep(WorkerEffects& effects) {
  const double seconds = kind_.cost.Seconds(step_work_);
  ++steps_;
  UpdateMean(step_seconds_, seconds);
  int prompt_tokens = 0;
  for (const auto& [job, tokens] : std::exchange(step_, {})) {
    const bool is_prompt = job->phase == Phase::kComputing;
    Count(*job, -1);
    job->kv_tokens += tokens;
    Count(*job, 1);
    if (is_prompt) prompt_tokens += tokens;
    if (is_prompt && job->route == Route::kHandOver) effects.computed.push_back({job->attempt.request, tokens});
    if (job->pending() == 0) OnSampled(*job, effects);
  }
  if (prompt_tokens > 0) prefill_speed_.Add(prompt_tokens, seconds);
  TakeReservations(effects);
  Publish();
}

void SimulatedWorker::OnSampled(Job& job, WorkerEffects& effects) {
  const bool of_prompt = job.phase == Phase::kComputing;
  Count(job, -1);
  ++job.tokens;
  --job.attempt.output_tokens;
  Count(job, 1);
  const bool last = job.attempt.output_tokens == 0;
  effects.sampled.push_back({job.attempt.request, of_prompt, last});
  if (last) return Erase(job);
  if (of_prompt) Enter(job, job.route == Route::kHandOver ? Phase::kCommitting : Phase::kDecoding);
}

// -------------------------------------------------------------------------------------------------------------- load

void SimulatedWorker::Enter(Job& job, Phase phase) {
  Count(job, -1);
  const bool was_in_batch = job.in_batch();
  job.phase = phase;
  if (job.in_batch() && !was_in_batch) {
    const auto place = std::upper_bound(batch_.begin(), batch_.end(), &job,
                                        [](const Job* a, const Job* b) { return a->attempt.age < b->attempt.age; });
    batch_.insert(place, &job);
  } else if (was_in_batch && !job.in_batch()) {
    std::erase(batch_, &job);
  }
  Count(job, 1);
}

void SimulatedWorker::Count(const Job& job, int sign) {
  const bool waits = job.phase == Phase::kAwaiting || job.phase == Phase::kClaiming || job.phase == Phase::kQueued ||
                     job.phase == Phase::kReclaiming;
  (waits ? load_.waiting_requests : load_.running_sequences) += static_cast<uint32_t>(sign);
  const auto add = [sign](uint64_t& sum, int tokens) { sum += static_cast<uint64_t>(int64_t{sign} * tokens); };
  if (job.has_prompt()) {
    add(load_.waiting_tokens, std::max(job.pending(), 1));
    if (job.attempt.is_batch) add(load_.waiting_batch_tokens, std::max(job.pending(), 1));
  }
  if (job.attempt.tpot_slo > absl::ZeroDuration()) {
    load_.tpot_objectives += static_cast<uint32_t>(sign);
    load_.tpot_slo_seconds = absl::ToDoubleSeconds(job.attempt.tpot_slo);
  }
  if (job.phase == Phase::kDecoding) add(load_.running_tokens, job.kv_tokens);
}

void SimulatedWorker::Publish() {
  published_ = load_;
  published_.prefill_tokens_per_second = prefill_speed_.tokens_per_second();
  published_.step_seconds = step_seconds_;
  published_.sequence_seconds = sequence_seconds_;
}

WorkerReport SimulatedWorker::Report() const {
  WorkerReport report = published_;
  report.pages_used = static_cast<uint64_t>(ledger_.pages_used());
  return report;
}

}  // namespace baton::plan
