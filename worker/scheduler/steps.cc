// SPDX-License-Identifier: Apache-2.0
// One step of the Scheduler: plans the batch, hands pages over layer by layer, and reports sampled tokens.
#include <algorithm>
#include <span>
#include <utility>

#include "common/log.h"
#include "worker/scheduler/scheduler.h"

namespace baton {
namespace {

constexpr absl::Duration kFitInterval = absl::Milliseconds(100);

}  // namespace

std::vector<Share> Scheduler::Plan() {
  std::vector<Candidate> candidates;
  bool has_prompt = false;
  const absl::Time date = parts_.date();
  times_.tenant_tokens = tenants_.Tokens();
  for (const auto& [age, job] : jobs_) {
    const Sequence& sequence = job->sequence;
    if (!job->in_batch() || sequence.missing_pages() != 0) continue;
    const Attempt& attempt = sequence.attempt();
    candidates.push_back({.age = age,
                          .pending_tokens = sequence.pending_tokens(),
                          .position = sequence.kv_tokens(),
                          // A prompt that is handed over decodes elsewhere.
                          .tpot_slo = job->route == Route::kHandOver ? absl::ZeroDuration() : attempt.tpot_slo,
                          .tenant = job->tenant == nullptr ? 0 : job->tenant->index,
                          .can_wait = attempt.priority == Priority::kBatch && age.due > date});
    has_prompt |= sequence.pending_tokens() > 1;
  }
  std::vector<Share> plan = PlanStep(std::move(candidates), limits_, times_);
  const bool ran_prompt = std::ranges::any_of(plan, [](const Share& share) { return share.tokens > 1; });
  times_.steps_without_prompt = has_prompt && !ran_prompt ? times_.steps_without_prompt + 1 : 0;
  return plan;
}

int Scheduler::PagesComplete(const StepEntry& entry) const {
  const KvLayout& layout = parts_.pool->layout();
  const int tokens = entry.sequence->kv_tokens() + entry.tokens;
  return entry.completes() ? layout.pages_for(tokens) : layout.full_pages(tokens);
}

void Scheduler::RunStep(const std::vector<Share>& plan) {
  const SteadyTime start = parts_.now();
  std::vector<Job*> jobs;
  std::vector<StepEntry> entries;
  std::vector<int> pages_complete;
  for (const Share& share : plan) {
    Job& job = *jobs_.Find(share.key);
    if (!job.started) BeginComputing(job, start);
    jobs.push_back(&job);
    entries.push_back(
        {.sequence = &job.sequence, .tokens = std::min(share.tokens, job.sequence.pending_tokens()), .sampled = {}});
    pages_complete.push_back(PagesComplete(entries.back()));
  }
  const absl::Status status = runner_.Run(entries, [&](int layer) { return OnLayerDone(jobs, pages_complete, layer); });
  if (status.ok()) {
    OnStepDone(jobs, entries, pages_complete, parts_.now() - start);
  } else {
    OnStepFailed(entries, status);
  }
}

void Scheduler::BeginComputing(Job& job, SteadyTime now) {
  const Attempt& attempt = job.sequence.attempt();
  const absl::Duration queued = now - job.queued_since;
  job.started = now;
  if (job.route == Route::kReceive) {
    parts_.metrics->Queued(attempt, WorkerMetrics::Stage::kDecode, queued);
    return;
  }
  job.sequence.TakeCached();  // pages that were published since the sequence got its own
  parts_.metrics->TokensCached(attempt, job.sequence.cached_tokens());
  parts_.metrics->Queued(attempt, WorkerMetrics::Stage::kPrefill, queued);
  job.events->OnPromptStarted(queued);
}

// A step may take seconds: a handoff whose caller is gone is aborted at once, and a step that nobody needs ends early.
bool Scheduler::OnLayerDone(const std::vector<Job*>& jobs, const std::vector<int>& pages_complete, int layer) {
  bool wanted = false;
  for (size_t i = 0; i < jobs.size(); ++i) {
    Job& job = *jobs[i];
    if (job.events->cancelled()) {
      if (job.hands_over()) Cancel(job.sequence.key());  // its pages stay until the handoff no longer reads them
      continue;
    }
    if (job.phase == Phase::kReleasing) continue;
    wanted = true;
    if (!job.hands_over() || pages_complete[i] == job.pages_put) continue;
    const auto pages = std::span(job.sequence.page_ids()).subspan(job.pages_put, pages_complete[i] - job.pages_put);
    parts_.sender->PutLayer(job.sequence.key(), layer, job.pages_put, pages);
  }
  return wanted;
}

void Scheduler::OnStepFailed(const std::vector<StepEntry>& entries, const absl::Status& status) {
  std::vector<AttemptKey> keys;
  keys.reserve(entries.size());
  for (const StepEntry& entry : entries) keys.push_back(entry.sequence->key());
  for (const AttemptKey& key : keys) {
    if (absl::IsCancelled(status)) {
      Cancel(key);
    } else if (Job* job = jobs_.Find(key); job != nullptr && job->phase != Phase::kReleasing) {
      Fail(*job, Outcome(Cause::kInternal, std::string(status.message())));
    }
  }
}

void Scheduler::OnStepDone(const std::vector<Job*>& jobs, const std::vector<StepEntry>& entries,
                           const std::vector<int>& pages_complete, absl::Duration duration) {
  const double seconds = absl::ToDoubleSeconds(duration);
  parts_.metrics->StepDone(entries, duration);
  UpdateMean(parts_.load->step_seconds, seconds);
  LearnCost(jobs, entries, duration);
  int prompt_tokens = 0;
  for (size_t i = 0; i < jobs.size(); ++i) {
    Job& job = *jobs[i];
    if (!job.has_prompt_to_compute() && job.phase != Phase::kReleasing) continue;
    prompt_tokens += entries[i].tokens;
    job.NoteChunk({entries[i].tokens, parts_.now() - duration - *job.started, duration});
    if (job.tenant != nullptr) job.tenant->tokens += entries[i].tokens;
    parts_.metrics->TokensComputed(job.sequence.attempt(), entries[i].tokens);
  }
  if (prompt_tokens > 0) {
    prefill_speed_.Add(prompt_tokens, seconds);
    parts_.load->prefill_tokens_per_second = prefill_speed_.tokens_per_second();
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    Job& job = *jobs[i];
    if (job.phase == Phase::kReleasing) continue;
    job.pages_put = pages_complete[i];
    // The transport reads the pages of a handoff, so that no published page may replace them.
    job.sequence.Publish(/*replace=*/!job.hands_over());
    if (entries[i].sampled.has_value()) OnSampled(job, *entries[i].sampled);
  }
}

// The entries' KV is advanced.
void Scheduler::LearnCost(const std::vector<Job*>& jobs, const std::vector<StepEntry>& entries,
                          absl::Duration duration) {
  StepWork work;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const int position = entries[i].sequence->kv_tokens() - entries[i].tokens;
    if (jobs[i]->has_prompt_to_compute() || entries[i].tokens > 1) {
      work.AddPrompt(position, entries[i].tokens);
    } else {
      work.AddDecode(position);
    }
  }
  cost_estimate_.Add(work, absl::ToDoubleSeconds(duration));
  const SteadyTime now = parts_.now();
  if (now < next_fit_) return;
  next_fit_ = now + kFitInterval;
  times_.cost = cost_estimate_.Fit();
  parts_.load->SetCost(times_.cost);
}

void Scheduler::OnSampled(Job& job, const SampledToken& sampled) {
  Sequence& sequence = job.sequence;
  const AttemptKey key = sequence.key();
  parts_.metrics->TokenSampled(sequence.attempt());
  const bool hands_over = job.hands_over();
  if (job.phase == Phase::kComputing) OnPromptComputed(job);
  job.events->OnToken(sequence.output_tokens(), sampled, sequence.attempt().sampling);
  sequence.Append(sampled.token);
  const Sequence::End end = sequence.EndAfter(sampled.token);
  if (end != Sequence::End::kNo) {
    job.events->OnFinished(end, sampled.token, FiguresOf(job));
    Log(LogLevel::kDebug, "attempt.finished",
        {{"request", key.request.ToString()}, {"attempt", key.attempt}, {"output", sequence.output_tokens()}});
    return End(job, Cause::kFinished, Handoff::kOpenButFinished);
  }
  if (hands_over) parts_.sender->Commit(key, {sampled.token});
}

void Scheduler::OnPromptComputed(Job& job) {
  job.prefill = parts_.now() - *job.started;
  parts_.metrics->Prefilled(job.sequence.attempt(), job.prefill);
  LeaveTenant(job);
  if (job.route == Route::kHandOver) {
    job.Advance(PhaseEvent::kFirstTokenToCommit);
    return;
  }
  job.Advance(PhaseEvent::kFirstTokenToDecode);
  job.events->OnDecodeStarted(FiguresOf(job), job.sequence.output_tokens());
}

}  // namespace baton
