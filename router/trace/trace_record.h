// SPDX-License-Identifier: Apache-2.0
// The spans of one request as a router records them: plain structs, without ids and texts that follow from others.
// Every request pays for its record. Only a trace that a client or a collector gets becomes a message.
//
// A plain value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "baton/v1/inference.pb.h"
#include "common/ids.h"
#include "common/steady_time.h"

namespace baton::router {

// The process of a span that is the router's own.
inline constexpr std::string_view kRouterProcess = "router";

struct TraceRecord {
  // Names and keys are literals.
  struct Span {
    std::string_view name;
    uint32_t process = 0;  // index of `processes`
    uint32_t parent = 0;   // index of `spans`; of the first span, the span itself
    uint32_t attempt = 0;  // 0: not of an attempt
    SteadyTime from;
    SteadyTime to;
    std::string error;  // empty: success
  };
  struct Attribute {
    uint32_t span = 0;
    std::string_view key;
    std::variant<int64_t, double, std::string, std::vector<std::string>> value;
  };

  RequestId id;
  std::string trace_id;  // 32 hex digits
  std::string label;
  uint64_t caller_span_id = 0;  // of the client's span; 0: none
  SteadyTime received;
  absl::Time arrival;                  // the date of `received`
  std::vector<std::string> processes;  // the router first
  std::vector<Span> spans;             // the whole request first; parents before their children
  std::vector<Attribute> attributes;   // in the order of each span's

  // The id of the span of this index: a function of the request id.
  uint64_t SpanId(uint32_t span) const;
  v1::Trace ToMessage() const;
};

}  // namespace baton::router
