// SPDX-License-Identifier: Apache-2.0
#include "router/trace/request_trace.h"

#include <algorithm>

namespace baton::router {
namespace {

constexpr size_t kMaxSpans = 512;  // of a request; a request with very many attempts loses the last ones

// Enough for a request of one attempt, so that all spans are in one piece of memory, and all attributes in another.
constexpr size_t kUsualSpans = 12;
constexpr size_t kUsualAttributes = 24;

}  // namespace

RequestTrace::RequestTrace(Start start) : sampled_(start.context.sampled) {
  record_.id = start.id;
  record_.trace_id = std::move(start.context.trace_id);
  record_.label = std::move(start.label);
  record_.caller_span_id = start.context.span_id;
  record_.received = start.received;
  record_.arrival = start.arrival;
  record_.processes.emplace_back(kRouterProcess);
  record_.spans.reserve(kUsualSpans);
  record_.attributes.reserve(kUsualAttributes);
  AddSpan("request", kRouter, std::nullopt, start.received, start.received);
}

uint32_t RequestTrace::ProcessOf(const std::string& worker) {
  std::vector<std::string>& processes = record_.processes;
  const auto found = std::find(processes.begin() + 1, processes.end(), worker);
  const auto index = static_cast<uint32_t>(found - processes.begin());
  if (found == processes.end()) processes.push_back(worker);
  return index;
}

std::optional<uint32_t> RequestTrace::AddSpan(std::string_view name, uint32_t process, std::optional<uint32_t> parent,
                                              SteadyTime from, SteadyTime to, uint32_t attempt) {
  if (record_.spans.size() >= kMaxSpans) return std::nullopt;
  record_.spans.push_back({name, process, parent.value_or(kRoot), attempt, from, to, ""});
  return static_cast<uint32_t>(record_.spans.size() - 1);
}

void RequestTrace::Tokenized(SteadyTime from, SteadyTime to, size_t tokens) {
  AddAttribute(AddSpan("tokenize", kRouter, std::nullopt, from, to), "baton.prompt_tokens", tokens);
}

void RequestTrace::OnPlacing(SteadyTime now) {
  if (!placing_since_) placing_since_ = now;
}

std::string RequestTrace::OnPlaced(SteadyTime now, uint32_t number, const Placement& placement) {
  const std::optional<uint32_t> place =
      AddSpan("place", kRouter, std::nullopt, placing_since_.value_or(now), now, number);
  placing_since_.reset();
  if (!placement.estimates.empty()) AddAttribute(place, "baton.placement.estimates", placement.estimates);
  Attempt& attempt = attempts_[number];
  attempt.opened = now;
  attempt.span = AddSpan("attempt", kRouter, std::nullopt, now, now, number);
  attempt.prefill_worker = ProcessOf(placement.prefill.key.id);
  attempt.decode_worker = ProcessOf(placement.decode.key.id);
  AddAttribute(attempt.span, "baton.prefill_worker", placement.prefill.key.id);
  AddAttribute(attempt.span, "baton.decode_worker", placement.decode.key.id);
  return TraceContext{record_.trace_id, record_.SpanId(attempt.span.value_or(kRoot)), sampled_}.Format();
}

void RequestTrace::AddPrefill(const Attempt& attempt, uint32_t number, uint32_t worker, SteadyTime from, SteadyTime to,
                              const google::protobuf::RepeatedPtrField<v1::PromptChunk>& chunks) {
  const std::optional<uint32_t> prefill = AddSpan("prefill", worker, attempt.span, from, to, number);
  for (const v1::PromptChunk& chunk : chunks) {
    const SteadyTime start = from + absl::Seconds(chunk.start_seconds());
    AddAttribute(AddSpan("chunk", worker, prefill, start, start + absl::Seconds(chunk.seconds()), number),
                 "baton.tokens", chunk.tokens());
  }
}

void RequestTrace::OnPrefillEvent(SteadyTime now, uint32_t number, const v1::PrefillEvent& event) {
  const auto found = attempts_.find(number);
  if (found == attempts_.end()) return;
  Attempt& attempt = found->second;
  const uint32_t worker = attempt.prefill_worker;
  if (event.has_started()) {
    attempt.prefill_started = now;
    AddSpan("queue", worker, attempt.span, attempt.opened, now, number);
  } else if (event.has_handed_over()) {
    const v1::HandedOver& done = event.handed_over();
    // A migration hands over without a prefill.
    if (const auto started = std::exchange(attempt.prefill_started, std::nullopt)) {
      AddPrefill(attempt, number, worker, *started, *started + absl::Seconds(done.prefill_seconds()), done.chunks());
    }
    const std::optional<uint32_t> span =
        AddSpan("transfer", worker, attempt.span, now - absl::Seconds(done.transfer_seconds()), now, number);
    AddAttribute(span, "baton.kv_bytes", done.kv_bytes());
    AddAttribute(span, "baton.transport", done.transport());
    AddAttribute(span, "baton.exposed_seconds", done.transfer_exposed_seconds());
    AddAttribute(span, "baton.cached_tokens", done.cached_prompt_tokens());
  } else if (event.has_finished()) {
    if (const auto started = std::exchange(attempt.prefill_started, std::nullopt)) {
      const v1::WorkerFinished& done = event.finished();
      AddPrefill(attempt, number, worker, *started, *started + absl::Seconds(done.prefill_seconds()), done.chunks());
    }
  }
}

void RequestTrace::OnDecodeEvent(SteadyTime now, uint32_t number, const v1::DecodeEvent& event) {
  const auto found = attempts_.find(number);
  if (found == attempts_.end()) return;
  Attempt& attempt = found->second;
  attempt.decoded_tokens += static_cast<uint64_t>(event.tokens().tokens_size());
  if (!event.has_started()) return;
  attempt.decode_started = now;
  const v1::DecodeStarted& started = event.started();
  if (started.prefill_seconds() <= 0) return;
  const SteadyTime prefill_started = now - absl::Seconds(started.prefill_seconds());
  const uint32_t worker = attempt.decode_worker;
  AddSpan("queue", worker, attempt.span, prefill_started - absl::Seconds(started.queue_seconds()), prefill_started,
          number);
  AddPrefill(attempt, number, worker, prefill_started, now, started.chunks());
}

void RequestTrace::OnAttemptEnded(SteadyTime now, uint32_t number, std::string_view error) {
  const auto node = attempts_.extract(number);
  if (node.empty()) return;
  const Attempt& attempt = node.mapped();
  // The attempt failed while the prompt was computed: nobody reports its chunks.
  if (attempt.prefill_started) {
    AddSpan("prefill", attempt.prefill_worker, attempt.span, *attempt.prefill_started, now, number);
  }
  if (attempt.decode_started) {
    AddAttribute(AddSpan("decode", attempt.decode_worker, attempt.span, *attempt.decode_started, now, number),
                 "baton.tokens", attempt.decoded_tokens);
  }
  if (!attempt.span) return;
  TraceRecord::Span& span = record_.spans[*attempt.span];
  span.to = now;
  span.error = error;
}

TraceRecord RequestTrace::End(SteadyTime now, std::string_view error) {
  if (placing_since_) AddSpan("place", kRouter, std::nullopt, *placing_since_, now);
  while (!attempts_.empty()) OnAttemptEnded(now, attempts_.begin()->first, error);
  TraceRecord::Span& root = record_.spans[kRoot];
  root.to = now;
  root.error = error;
  return std::move(record_);
}

}  // namespace baton::router
