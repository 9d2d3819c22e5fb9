// SPDX-License-Identifier: Apache-2.0
// A request's place in a distributed trace, as W3C Trace Context defines the header `traceparent`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace baton {

struct TraceContext {
  std::string trace_id;  // 32 hex digits, lower case
  uint64_t span_id = 0;  // the caller's span; not 0
  bool sampled = false;

  // Parses "00-<32 hex digits>-<16 hex digits>-<2 hex digits>", or a later version that begins so. None for any other
  // text: as the standard wants, the receiver then starts a trace of its own.
  static std::optional<TraceContext> Parse(std::string_view traceparent);
  std::string Format() const;
};

}  // namespace baton
