// SPDX-License-Identifier: Apache-2.0
#include "router/trace/otlp.h"

#include <cstdint>
#include <map>
#include <string_view>

#include "absl/strings/escaping.h"
#include "common/arguments.h"
#include "otlp/trace.pb.h"

namespace baton::router {
namespace {

std::string BigEndian(uint64_t value) {
  std::string bytes(8, '\0');
  for (int i = 7; i >= 0; --i, value >>= 8) bytes[i] = static_cast<char>(value & 0xff);
  return bytes;
}

void AddText(google::protobuf::RepeatedPtrField<otlp::KeyValue>* attributes, std::string_view key,
             std::string_view value) {
  otlp::KeyValue& added = *attributes->Add();
  added.set_key(std::string(key));
  added.mutable_value()->set_string_value(std::string(value));
}

otlp::ResourceSpans* AddResource(std::string_view process, otlp::ExportTraceServiceRequest& request) {
  otlp::ResourceSpans* added = request.add_resource_spans();
  auto* const attributes = added->mutable_resource()->mutable_attributes();
  AddText(attributes, "service.name", process == kRouterProcess ? "baton-router" : "baton-worker");
  AddText(attributes, "service.version", BatonVersion());
  if (process != kRouterProcess) AddText(attributes, "service.instance.id", process);
  otlp::InstrumentationScope& scope = *added->add_scope_spans()->mutable_scope();
  scope.set_name("baton");
  scope.set_version(std::string(BatonVersion()));
  return added;
}

otlp::Span ToOtlp(const v1::TraceSpan& span, const std::string& trace_id) {
  otlp::Span out;
  out.set_trace_id(trace_id);
  out.set_span_id(BigEndian(span.span_id()));
  if (span.parent_span_id() != 0) out.set_parent_span_id(BigEndian(span.parent_span_id()));
  out.set_name(span.name());
  out.set_kind(span.name() == "request" ? otlp::Span::KIND_SERVER : otlp::Span::KIND_INTERNAL);
  out.set_start_time_unix_nano(span.start_unix_nanos());
  out.set_end_time_unix_nano(span.end_unix_nanos());
  for (const v1::TraceAttribute& attribute : span.attributes()) {
    otlp::KeyValue& added = *out.add_attributes();
    added.set_key(attribute.key());
    switch (attribute.value_case()) {
      case v1::TraceAttribute::kNumber: added.mutable_value()->set_int_value(attribute.number()); break;
      case v1::TraceAttribute::kTexts:
        for (const std::string& text : attribute.texts().values()) {
          added.mutable_value()->mutable_array_value()->add_values()->set_string_value(text);
        }
        break;
      case v1::TraceAttribute::kReal: added.mutable_value()->set_double_value(attribute.real()); break;
      default: added.mutable_value()->set_string_value(attribute.text());
    }
  }
  if (span.attempt() != 0) {
    otlp::KeyValue& added = *out.add_attributes();
    added.set_key("baton.attempt");
    added.mutable_value()->set_int_value(span.attempt());
  }
  if (!span.error().empty()) {
    out.mutable_status()->set_code(otlp::Status::CODE_ERROR);
    out.mutable_status()->set_message(span.error());
  }
  return out;
}

}  // namespace

std::string ToOtlp(std::span<const std::shared_ptr<const TraceRecord>> traces) {
  otlp::ExportTraceServiceRequest request;
  std::map<std::string, otlp::ResourceSpans*> resources;  // by process
  for (const std::shared_ptr<const TraceRecord>& record : traces) {
    const v1::Trace trace = record->ToMessage();
    const std::string trace_id = absl::HexStringToBytes(trace.trace_id());
    for (const v1::TraceSpan& span : trace.spans()) {
      otlp::ResourceSpans*& resource = resources[span.process()];
      if (resource == nullptr) resource = AddResource(span.process(), request);
      *resource->mutable_scope_spans(0)->add_spans() = ToOtlp(span, trace_id);
    }
  }
  return request.SerializeAsString();
}

}  // namespace baton::router
