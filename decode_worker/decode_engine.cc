#include "decode_worker/decode_engine.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/strings.h"
#include "worker/wire.h"

namespace baton {

DecodeEngine::DecodeEngine(const Parts& parts, const ScheduleLimits& limits)
    : parts_(parts), limits_(limits), runner_(parts.model, parts.pool) {}

void DecodeEngine::Await(Attempt attempt, std::shared_ptr<DecodeSink> sink) {
  Add(std::move(attempt), State::kAwaiting, std::move(sink));
}

void DecodeEngine::SubmitLocal(Attempt attempt, std::shared_ptr<DecodeSink> sink) {
  Add(std::move(attempt), State::kWaiting, std::move(sink));
}

void DecodeEngine::Add(Attempt attempt, State state, std::shared_ptr<DecodeSink> sink) {
  const Age age{attempt.arrival, attempt.key};
  const int tokens = attempt.context_tokens();
  auto job = std::make_unique<Job>(std::move(attempt), *parts_.pool, state, std::move(sink));
  const std::shared_ptr<DecodeSink> events = job->sink;
  job->queued_since = SteadyNow();
  if (!jobs_.Add(age, job)) {
    // Nobody would close it: what is here is local, since the receiver opens an attempt once.
    if (state == State::kAwaiting && parts_.receiver != nullptr) parts_.receiver->CloseAttempt(age.key);
    v1::DecodeEvent event;
    FillFailed(Outcome(Cause::kInvalid, absl::StrCat("attempt ", age.key.ToString(), " is here already")),
               event.mutable_failed());
    events->Write(std::move(event), /*last=*/true);
    return;
  }
  Log(LogLevel::kDebug, "decode.accepted",
      {{"request", age.key.request.ToString()},
       {"attempt", age.key.attempt},
       {"tokens", tokens},
       {"local", state == State::kWaiting}});
  v1::DecodeEvent event;
  event.mutable_accepted();
  events->Write(std::move(event), /*last=*/false);
}

void DecodeEngine::OnReceived(ReceivedSequence received) {
  Job* job = jobs_.Find(received.key);
  if (job == nullptr || job->state != State::kAwaiting) return;  // closed meanwhile: the pages go back with `received`
  if (absl::Status fits = CheckReceived(*job, received); !fits.ok()) {
    return Fail(received.key, Outcome(Cause::kInternal, Fault::kPair, std::string(fits.message())));
  }
  for (const TokenId token : received.output) job->sequence.Append(token);
  job->sequence.AddPages(std::move(received.pages));
  job->sequence.AdvanceKv(received.tokens);
  job->sequence.Publish(/*replace=*/true);
  parts_.metrics->TokensReceived(job->sequence.attempt(), received.tokens - received.cached_tokens);
  parts_.metrics->TokensCached(job->sequence.attempt(), received.cached_tokens);
  job->state = State::kRunning;
  job->queued_since = SteadyNow();
  job->first_token_out = true;  // the stream of who handed over carries it
  Log(LogLevel::kDebug, "decode.received",
      {{"request", received.key.request.ToString()},
       {"attempt", received.key.attempt},
       {"tokens", received.tokens},
       {"cached", received.cached_tokens},
       {"pending", job->sequence.pending_tokens()},
       {"pages", job->sequence.page_ids().size()}});
  v1::DecodeEvent event;
  event.mutable_started()->set_cached_prompt_tokens(received.cached_tokens);
  event.mutable_started()->set_next_output_index(job->sequence.output_tokens());
  job->sink->Write(std::move(event), /*last=*/false);
}

// Of a prefill worker, the KV of the whole context and one token; of a decode worker, less KV or more, and the output
// since. Something is always left to compute.
absl::Status DecodeEngine::CheckReceived(const Job& job, const ReceivedSequence& received) const {
  const Sequence& sequence = job.sequence;
  const SamplingParams& sampling = sequence.attempt().sampling;
  const size_t tokens = sequence.tokens().size() + received.output.size();
  if (received.tokens < 1 || static_cast<size_t>(received.tokens) >= tokens) {
    return absl::InternalError(
        absl::StrCat("received KV of ", received.tokens, " tokens, expected less than ", tokens));
  }
  if (sequence.output_tokens() + received.output.size() >= sampling.max_tokens) {
    return absl::InternalError(absl::StrCat("received ", received.output.size(), " output tokens behind ",
                                            sequence.output_tokens(), ", max_tokens is ", sampling.max_tokens));
  }
  const int vocab_size = parts_.model->config().vocab_size;
  for (const TokenId token : received.output) {
    if (token >= 0 && token < vocab_size) continue;
    return absl::InternalError(absl::StrCat("received token ", token, ", the vocabulary has ", vocab_size));
  }
  return absl::OkStatus();
}

void DecodeEngine::OnHandoffFailed(const AttemptKey& key, const Outcome& why) {
  const Job* job = jobs_.Find(key);
  if (job == nullptr || job->state != State::kAwaiting) return;
  Fail(key, why);
}

void DecodeEngine::Cancel(const AttemptKey& key) {
  Job* job = jobs_.Find(key);
  if (job == nullptr || job->state == State::kReleasing) return;
  if (job->state == State::kAtRest) {  // what the other worker says about it is under way
    job->unwanted = true;
    return;
  }
  Log(LogLevel::kDebug, "decode.cancelled", {{"request", key.request.ToString()}, {"attempt", key.attempt}});
  End(key, Cause::kCancelled);
}

void DecodeEngine::FailAll() {
  for (const AttemptKey& key : jobs_.Keys()) {
    if (jobs_.Find(key)->state == State::kReleasing) continue;
    Fail(key, Outcome(Cause::kDraining, "the worker stops: drain-timeout is over"));
  }
}

bool DecodeEngine::Tick() {
  if (draining_) AnnounceDraining();
  AdmitLocal();
  GrowAll();
  const std::vector<Share> plan = Plan();
  if (!plan.empty()) RunStep(plan);
  PublishLoad();
  return !plan.empty();
}

// ---------------------------------------------------------------------------------------------------- admission, pages

bool DecodeEngine::LocalMayStart() const {
  HandoffReceiver::Load load;
  if (parts_.receiver != nullptr) load = parts_.receiver->load();
  return local_sequences_ + load.granted + load.received < limits_.max_sequences && !load.queued_first;
}

// Prompts to be computed here start when their whole context and one page to grow into fit, oldest first. When slots or
// pages are short they and the receiver's reservations take turns.
void DecodeEngine::AdmitLocal() {
  std::vector<AttemptKey> unservable;
  bool waits = false;
  for (auto& [age, job] : jobs_) {
    if (job->state != State::kWaiting) continue;
    const int tokens = job->sequence.pending_tokens() + 1;
    if (NeedsQuarantined(tokens)) {
      unservable.push_back(age.key);
      continue;
    }
    waits = !LocalMayStart();
    if (waits) break;
    if (IsComputedByAnother(*job)) continue;
    waits = !EnsurePages(job->sequence, tokens);
    if (waits) break;
    parts_.metrics->TokensCached(job->sequence.attempt(), job->sequence.cached_tokens());
    job->state = State::kRunning;
    ++local_sequences_;
    EndLocalsTurn();
    TellLocalSequences();
  }
  SetLocalNext(waits && IsLocalsTurn());
  for (const AttemptKey& key : unservable) {
    Fail(key, Outcome(Cause::kQuarantined, "KV pages are in quarantine"));
  }
}

void DecodeEngine::EndLocalsTurn() {
  locals_turn_ = false;
  local_next_ = false;
  if (parts_.receiver != nullptr) grants_seen_ = parts_.receiver->load().grants;
}

bool DecodeEngine::IsLocalsTurn() {
  if (parts_.receiver == nullptr) return true;
  const HandoffReceiver::Load load = parts_.receiver->load();
  if (load.grants != grants_seen_ || load.queued == 0) locals_turn_ = true;
  return locals_turn_;
}

// Nobody waits for pages that may never come back: the router may find a better place.
bool DecodeEngine::NeedsQuarantined(int tokens) const {
  const PageCounts counts = parts_.pool->counts();
  const int page_tokens = parts_.pool->layout().page_tokens;
  const auto needed = static_cast<uint32_t>((tokens + page_tokens - 1) / page_tokens);
  return counts.quarantined > 0 && needed > counts.total - counts.quarantined;
}

void DecodeEngine::SetLocalNext(bool next) {
  if (std::exchange(local_next_, next) != next) TellLocalSequences();
}

void DecodeEngine::TellLocalSequences() {
  if (parts_.receiver != nullptr) parts_.receiver->SetLocalSequences(local_sequences_, local_next_);
}

// As in PrefillEngine.
bool DecodeEngine::IsComputedByAnother(Job& job) {
  const std::optional<Sequence::NamedPage> missing = job.sequence.FirstMissingPage();
  return missing.has_value() && std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& entry) {
           Job& other = *entry.second;
           const bool computes = other.state == State::kRunning && other.local && !other.first_token_out;
           return computes && other.sequence.HasPage(*missing);
         });
}

// Each running sequence gets the page that its next token needs, oldest first; the youngest give theirs up for it.
void DecodeEngine::GrowAll() {
  std::vector<Age> running;
  for (const auto& [age, job] : jobs_) {
    if (job->state == State::kRunning) running.push_back(age);
  }
  for (size_t i = 0; i < running.size(); ++i) {
    const AttemptKey key = running[i].key;
    Job& job = *jobs_.Find(key);
    while (!EnsurePages(job.sequence, static_cast<int>(job.sequence.tokens().size()))) {
      // Pages of those that have ended may still be read: they will come.
      if (std::any_of(jobs_.begin(), jobs_.end(),
                      [](const auto& entry) { return entry.second->state == State::kReleasing; })) {
        return;
      }
      const std::optional<AttemptKey> victim = PickVictim(running);
      if (!victim.has_value()) {
        // The oldest, and nobody to take pages from. Pages on their way to us or back from a writer will come; those in
        // quarantine may not.
        if (parts_.pool->counts().used > job.sequence.page_ids().size()) return;
        Fail(key, Outcome(Cause::kPreempted, "KV pages are in quarantine"));
        return;
      }
      Fail(*victim, Outcome(Cause::kPreempted, "KV pages ran out and this was the youngest sequence"));
      running.pop_back();
      if (*victim == key) break;
    }
  }
}

bool DecodeEngine::EnsurePages(Sequence& sequence, int tokens) {
  if (sequence.EnsurePages(tokens).ok()) return true;
  // Asked for once more after the wish is known, so that pages that became free in between are not missed.
  wants_pages_ = true;
  return sequence.EnsurePages(tokens).ok();
}

void DecodeEngine::OnPagesFree() {
  if (wants_pages_.exchange(false)) parts_.thread->Post([] {});
}

// ---------------------------------------------------------------------------------------------------- steps

std::vector<Share> DecodeEngine::Plan() const {
  std::vector<Candidate> candidates;
  const KvLayout& layout = parts_.pool->layout();
  for (const auto& [age, job] : jobs_) {
    const Sequence& sequence = job->sequence;
    const bool fits =
        layout.pages_for(static_cast<int>(sequence.tokens().size())) <= static_cast<int>(sequence.page_ids().size());
    if (job->state == State::kRunning && fits) candidates.push_back({age, sequence.pending_tokens()});
  }
  return PlanStep(std::move(candidates), limits_);
}

void DecodeEngine::RunStep(const std::vector<Share>& plan) {
  const absl::Time start = SteadyNow();
  std::vector<const Job*> jobs;
  std::vector<StepEntry> entries;
  int prompt_tokens = 0;
  for (const Share& share : plan) {
    Job& job = *jobs_.Find(share.key);
    if (job.started == absl::Time()) {
      job.started = start;
      const auto stage = job.local ? WorkerMetrics::Stage::kPrefill : WorkerMetrics::Stage::kDecode;
      parts_.metrics->Queued(job.sequence.attempt(), stage, start - job.queued_since);
    }
    if (!job.first_token_out) prompt_tokens += share.tokens;
    jobs.push_back(&job);
    entries.push_back({.sequence = &job.sequence, .tokens = share.tokens, .sampled = {}});
  }

  // Prompts computed here can make a step long: it ends early when nobody waits for it.
  const auto wanted = [&](int /*layer*/) {
    return std::any_of(jobs.begin(), jobs.end(), [](const Job* job) { return !job->sink->cancelled(); });
  };
  const absl::Status status = runner_.Run(entries, wanted);
  if (absl::IsCancelled(status)) {
    for (const StepEntry& entry : entries) Cancel(AttemptKey(entry.sequence->key()));
    return;
  }
  if (!status.ok()) {
    for (const StepEntry& entry : entries) {
      Fail(AttemptKey(entry.sequence->key()), Outcome(Cause::kInternal, std::string(status.message())));
    }
    return;
  }

  const absl::Duration duration = SteadyNow() - start;
  const double seconds = absl::ToDoubleSeconds(duration);
  parts_.metrics->StepDone(entries, duration);
  UpdateMean(parts_.load->step_seconds, seconds);
  if (prompt_tokens > 0) {
    prefill_speed_.Add(prompt_tokens, seconds);
    parts_.load->prefill_tokens_per_second = prefill_speed_.tokens_per_second();
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    const StepEntry& entry = entries[i];
    if (!jobs[i]->first_token_out) parts_.metrics->TokensComputed(entry.sequence->attempt(), entry.tokens);
    entry.sequence->Publish(/*replace=*/true);
    if (entry.sampled.has_value()) OnSampled(AttemptKey(entry.sequence->key()), *entry.sampled);
  }
}

void DecodeEngine::OnSampled(const AttemptKey& key, const SampledToken& sampled) {
  Job& job = *jobs_.Find(key);
  parts_.metrics->TokenSampled(job.sequence.attempt());
  if (!job.first_token_out) {
    job.first_token_out = true;
    const absl::Duration prefill = SteadyNow() - job.started;
    parts_.metrics->Prefilled(job.sequence.attempt(), prefill);
    v1::DecodeEvent started;
    started.mutable_started()->set_prefill_seconds(absl::ToDoubleSeconds(prefill));
    started.mutable_started()->set_queue_seconds(absl::ToDoubleSeconds(job.started - job.queued_since));
    started.mutable_started()->set_cached_prompt_tokens(job.sequence.cached_tokens());
    started.mutable_started()->set_next_output_index(job.sequence.output_tokens());
    job.sink->Write(std::move(started), /*last=*/false);
  }
  v1::DecodeEvent event;
  FillTokenEvent(job.sequence.output_tokens(), sampled, job.sequence.attempt().sampling,
                 event.mutable_tokens()->add_tokens());
  job.sink->Write(std::move(event), /*last=*/false);

  job.sequence.Append(sampled.token);
  const Sequence::End end = job.sequence.EndAfter(sampled.token);
  if (end == Sequence::End::kNo) return;
  v1::DecodeEvent finished;
  FillFinished(end, sampled.token, finished.mutable_finished());
  job.sink->Write(std::move(finished), /*last=*/true);
  Log(LogLevel::kDebug, "decode.finished",
      {{"request", key.request.ToString()}, {"attempt", key.attempt}, {"output", job.sequence.output_tokens()}});
  End(key, Cause::kFinished);
}

// ---------------------------------------------------------------------------------------------------- endings

void DecodeEngine::Fail(const AttemptKey& key, const Outcome& why) {
  Log(LogLevel::kWarning, "decode.failed",
      {{"request", key.request.ToString()},
       {"attempt", key.attempt},
       {"outcome", Name(why.cause)},
       {"at_fault", Name(why.at_fault)},
       {"detail", why.detail}});
  v1::DecodeEvent event;
  FillFailed(why, event.mutable_failed());
  jobs_.Find(key)->sink->Write(std::move(event), /*last=*/true);
  End(key, why.cause);
}

// Everything that this worker holds for the attempt goes back, pages that the transport reads as soon as it does not
// any more. The receiver closes it, which also tells it that a batch slot is free.
void DecodeEngine::End(const AttemptKey& attempt_key, Cause cause) {
  const AttemptKey key = attempt_key;  // `attempt_key` may be the job's own
  Job& job = *jobs_.Find(key);
  parts_.metrics->AttemptEnded(job.sequence.attempt(), cause);
  const bool local = job.local;
  if (local && job.in_batch()) --local_sequences_;
  job.state = State::kReleasing;
  AbortDeparture(job, Outcome(Cause::kRevoked, Concat("the attempt has ended: ", Name(cause))));
  if (job.reading == 0) jobs_.Erase(key);
  if (local) {
    TellLocalSequences();
  } else if (parts_.receiver != nullptr) {
    parts_.receiver->CloseAttempt(key);
  }
}

void DecodeEngine::PublishLoad() {
  uint32_t waiting = 0;
  uint32_t running = 0;
  uint64_t waiting_tokens = 0;
  for (const auto& [age, job] : jobs_) {
    if (job->state == State::kReleasing) continue;
    (job->in_batch() ? running : waiting) += 1;
    if (job->local && !job->first_token_out) waiting_tokens += job->sequence.pending_tokens();
  }
  parts_.load->waiting_requests = waiting;
  parts_.load->running_sequences = running;
  parts_.load->waiting_tokens = waiting_tokens;
  parts_.metrics->SetSequences(running, waiting);
  parts_.metrics->SetPages(parts_.pool->counts());
}

}  // namespace baton
