// SPDX-License-Identifier: Apache-2.0
#include "router/trace/trace_record.h"

#include <algorithm>

#include "common/split_mix.h"

namespace baton::router {
namespace {

struct SetValue {
  v1::TraceAttribute& attribute;

  void operator()(int64_t number) const { attribute.set_number(number); }
  void operator()(double real) const { attribute.set_real(real); }
  void operator()(const std::string& text) const { attribute.set_text(text); }
  void operator()(const std::vector<std::string>& texts) const {
    attribute.mutable_texts()->mutable_values()->Assign(texts.begin(), texts.end());
  }
};

}  // namespace

uint64_t TraceRecord::SpanId(uint32_t span) const {
  return std::max<uint64_t>(SplitMix((id.high ^ id.low) + kSplitMixStep * (span + 1)), 1);
}

v1::Trace TraceRecord::ToMessage() const {
  const auto nanos = [this](SteadyTime time) {
    return static_cast<uint64_t>(absl::ToUnixNanos(arrival + (time - received)));
  };
  v1::Trace trace;
  trace.set_request_id(id.ToString());
  trace.set_trace_id(trace_id);
  trace.set_request_label(label);
  for (uint32_t i = 0; i < spans.size(); ++i) {
    const Span& span = spans[i];
    v1::TraceSpan& made = *trace.add_spans();
    made.set_name(std::string(span.name));
    made.set_process(processes[span.process]);
    made.set_attempt(span.attempt);
    made.set_span_id(SpanId(i));
    made.set_parent_span_id(i == 0 ? caller_span_id : SpanId(span.parent));
    made.set_start_unix_nanos(nanos(std::min(span.from, span.to)));
    made.set_end_unix_nanos(nanos(span.to));
    made.set_error(span.error);
  }
  for (const Attribute& attribute : attributes) {
    v1::TraceAttribute& made = *trace.mutable_spans(static_cast<int>(attribute.span))->add_attributes();
    made.set_key(std::string(attribute.key));
    std::visit(SetValue{made}, attribute.value);
  }
  return trace;
}

}  // namespace baton::router
