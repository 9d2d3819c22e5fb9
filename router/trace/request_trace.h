// SPDX-License-Identifier: Apache-2.0
// Collects the stages of one request as spans, from what the router sees and from the times that workers report.
//
//   span       from -> to                                                     process
//   request    arrival -> end                                                 router
//   tokenize   chat template and tokenizer                                    router
//   place      an attempt is wanted -> its workers are chosen                 router
//   attempt    the decode call is opened -> the attempt ends                  router
//   queue      the attempt is opened -> the first step of its prompt          the worker that computes the prompt
//   prefill    the first step -> the first token; a chunk span for each step  the worker that computes the prompt
//   transfer   the first KV page leaves -> the decode worker has all          the worker that hands over
//   decode     the decode worker has the sequence -> the attempt ends         decode worker
//
// Workers report durations only, and the router counts them back from the arrival of the report: no two clocks are
// compared. A message's way through the network is the error.
//
// Not thread-safe: belongs to the request's strand.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/time/time.h"
#include "baton/v1/inference.pb.h"
#include "baton/v1/worker.pb.h"
#include "common/ids.h"
#include "common/steady_time.h"
#include "common/trace_context.h"
#include "router/placer.h"

namespace baton::router {

// The process of a span that is the router's own.
inline constexpr std::string_view kRouterProcess = "router";

class RequestTrace {
 public:
  struct Start {
    TraceContext context;  // the client's span, or span_id 0: a trace of the router's own
    RequestId id;
    std::string label;
    SteadyTime received;
    absl::Time arrival;  // the date of `received`
  };
  explicit RequestTrace(Start start);

  bool sampled() const { return context_.sampled; }
  const std::string& trace_id() const { return context_.trace_id; }
  // Adds to the span of the whole request.
  template <typename Value>
  void Note(std::string_view key, const Value& value) {
    AddAttribute(&root(), key, value);
  }

  void Tokenized(SteadyTime from, SteadyTime to, size_t tokens);
  // An attempt is wanted. Later calls before OnPlaced count for the same placement.
  void OnPlacing(SteadyTime now);
  // The attempt opens. Returns what its workers get as traceparent.
  std::string OnPlaced(SteadyTime now, uint32_t attempt, const Placement& placement);
  void OnPrefillEvent(SteadyTime now, uint32_t attempt, const v1::PrefillEvent& event);
  void OnDecodeEvent(SteadyTime now, uint32_t attempt, const v1::DecodeEvent& event);
  // `error` is empty for success.
  void OnAttemptEnded(SteadyTime now, uint32_t attempt, std::string_view error);
  // Ends all spans that are open. The trace is empty afterwards.
  v1::Trace End(SteadyTime now, std::string_view error);

 private:
  struct Attempt {
    v1::TraceSpan* span = nullptr;  // null: there are too many spans
    std::string prefill_worker;     // or the worker that hands over
    std::string decode_worker;
    SteadyTime opened;
    std::optional<SteadyTime> prefill_started;
    std::optional<SteadyTime> decode_started;
    uint64_t decoded_tokens = 0;
  };

  uint64_t NextSpanId();
  v1::TraceSpan& root() { return *trace_.mutable_spans(0); }
  // Adds a span below `parent`; below the whole request, if `parent` is null. Returns null if there are too many spans.
  // The pointer stays valid until End.
  v1::TraceSpan* AddSpan(std::string_view name, std::string_view process, const v1::TraceSpan* parent, SteadyTime from,
                         SteadyTime to, uint32_t attempt = 0);
  void AddPrefill(Attempt& attempt, uint32_t number, std::string_view worker, SteadyTime from, SteadyTime to,
                  const google::protobuf::RepeatedPtrField<v1::PromptChunk>& chunks);
  uint64_t Nanos(SteadyTime time) const;
  // Nothing, if `span` is null.
  static void AddAttribute(v1::TraceSpan* span, std::string_view key, std::string_view value);
  static void AddAttribute(v1::TraceSpan* span, std::string_view key, double value);
  static void AddAttribute(v1::TraceSpan* span, std::string_view key, const std::vector<std::string>& value);
  template <std::integral Number>
  static void AddAttribute(v1::TraceSpan* span, std::string_view key, Number value) {
    if (span == nullptr) return;
    v1::TraceAttribute& attribute = *span->add_attributes();
    attribute.set_key(std::string(key));
    attribute.set_number(static_cast<int64_t>(value));
  }

  const TraceContext context_;
  const SteadyTime received_;
  const absl::Time arrival_;
  uint64_t span_ids_;  // state of the span ids' sequence, which begins at the request id
  v1::Trace trace_;
  std::map<uint32_t, Attempt> attempts_;  // open ones
  std::optional<SteadyTime> placing_since_;
};

}  // namespace baton::router
