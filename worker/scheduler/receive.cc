// SPDX-License-Identifier: Apache-2.0
// Route kReceive of the Scheduler: a sequence whose prompt another worker has computed.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log.h"
#include "worker/scheduler/scheduler.h"

namespace baton {

void Scheduler::OnReceived(ReceivedSequence received) {
  Job* job = jobs_.Find(received.key);
  if (job == nullptr || job->phase != Phase::kAwaiting) return;  // closed meanwhile: the pages go back to the pool
  if (absl::Status fits = CheckReceived(*job, received); !fits.ok()) {
    return Fail(*job, Outcome(Cause::kInternal, Fault::kPair, std::string(fits.message())));
  }
  Sequence& sequence = job->sequence;
  for (const TokenId token : received.output) sequence.Append(token);
  sequence.AddPages(std::move(received.pages));
  sequence.AdvanceKv(received.tokens);
  sequence.Publish(/*replace=*/true);
  parts_.metrics->TokensReceived(sequence.attempt(), received.tokens - received.cached_tokens);
  parts_.metrics->TokensCached(sequence.attempt(), received.cached_tokens);
  job->Advance(PhaseEvent::kReceived);
  job->queued_since = parts_.now();
  Log(LogLevel::kDebug, "attempt.received",
      {{"request", received.key.request.ToString()},
       {"attempt", received.key.attempt},
       {"tokens", received.tokens},
       {"cached", received.cached_tokens},
       {"pending", sequence.pending_tokens()},
       {"pages", sequence.page_ids().size()}});
  PromptFigures figures;  // queue and prefill are the other worker's
  figures.cached_tokens = received.cached_tokens;
  job->events->OnDecodeStarted(figures, sequence.output_tokens());
}

// A prefill worker hands over the KV of the whole context and one token. A decode worker hands over the KV of full
// pages and the output since. At least one token is always left to compute.
absl::Status Scheduler::CheckReceived(const Job& job, const ReceivedSequence& received) const {
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

void Scheduler::OnReceiveFailed(const AttemptKey& key, const Outcome& why) {
  Job* job = jobs_.Find(key);
  if (job != nullptr && job->phase == Phase::kAwaiting) Fail(*job, why);
}

}  // namespace baton
