// SPDX-License-Identifier: Apache-2.0
#include "common/trace_context.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/strings.h"

namespace baton {
namespace {

constexpr std::string_view kZeroTraceId = "00000000000000000000000000000000";
constexpr uint64_t kSampled = 1;  // flag

// Where the fields of "vv-tttttttttttttttttttttttttttttttt-ssssssssssssssss-ff" begin.
constexpr size_t kTraceId = 3;
constexpr size_t kSpanId = kTraceId + 32 + 1;
constexpr size_t kFlags = kSpanId + 16 + 1;
constexpr size_t kLength = kFlags + 2;

bool IsLowerHex(std::string_view text) { return text.find_first_not_of("0123456789abcdef") == std::string_view::npos; }

}  // namespace

std::optional<TraceContext> TraceContext::Parse(std::string_view traceparent) {
  if (traceparent.size() < kLength) return std::nullopt;
  const std::string_view version = traceparent.substr(0, 2);
  const std::string_view trace_id = traceparent.substr(kTraceId, 32);
  const std::string_view span_id = traceparent.substr(kSpanId, 16);
  const std::string_view flags = traceparent.substr(kFlags, 2);
  for (const size_t dash : {kTraceId - 1, kSpanId - 1, kFlags - 1}) {
    if (traceparent[dash] != '-') return std::nullopt;
  }
  for (const std::string_view field : {version, trace_id, span_id, flags}) {
    if (!IsLowerHex(field)) return std::nullopt;
  }
  const bool has_more = traceparent.size() > kLength;
  if (version == "ff" || (has_more && (version == "00" || traceparent[kLength] != '-'))) return std::nullopt;
  TraceContext context{.trace_id = std::string(trace_id)};
  uint64_t flag_bits = 0;
  if (!absl::SimpleHexAtoi(ToAbsl(span_id), &context.span_id) || !absl::SimpleHexAtoi(ToAbsl(flags), &flag_bits)) {
    return std::nullopt;
  }
  if (trace_id == kZeroTraceId || context.span_id == 0) return std::nullopt;
  context.sampled = (flag_bits & kSampled) != 0;
  return context;
}

std::string TraceContext::Format() const {
  return absl::StrCat("00-", trace_id, "-", absl::Hex(span_id, absl::kZeroPad16), sampled ? "-01" : "-00");
}

}  // namespace baton
