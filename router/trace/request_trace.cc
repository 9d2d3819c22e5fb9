// SPDX-License-Identifier: Apache-2.0
#include "router/trace/request_trace.h"

#include <algorithm>

#include "common/split_mix.h"

namespace baton::router {
namespace {

constexpr int kMaxSpans = 512;  // of a request; a request with very many attempts loses the last ones

}  // namespace

RequestTrace::RequestTrace(Start start)
    : context_(std::move(start.context)),
      received_(start.received),
      arrival_(start.arrival),
      span_ids_(start.id.high ^ start.id.low) {
  trace_.set_request_id(start.id.ToString());
  trace_.set_trace_id(context_.trace_id);
  trace_.set_request_label(std::move(start.label));
  v1::TraceSpan& span = *trace_.add_spans();
  span.set_name("request");
  span.set_process(std::string(kRouterProcess));
  span.set_span_id(NextSpanId());
  span.set_parent_span_id(context_.span_id);
  span.set_start_unix_nanos(Nanos(received_));
}

uint64_t RequestTrace::NextSpanId() { return std::max<uint64_t>(SplitMix(span_ids_ += kSplitMixStep), 1); }

uint64_t RequestTrace::Nanos(SteadyTime time) const {
  return static_cast<uint64_t>(absl::ToUnixNanos(arrival_ + (time - received_)));
}

v1::TraceSpan* RequestTrace::AddSpan(std::string_view name, std::string_view process, const v1::TraceSpan* parent,
                                     SteadyTime from, SteadyTime to, uint32_t attempt) {
  if (trace_.spans_size() >= kMaxSpans) return nullptr;
  const uint64_t parent_id = parent == nullptr ? root().span_id() : parent->span_id();
  v1::TraceSpan& span = *trace_.add_spans();
  span.set_name(std::string(name));
  span.set_process(std::string(process));
  span.set_attempt(attempt);
  span.set_span_id(NextSpanId());
  span.set_parent_span_id(parent_id);
  span.set_start_unix_nanos(Nanos(std::min(from, to)));
  span.set_end_unix_nanos(Nanos(to));
  return &span;
}

void RequestTrace::AddAttribute(v1::TraceSpan* span, std::string_view key, std::string_view value) {
  if (span == nullptr) return;
  v1::TraceAttribute& attribute = *span->add_attributes();
  attribute.set_key(std::string(key));
  attribute.set_text(std::string(value));
}

void RequestTrace::AddAttribute(v1::TraceSpan* span, std::string_view key, double value) {
  if (span == nullptr) return;
  v1::TraceAttribute& attribute = *span->add_attributes();
  attribute.set_key(std::string(key));
  attribute.set_real(value);
}

void RequestTrace::AddAttribute(v1::TraceSpan* span, std::string_view key, const std::vector<std::string>& value) {
  if (span == nullptr) return;
  v1::TraceAttribute& attribute = *span->add_attributes();
  attribute.set_key(std::string(key));
  attribute.mutable_texts()->mutable_values()->Assign(value.begin(), value.end());
}

void RequestTrace::Tokenized(SteadyTime from, SteadyTime to, size_t tokens) {
  AddAttribute(AddSpan("tokenize", kRouterProcess, nullptr, from, to), "baton.prompt_tokens", tokens);
}

void RequestTrace::OnPlacing(SteadyTime now) {
  if (!placing_since_) placing_since_ = now;
}

std::string RequestTrace::OnPlaced(SteadyTime now, uint32_t number, const Placement& placement) {
  v1::TraceSpan* const place = AddSpan("place", kRouterProcess, nullptr, placing_since_.value_or(now), now, number);
  placing_since_.reset();
  if (!placement.estimates.empty()) AddAttribute(place, "baton.placement.estimates", placement.estimates);
  Attempt& attempt = attempts_[number];
  attempt.opened = now;
  attempt.span = AddSpan("attempt", kRouterProcess, nullptr, now, now, number);
  attempt.prefill_worker = placement.prefill.key.id;
  attempt.decode_worker = placement.decode.key.id;
  AddAttribute(attempt.span, "baton.prefill_worker", attempt.prefill_worker);
  AddAttribute(attempt.span, "baton.decode_worker", attempt.decode_worker);
  const uint64_t parent = attempt.span == nullptr ? root().span_id() : attempt.span->span_id();
  return TraceContext{context_.trace_id, parent, context_.sampled}.Format();
}

void RequestTrace::AddPrefill(Attempt& attempt, uint32_t number, std::string_view worker, SteadyTime from,
                              SteadyTime to, const google::protobuf::RepeatedPtrField<v1::PromptChunk>& chunks) {
  const v1::TraceSpan* const prefill = AddSpan("prefill", worker, attempt.span, from, to, number);
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
  const std::string& worker = attempt.prefill_worker;
  if (event.has_started()) {
    attempt.prefill_started = now;
    AddSpan("queue", worker, attempt.span, attempt.opened, now, number);
  } else if (event.has_handed_over()) {
    const v1::HandedOver& done = event.handed_over();
    // A migration hands over without a prefill.
    if (const auto started = std::exchange(attempt.prefill_started, std::nullopt)) {
      AddPrefill(attempt, number, worker, *started, *started + absl::Seconds(done.prefill_seconds()), done.chunks());
    }
    v1::TraceSpan* const span =
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
  const std::string& worker = attempt.decode_worker;
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
  if (attempt.span == nullptr) return;
  attempt.span->set_end_unix_nanos(Nanos(now));
  attempt.span->set_error(std::string(error));
}

v1::Trace RequestTrace::End(SteadyTime now, std::string_view error) {
  if (placing_since_) AddSpan("place", kRouterProcess, nullptr, *placing_since_, now);
  while (!attempts_.empty()) OnAttemptEnded(now, attempts_.begin()->first, error);
  root().set_end_unix_nanos(Nanos(now));
  root().set_error(std::string(error));
  return std::move(trace_);
}

}  // namespace baton::router
