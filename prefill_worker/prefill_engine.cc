#include "prefill_worker/prefill_engine.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "common/clock.h"
#include "common/log.h"
#include "worker/wire.h"

namespace baton {
PrefillEngine::PrefillEngine(const Parts& parts, const ScheduleLimits& limits)
    : parts_(parts), limits_(limits), runner_(parts.model, parts.pool) {}

void PrefillEngine::Submit(Attempt attempt, const HandoffTarget& target, std::shared_ptr<PrefillSink> sink) {
  const Age age{attempt.arrival, attempt.key};
  const AttemptKey key = attempt.key;
  const int tokens = attempt.context_tokens();
  auto job = std::make_unique<Job>(std::move(attempt), *parts_.pool, target, std::move(sink));
  job->submitted = SteadyNow();
  job->expected_cached = parts_.pool->CountPublished(job->sequence.page_names()) * parts_.pool->layout().page_tokens;
  if (!jobs_.Add(age, job)) {
    Fail(*job, Outcome(Cause::kInvalid, "attempt " + key.ToString() + " is here already"));
    return;
  }
  Log(LogLevel::kDebug, "prefill.submitted",
      {{"request", key.request.ToString()}, {"attempt", key.attempt}, {"tokens", tokens}});
}

void PrefillEngine::Cancel(const AttemptKey& key) {
  Job* job = jobs_.Find(key);
  if (job == nullptr || job->state == State::kReleasing) return;
  Log(LogLevel::kDebug, "prefill.cancelled", {{"request", key.request.ToString()}, {"attempt", key.attempt}});
  parts_.metrics->AttemptEnded(job->sequence.attempt(), Cause::kCancelled);
  Release(*job, /*finished=*/false);
}

void PrefillEngine::FailAll() {
  for (const AttemptKey& key : jobs_.Keys()) {
    Job& job = *jobs_.Find(key);
    if (job.state == State::kReleasing) continue;
    Fail(job, Outcome(Cause::kDraining, "the worker stops: drain-timeout is over"));
    Release(job, /*finished=*/false);
  }
}

bool PrefillEngine::Tick() {
  SecurePagesForAll();
  const std::vector<Share> plan = Plan();
  if (!plan.empty()) RunStep(plan);
  PublishLoad();
  return !plan.empty();
}

// ---------------------------------------------------------------------------------------------------- pages

// Pages for the whole prompt, or none: half a prompt that waits for the other half would block another one's.
bool PrefillEngine::SecurePages(Job& job) {
  return job.sequence.EnsurePages(static_cast<int>(job.sequence.tokens().size())).ok();
}

// Granted prompts come first, since a decode worker holds pages for them; then the queue. Neither passes an older one
// that does not fit.
void PrefillEngine::SecurePagesForAll() {
  int in_progress = 0;
  bool room = true;
  for (auto& [age, job] : jobs_) {
    if (job->state == State::kGranted) {
      room = room && SecurePages(*job);
      if (room) job->state = State::kComputing;
    }
    if (job->state != State::kWaiting && job->state != State::kQueued) ++in_progress;
  }
  std::vector<Job*> to_reserve;
  for (auto& [age, job] : jobs_) {
    if (!room || in_progress >= limits_.max_sequences) break;
    if (job->state != State::kWaiting || IsComputedByAnother(*job)) continue;
    room = SecurePages(*job);
    if (!room) break;
    job->state = State::kReserving;
    ++in_progress;
    to_reserve.push_back(job.get());
  }
  for (Job* job : to_reserve) Reserve(*job);
}

// The next page of it that could be shared is being computed for another prompt: once that is published it goes on
// from there.
bool PrefillEngine::IsComputedByAnother(Job& job) {
  const std::optional<Sequence::NamedPage> missing = job.sequence.FirstMissingPage();
  return missing.has_value() && std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& entry) {
           Job& other = *entry.second;
           const bool computes = other.state == State::kReserving || other.state == State::kComputing;
           return computes && other.sequence.HasPage(*missing);
         });
}

void PrefillEngine::Reserve(Job& job) {
  const AttemptKey key = job.sequence.key();
  const std::span<const PageHash> names = job.sequence.page_names();
  EngineThread* thread = parts_.thread;
  parts_.sender->Reserve(
      key, job.target, static_cast<int>(job.sequence.tokens().size()), {names.begin(), names.end()},
      {.on_queued = [this, thread, key] { thread->Post([this, key] { OnQueued(key); }); },
       .on_granted = [this, thread, key] { thread->Post([this, key] { OnGranted(key); }); },
       .on_flushed = [] {},  // it asks for no flush but Commit's
       .on_failed = [this, thread,
                     key](const Outcome& why) { thread->Post([this, key, why] { OnHandoffFailed(key, why); }); },
       .on_done = [this, thread, key](
                      const HandoffStats& stats) { thread->Post([this, key, stats] { OnHandedOver(key, stats); }); }});
}

void PrefillEngine::OnQueued(const AttemptKey& key) {
  Job* job = jobs_.Find(key);
  if (job == nullptr || job->state != State::kReserving) return;
  job->state = State::kQueued;
  job->sequence.DropPages();
}

void PrefillEngine::OnGranted(const AttemptKey& key) {
  Job* job = jobs_.Find(key);
  if (job == nullptr) return;
  if (job->state == State::kReserving) job->state = State::kComputing;
  if (job->state == State::kQueued) job->state = State::kGranted;
}

// ---------------------------------------------------------------------------------------------------- computing

std::vector<Share> PrefillEngine::Plan() const {
  std::vector<Candidate> candidates;
  for (const auto& [age, job] : jobs_) {
    if (job->state == State::kComputing) candidates.push_back({age, job->sequence.pending_tokens()});
  }
  return PlanStep(std::move(candidates), limits_);
}

// Pages of a sequence that are complete once this step's tokens are in: full ones, and the last one of the prompt.
int PrefillEngine::PagesComplete(const StepEntry& entry) const {
  const KvLayout& layout = parts_.pool->layout();
  const int tokens = entry.sequence->kv_tokens() + entry.tokens;
  return entry.completes() ? layout.pages_for(tokens) : tokens / layout.page_tokens;
}

void PrefillEngine::RunStep(const std::vector<Share>& plan) {
  std::vector<Job*> jobs;
  std::vector<StepEntry> entries;
  std::vector<int> pages_complete;
  const absl::Time start = SteadyNow();
  int tokens = 0;
  for (const Share& share : plan) {
    Job& job = *jobs_.Find(share.key);
    if (job.started == absl::Time()) {
      job.started = start;
      job.sequence.TakeCached();  // what others have computed since it got its pages
      parts_.metrics->TokensCached(job.sequence.attempt(), job.sequence.cached_tokens());
      parts_.metrics->Queued(job.sequence.attempt(), WorkerMetrics::Stage::kPrefill, start - job.submitted);
      v1::PrefillEvent event;
      event.mutable_started()->set_queue_seconds(absl::ToDoubleSeconds(start - job.submitted));
      job.sink->Write(std::move(event), /*last=*/false);
    }
    jobs.push_back(&job);
    entries.push_back(
        {.sequence = &job.sequence, .tokens = std::min(share.tokens, job.sequence.pending_tokens()), .sampled = {}});
    pages_complete.push_back(PagesComplete(entries.back()));
    tokens += entries.back().tokens;
  }

  const absl::Status status = runner_.Run(entries, [&](int layer) {
    bool wanted = false;
    for (size_t i = 0; i < jobs.size(); ++i) {
      Job& job = *jobs[i];
      // A step may take seconds: who cancels is not made to wait for its end.
      if (job.sink->cancelled()) Cancel(job.sequence.key());
      if (job.state == State::kReleasing) continue;
      wanted = true;
      if (pages_complete[i] == job.pages_put) continue;
      parts_.sender->PutLayer(
          job.sequence.key(), layer, job.pages_put,
          std::span(job.sequence.page_ids()).subspan(job.pages_put, pages_complete[i] - job.pages_put));
    }
    return wanted;
  });
  if (absl::IsCancelled(status)) return;  // and so is each of its jobs
  if (!status.ok()) {
    for (Job* job : jobs) {
      if (job->state == State::kReleasing) continue;
      Fail(*job, Outcome(Cause::kInternal, std::string(status.message())));
      Release(*job, /*finished=*/false);
    }
    return;
  }

  const absl::Duration duration = SteadyNow() - start;
  const double seconds = absl::ToDoubleSeconds(duration);
  parts_.metrics->StepDone(entries, duration);
  UpdateMean(parts_.load->step_seconds, seconds);
  prefill_speed_.Add(tokens, seconds);
  parts_.load->prefill_tokens_per_second = prefill_speed_.tokens_per_second();
  for (size_t i = 0; i < jobs.size(); ++i) {
    parts_.metrics->TokensComputed(jobs[i]->sequence.attempt(), entries[i].tokens);
    if (jobs[i]->state == State::kReleasing) continue;
    jobs[i]->pages_put = pages_complete[i];
    jobs[i]->sequence.Publish(/*replace=*/false);  // the transport reads the pages that it would replace
    if (entries[i].sampled.has_value()) OnFirstToken(*jobs[i], *entries[i].sampled);
  }
}

void PrefillEngine::OnFirstToken(Job& job, const SampledToken& sampled) {
  job.prefill_time = SteadyNow() - job.started;
  parts_.metrics->Prefilled(job.sequence.attempt(), job.prefill_time);
  parts_.metrics->TokenSampled(job.sequence.attempt());

  v1::PrefillEvent token;
  FillTokenEvent(job.sequence.output_tokens(), sampled, job.sequence.attempt().sampling, token.mutable_first_token());
  job.sink->Write(std::move(token), /*last=*/false);

  job.sequence.Append(sampled.token);
  const Sequence::End end = job.sequence.EndAfter(sampled.token);
  if (end == Sequence::End::kNo) {
    job.state = State::kCommitting;
    parts_.sender->Commit(job.sequence.key(), {sampled.token});
    return;
  }
  v1::PrefillEvent finished;
  FillFinished(end, sampled.token, finished.mutable_finished());
  finished.mutable_finished()->set_prefill_seconds(absl::ToDoubleSeconds(job.prefill_time));
  finished.mutable_finished()->set_cached_prompt_tokens(job.sequence.cached_tokens());
  job.sink->Write(std::move(finished), /*last=*/true);
  parts_.metrics->AttemptEnded(job.sequence.attempt(), Cause::kFinished);
  Release(job, /*finished=*/true);
}

// ---------------------------------------------------------------------------------------------------- endings

void PrefillEngine::OnHandedOver(const AttemptKey& key, const HandoffStats& stats) {
  Job* job = jobs_.Find(key);
  if (job == nullptr || job->state != State::kCommitting) return;
  parts_.metrics->HandedOver(job->sequence.attempt(), stats);
  parts_.metrics->AttemptEnded(job->sequence.attempt(), Cause::kHandedOver);
  v1::PrefillEvent event;
  v1::HandedOver& done = *event.mutable_handed_over();
  done.set_prefill_seconds(absl::ToDoubleSeconds(job->prefill_time));
  done.set_transfer_seconds(absl::ToDoubleSeconds(stats.transfer));
  done.set_transfer_exposed_seconds(absl::ToDoubleSeconds(stats.exposed));
  done.set_kv_bytes(stats.bytes);
  done.set_transport(stats.transport);
  done.set_cached_prompt_tokens(job->sequence.cached_tokens());
  job->sink->Write(std::move(event), /*last=*/true);
  Log(LogLevel::kDebug, "prefill.handed_over",
      {{"request", key.request.ToString()},
       {"attempt", key.attempt},
       {"bytes", stats.bytes},
       {"transport", stats.transport},
       {"prefill", job->prefill_time},
       {"cached", job->sequence.cached_tokens()},
       {"exposed", stats.exposed}});
  Forget(key);
}

void PrefillEngine::OnHandoffFailed(const AttemptKey& key, const Outcome& why) {
  Job* job = jobs_.Find(key);
  if (job == nullptr || job->state == State::kReleasing) return;
  if (FailsKvTransfer(why.cause)) parts_.metrics->HandoffFailed(job->sequence.attempt());
  Fail(*job, why);
  Forget(key);
}

void PrefillEngine::Fail(Job& job, const Outcome& why) {
  const AttemptKey& key = job.sequence.key();
  Log(LogLevel::kWarning, "prefill.failed",
      {{"request", key.request.ToString()},
       {"attempt", key.attempt},
       {"outcome", Name(why.cause)},
       {"at_fault", Name(why.at_fault)},
       {"detail", why.detail}});
  parts_.metrics->AttemptEnded(job.sequence.attempt(), why.cause);
  v1::PrefillEvent event;
  FillFailed(why, event.mutable_failed());
  job.sink->Write(std::move(event), /*last=*/true);
}

// The handoff, if there is one, ends from our side. The job, and its pages, stay until the transport no longer reads
// them and the step that may be writing them is over.
void PrefillEngine::Release(Job& job, bool finished) {
  const AttemptKey key = job.sequence.key();
  if (job.state == State::kWaiting) {
    jobs_.Erase(key);
    return;
  }
  job.state = State::kReleasing;
  EngineThread* thread = parts_.thread;
  parts_.sender->Abort(key, finished, [this, thread, key] { thread->Post([this, key] { Forget(key); }); });
}

// The transport no longer reads its pages.
void PrefillEngine::Forget(const AttemptKey& attempt_key) {
  const AttemptKey key = attempt_key;  // `attempt_key` may be the job's own
  if (Job* job = jobs_.Find(key); job != nullptr) job->sequence.Publish(/*replace=*/true);
  jobs_.Erase(key);
}

void PrefillEngine::PublishLoad() {
  uint32_t waiting = 0;
  uint32_t running = 0;
  uint64_t waiting_tokens = 0;
  for (const auto& [age, job] : jobs_) {
    const bool waits = job->state == State::kWaiting || job->state == State::kQueued || job->state == State::kGranted;
    (waits ? waiting : running) += 1;
    if (job->state >= State::kCommitting) continue;
    // Without pages nothing of it is cached yet.
    const bool has_pages = !job->sequence.page_ids().empty();
    waiting_tokens += std::max(job->sequence.pending_tokens() - (has_pages ? 0 : job->expected_cached), 1);
  }
  parts_.load->waiting_requests = waiting;
  parts_.load->running_sequences = running;
  parts_.load->waiting_tokens = waiting_tokens;
  parts_.metrics->SetSequences(running, waiting);
  parts_.metrics->SetPages(parts_.pool->counts());
}

}  // namespace baton
