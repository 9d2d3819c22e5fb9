// SPDX-License-Identifier: Apache-2.0
// The part of RequestRun that counts: metrics and attributes of an answer.
#include <string>
#include <vector>

#include "common/steady_time.h"
#include "router/metrics.h"
#include "router/request_run.h"

namespace baton::router {

void RequestRun::ObserveTokens(const v1::Chunk& chunk) {
  if (chunk.token_ids().empty()) return;
  const SteadyTime now = SteadyTime::Now();
  if (last_token_) {
    options_.metrics->NextTokens(options_.spec.model, chunk.token_ids_size(), now - *last_token_);
  } else {
    // Further tokens of the first message have no gap.
    options_.metrics->FirstToken(options_.spec.model, now - options_.received);
    // The wait for a worker with room counts as queueing: queueing ends with the attempt that sends the first token.
    options_.metrics->Queued(options_.spec.model, attempt_opened_.value_or(now) - options_.received);
  }
  last_token_ = now;
}

void RequestRun::NoteObjectives(bool ttft_met, bool tpot_met) {
  if (options_.metrics == nullptr || !options_.spec.objectives.any()) return;
  options_.metrics->ObjectivesKnown(options_.spec.model, ttft_met, tpot_met);
}

// Adds what OpenTelemetry's conventions for generative AI name.
void RequestRun::NoteAnswer(const v1::Finish& finish) {
  if (options_.trace == nullptr) return;
  RequestTrace& trace = *options_.trace;
  trace.Note("gen_ai.response.finish_reasons",
             std::vector<std::string>{finish.reason() == v1::FINISH_REASON_STOP ? "stop" : "length"});
  trace.Note("gen_ai.usage.input_tokens", finish.usage().prompt_tokens());
  trace.Note("gen_ai.usage.output_tokens", finish.usage().completion_tokens());
  trace.Note("gen_ai.usage.cache_read.input_tokens", finish.usage().cached_prompt_tokens());
  trace.Note("baton.ttft_seconds", finish.timings().ttft_seconds());
  trace.Note("baton.tpot_seconds", finish.timings().tpot_seconds());
}

}  // namespace baton::router
